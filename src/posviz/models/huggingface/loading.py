"""Opening a transformers model: a local folder or a hub id, by transformers' own cache and offline rules."""

from __future__ import annotations

import importlib.util
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModel

from posviz.errors import CheckpointError, unknown_name
from posviz.models.huggingface import interface
from posviz.models.huggingface.layers import context_length, find_layers, head_count
from posviz.models.huggingface.model import HFModel
from posviz.models.huggingface.quiet import quiet

STACKS = ("encoder", "decoder", "cross")
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
NOT_NEEDED = re.compile(r"pooler|lm_head|classifier|score\.")  # what attention never meets may be missing


def open_model(
    path_or_id: str,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    device: str = "cpu",
    dtype: str | None = None,
    device_map: str | Mapping[str, Any] | None = None,
    stack: str | None = None,
) -> HFModel:
    """The model without its output head, ready to capture from. Weights are mapped from the file, not copied."""
    name = str(path_or_id).rstrip("/").rsplit("/", 1)[-1]
    source = {"revision": revision or "main", "trust_remote_code": trust_remote_code}
    with _one_line_errors(str(path_or_id)), quiet():
        config = AutoConfig.from_pretrained(path_or_id, **source)
        chosen = _stack(config, stack, name)
        options = {**source, "config": config, "dtype": _dtype(dtype), **_placed(device_map)}
        model, report = AutoModel.from_pretrained(path_or_id, output_loading_info=True, **options)
        _check_complete(report, name)
        if model.main_input_name != "input_ids":
            raise CheckpointError(f"{name} takes {model.main_input_name}, not tokens; posviz draws models of text")
        model.eval()
        if device_map is None:
            model.to(device)
        elif "offload_folder" in options:
            weakref.finalize(model, shutil.rmtree, options["offload_folder"], ignore_errors=True)
        by_interface = _let_us_listen(model)
    layers = find_layers(model, chosen)
    return HFModel(
        name=name,
        model=model,
        layers=layers,
        stack=chosen,
        by_interface=by_interface,
        n_heads=head_count(layers.root, chosen),
        vocab_size=int(model.get_input_embeddings().weight.shape[0]),
        context=context_length(layers.root, chosen),
        notes=tuple(_notes(model, stack, chosen)),
    )


def configs_of(model: Any) -> list[Any]:
    """Every configuration in a model: its halves may have copies of their own."""
    found = {id(module.config): module.config for module in model.modules() if hasattr(module, "config")}
    return list(found.values())


def _let_us_listen(model: Any) -> bool:
    """Put our attention function in, where the model allows that; elsewhere its own code is watched as it runs."""
    for config in configs_of(model):
        if hasattr(config, "use_cache"):
            config.use_cache = False
    if model._can_set_attn_implementation():
        interface.register()
        model.set_attn_implementation(interface.NAME)
        return True
    if getattr(model.config, "alibi", False):
        # Falcon hands SDPA its bias inside the mask only, where eager mode adds it to the scores as well: what is
        # compared with its own attention weights, which only eager mode gives, must be eager.
        for config in configs_of(model):
            config._attn_implementation = "eager"
    return False


def _stack(config: Any, asked: str | None, name: str) -> str | None:
    if asked is not None and asked not in STACKS:
        raise CheckpointError(unknown_name("stack", asked, STACKS))
    if getattr(config, "is_encoder_decoder", False):
        return asked or "decoder"
    if asked is not None:
        raise CheckpointError(
            f"stack {asked!r} was asked for, but {name} is not an encoder-decoder model; leave it out"
        )
    return None


def _notes(model: Any, asked: str | None, chosen: str | None) -> Iterator[str]:
    if chosen is not None and asked is None:
        yield "the decoder's self-attention is drawn; --stack encoder or cross shows the others"
    if chosen in ("decoder", "cross"):
        yield "encoder and decoder are given the same tokens"
    if model.dtype != torch.float32:
        coarse = str(model.dtype).removeprefix("torch.")
        yield f"the weights are {coarse}, and the scores as coarse; --dtype float32 is finer"


def _dtype(name: str | None) -> Any:
    if name is not None and name not in DTYPES:
        raise CheckpointError(unknown_name("dtype", name, DTYPES))
    return "auto" if name is None else DTYPES[name]


def _placed(device_map: str | Mapping[str, Any] | None) -> dict[str, Any]:
    if device_map is None:
        return {}
    if importlib.util.find_spec("accelerate") is None:
        raise CheckpointError(
            "a device map needs the package accelerate; install it with: pip install 'posviz[offload]'"
        )
    placed = device_map if isinstance(device_map, str) else dict(device_map)
    return {"device_map": placed, "offload_folder": tempfile.mkdtemp(prefix="posviz-offload-")}


def _check_complete(report: Mapping[str, Any], name: str) -> None:
    """transformers fills in what a file lacks with random numbers; nobody wants those drawn."""
    missing = sorted(key for key in report["missing_keys"] if not NOT_NEEDED.search(key))
    if missing:
        raise CheckpointError(f"{name} lacks {len(missing)} of its model's tensors, such as {missing[0]}; is it whole?")


@contextmanager
def _one_line_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, RuntimeError, ImportError, KeyError, SafetensorError) as error:
        text = " ".join(str(error).split())
        if "trust_remote_code" in text:
            text = "it brings its own Python code, which is run only if you say --trust-remote-code"
        raise CheckpointError(f"{what} cannot be opened as a transformers model: {text[:300]}") from error
