"""Pixels as a PNG file, quicker and smaller than general writers make it of a heatmap.

Those choose for every row of pixels how to store it as differences to its neighbours, which suits photographs. The
colours of a heatmap come back unchanged all over the picture, and are best left as they are for the compressor to find.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LEVEL = 2  # of zlib's 9; 6 takes three times as long for a tenth less
ROWS = 512  # compressed at a time
INCH = 0.0254  # metres, in which the resolution is stored


def write_png(path: Path, pixels: np.ndarray, dpi: float, texts: Mapping[str, str]) -> None:
    """Write `pixels`, uint8 `[row, column, channel]` of which the first three are red, green and blue."""
    high, wide, _ = pixels.shape
    per_metre = round(dpi / INCH)
    with path.open("wb") as file:
        file.write(SIGNATURE)
        _chunk(file, b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0))  # 8 bits, colour, not interlaced
        _chunk(file, b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1))
        for key, text in texts.items():
            _chunk(file, b"iTXt", key.encode("latin-1") + b"\0\0\0\0\0" + text.encode("utf-8"))
        squeeze = zlib.compressobj(LEVEL, memLevel=9)
        for top in range(0, high, ROWS):
            part = pixels[top : top + ROWS, :, :3]
            rows = np.zeros((len(part), 1 + 3 * wide), dtype=np.uint8)  # the first byte says: stored as it is
            rows[:, 1:].reshape(part.shape)[...] = part
            _chunk(file, b"IDAT", squeeze.compress(rows.data))
        _chunk(file, b"IDAT", squeeze.flush())
        _chunk(file, b"IEND", b"")


def _chunk(file: BinaryIO, kind: bytes, data: bytes) -> None:
    if not data and kind == b"IDAT":
        return  # the compression is still collecting
    file.write(struct.pack(">I", len(data)) + kind)
    file.write(data)
    file.write(struct.pack(">I", zlib.crc32(data, zlib.crc32(kind))))
