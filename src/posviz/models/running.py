"""Where and how precisely a model computes."""

from __future__ import annotations

import torch

from posviz.errors import PosvizError, unknown_name
from posviz.options import CaptureRequest

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}


def settings(request: CaptureRequest) -> tuple[torch.device, torch.dtype]:
    """The device and the number format that a request asks for; threads are set as a side effect."""
    if request.threads is not None:
        if request.threads < 1:
            raise PosvizError(f"threads is {request.threads}; expected 1 or more")
        torch.set_num_threads(request.threads)
    if request.dtype is not None and request.dtype not in DTYPES:
        raise PosvizError(unknown_name("dtype", request.dtype, DTYPES))
    return _device(request.device), DTYPES[request.dtype or "float32"]


def _device(name: str) -> torch.device:
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device("cuda" if there["cuda"] else "mps" if there["mps"] else "cpu")
    kind = name.partition(":")[0]
    if kind not in there:
        raise PosvizError(unknown_name("device", name, ["auto", *there]))
    if not there[kind]:
        raise PosvizError(f"this machine has no {kind} device that torch can use; say --device cpu")
    return torch.device(name)
