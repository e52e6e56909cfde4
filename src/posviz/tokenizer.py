"""Text to token ids, and ids to what a person can read: plain bytes, or the tokenizer of a transformers model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from posviz.errors import SequenceError

BYTES = "bytes"


class Tokenizer(Protocol):
    def encode(self, text: str) -> np.ndarray: ...

    def strings(self, ids: np.ndarray) -> tuple[str, ...]: ...


def find_tokenizer(
    named: str | None, hint: str | Path | None, vocab_size: int | None
) -> tuple[Tokenizer | None, list[str]]:
    """The tokenizer that a person names, else the checkpoint's own; and a note where it was concluded."""
    wanted = named or hint
    if wanted is not None:
        return open_tokenizer(wanted), []
    if vocab_size == 256:
        return ByteTokenizer(), ["a vocabulary of 256: the text is taken as plain bytes"]
    return None, []


def open_tokenizer(wanted: str | Path) -> Tokenizer:
    """`bytes`, a tokenizer.json, a folder, or the id of a model on the hub."""
    if wanted == BYTES:
        return ByteTokenizer()
    path = Path(wanted)
    file = path / "tokenizer.json" if path.is_dir() else path
    if file.is_file():
        return _from_file(file)
    try:
        from transformers import AutoTokenizer

        return SlowTokenizer(AutoTokenizer.from_pretrained(str(wanted)))
    except Exception as error:  # whatever the hub, the files or the many tokenizer classes stumble over
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SequenceError(
            f"there is no tokenizer {str(wanted)!r}: {reason} Expected 'bytes', a folder, a tokenizer.json or a hub id"
        ) from None


def _from_file(path: Path) -> Tokenizer:
    import tokenizers

    try:
        return FastTokenizer(tokenizers.Tokenizer.from_file(str(path)))
    except Exception as error:  # the library raises bare Exception
        raise SequenceError(f"{path} is no tokenizer: {error}; expected a tokenizer.json") from None


class ByteTokenizer:
    """Each byte of the UTF-8 text is a token."""

    def encode(self, text: str) -> np.ndarray:
        return np.frombuffer(text.encode("utf-8"), dtype=np.uint8).astype(np.int64)

    def strings(self, ids: np.ndarray) -> tuple[str, ...]:
        return tuple(_byte(i) for i in ids.tolist())


def _byte(i: int) -> str:
    if i < 127:
        return readable(chr(i))
    return f"\\x{i:02x}" if i < 256 else str(i)


class FastTokenizer:
    """A tokenizer.json, without importing transformers. No special tokens: a window begins in mid-text."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def encode(self, text: str) -> np.ndarray:
        return np.array(self._inner.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def strings(self, ids: np.ndarray) -> tuple[str, ...]:
        return tuple(
            _string(self._inner.id_to_token(i), self._inner.decode([i], skip_special_tokens=False), i)
            for i in ids.tolist()
        )


class SlowTokenizer:
    """Any tokenizer that transformers knows."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def encode(self, text: str) -> np.ndarray:
        return np.array(self._inner.encode(text, add_special_tokens=False, verbose=False), dtype=np.int64)

    def strings(self, ids: np.ndarray) -> tuple[str, ...]:
        pieces = self._inner.convert_ids_to_tokens(ids.tolist())
        return tuple(_string(piece, self._inner.decode([i]), i) for piece, i in zip(pieces, ids.tolist(), strict=True))


def _string(piece: str | None, text: str, token_id: int) -> str:
    """What to show of a token: its text, or its name in the vocabulary where it is but a part of a character."""
    if piece is None:
        return str(token_id)
    if not text or "\ufffd" in text:
        return readable(piece)
    space = " " if piece.startswith("\u2581") and not text.startswith(" ") else ""
    return readable(space + text)


def readable(text: str) -> str:
    """The text with what does not print escaped: a newline as backslash and n."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
