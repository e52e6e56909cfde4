"""The tokens that a model is run on: from text, from a file of ids, or, when asked for, at random."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from posviz.errors import SequenceError
from posviz.options import CaptureRequest
from posviz.tokenizer import Tokenizer, find_tokenizer


@dataclass(frozen=True)
class SequenceRequest:
    """What to run on; at most one source, and the package's sample text without any."""

    text: str | None = None
    text_file: Path | None = None
    tokens_file: Path | None = None
    seq_len: int = 512
    seed: int = 0
    tokenizer: str | None = None
    random_tokens: bool = False

    @classmethod
    def of(cls, request: CaptureRequest, tokenizer: str | None = None) -> SequenceRequest:
        """What a capture is to run on; `tokenizer` where the model brings its own."""
        return cls(
            text=request.text,
            text_file=request.text_file,
            tokens_file=request.tokens,
            seq_len=request.seq_len,
            seed=request.seed,
            tokenizer=tokenizer or request.tokenizer,
            random_tokens=request.random_tokens,
        )


@dataclass(frozen=True)
class Sequence:
    """Token ids, and what each looks like to a person."""

    ids: np.ndarray  # int64 [position]
    tokens: tuple[str, ...]
    source: str
    seed: int
    notes: tuple[str, ...] = ()


def sample(
    request: SequenceRequest,
    *,
    vocab_size: int | None,
    block_size: int | None,
    learned_positions: bool = False,
    tokenizer_hint: str | Path | None = None,
) -> Sequence:
    """The window of the asked source that `seed` picks; `block_size` is the context the model was trained with."""
    _one_source(request)
    notes = _length_notes(request.seq_len, block_size, learned_positions)
    if request.random_tokens:
        ids, source = _random(request, vocab_size), "random ids"
        tokenizer = _for_reading(request, tokenizer_hint, vocab_size)
    elif request.tokens_file is not None:
        stored, source = _token_file(Path(request.tokens_file)), Path(request.tokens_file).name
        ids = _window(stored, request, source)
        tokenizer = _for_reading(request, tokenizer_hint, vocab_size)
    else:
        text, source = _text(request)
        tokenizer, concluded = find_tokenizer(request.tokenizer, tokenizer_hint, vocab_size)
        if tokenizer is None:
            raise SequenceError(_no_tokenizer(vocab_size))
        ids = _window(tokenizer.encode(text), request, source)
        notes += concluded
    _check_ids(ids, vocab_size, source)
    strings = tokenizer.strings(ids) if tokenizer else tuple(str(i) for i in ids)
    return Sequence(ids, strings, source, request.seed, tuple(notes))


def _for_reading(request: SequenceRequest, hint: str | Path | None, vocab_size: int | None) -> Tokenizer | None:
    """A tokenizer to show ids with. They can be run without, so one that cannot be opened matters only if named."""
    try:
        return find_tokenizer(request.tokenizer, hint, vocab_size)[0]
    except SequenceError:
        if request.tokenizer is not None:
            raise
        return None


def _one_source(request: SequenceRequest) -> None:
    given = {
        "--text": request.text is not None,
        "--text-file": request.text_file is not None,
        "--tokens": request.tokens_file is not None,
        "--random-tokens": request.random_tokens,
    }
    flags = [flag for flag, there in given.items() if there]
    if len(flags) > 1:
        raise SequenceError(f"{' and '.join(flags)} were given; expected one of them")
    if request.seq_len < 1:
        raise SequenceError(f"--seq-len is {request.seq_len}; expected 1 or more")
    if request.seed < 0:
        raise SequenceError(f"--seed is {request.seed}; expected 0 or more")


def _length_notes(seq_len: int, block_size: int | None, learned_positions: bool) -> list[str]:
    if not block_size or seq_len <= block_size:
        return []
    if learned_positions:
        raise SequenceError(
            f"{seq_len} positions were asked for, but the model's table of positions has {block_size}; "
            f"use --seq-len {block_size} or less"
        )
    return [f"{seq_len} positions are more than the {block_size} of its training: this shows extrapolation"]


def _random(request: SequenceRequest, vocab_size: int | None) -> np.ndarray:
    if not vocab_size:
        raise SequenceError("--random-tokens needs the size of the vocabulary, which the checkpoint does not tell")
    return np.random.default_rng(request.seed).integers(vocab_size, size=request.seq_len, dtype=np.int64)


def _text(request: SequenceRequest) -> tuple[str, str]:
    """The text, and what to call it."""
    if request.text is not None:
        text, source = request.text, "--text"
    elif request.text_file is None:
        return sample_text(), "the sample text"
    else:
        path = Path(request.text_file)
        text, source = _decode(path), path.name
    if not text:
        raise SequenceError(f"{source} is empty; expected text")
    if any("\ud800" <= c <= "\udfff" for c in text):  # how Python shows bytes of an argument that are no text
        raise SequenceError(f"{source} is no UTF-8 text; put it into a file and convert it, or give ids with --tokens")
    return text, source


def sample_text() -> str:
    """The text that ships with the package."""
    return (files("posviz") / "data" / "sample.txt").read_text(encoding="utf-8")


def _decode(path: Path) -> str:
    raw = _bytes(path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SequenceError(
            f"{path} is no UTF-8 text: byte 0x{raw[error.start]:02x} at {error.start}; convert it, or give token ids "
            "with --tokens"
        ) from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SequenceError(f"{path} cannot be read: {error.strerror}") from None


def _token_file(path: Path) -> np.ndarray:
    """The ids of a file, mapped rather than read where the format allows."""
    try:
        size = path.stat().st_size
        if not size:
            raise SequenceError(f"{path} is empty; expected token ids")
        if path.suffix == ".npy":
            ids = np.load(path, mmap_mode="r", allow_pickle=False)
        elif path.suffix == ".bin":
            if size % 2:
                raise SequenceError(f"{path} has {size} bytes; expected two for each id (uint16)")
            ids = np.memmap(path, "<u2", mode="r")
        elif path.suffix == ".json":
            ids = np.asarray(json.loads(path.read_bytes()))
        else:
            raise SequenceError(f"{path}: expected token ids in a .npy, .bin (uint16) or .json file")
    except OSError as error:
        raise SequenceError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise SequenceError(f"{path} holds no token ids: {str(error).splitlines()[0]}") from None
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise SequenceError(
            f"{path} holds {ids.dtype} of shape {list(ids.shape)}; expected one row of whole numbers, the token ids"
        )
    return ids


def _window(ids: np.ndarray, request: SequenceRequest, source: str) -> np.ndarray:
    """The `seq_len` ids from where the seed points."""
    have, need = len(ids), request.seq_len
    if have < need:
        raise SequenceError(
            f"{source} has {have} tokens, and {need} are needed; use --seq-len {have} or less, or a longer text"
            if have
            else f"{source} has no tokens; expected at least {need}"
        )
    start = int(np.random.default_rng(request.seed).integers(have - need + 1))
    return np.asarray(ids[start : start + need]).astype(np.int64)


def _check_ids(ids: np.ndarray, vocab_size: int | None, source: str) -> None:
    wrong = (ids < 0) | (ids >= vocab_size) if vocab_size else ids < 0
    if wrong.any():
        at = int(np.argmax(wrong))
        raise SequenceError(
            f"{source}: token id {ids[at]} at position {at} is outside the model's vocabulary of {vocab_size}; "
            "the tokenizer or the token file belongs to another model"
        )


def _no_tokenizer(vocab_size: int | None) -> str:
    gpt2 = ", such as gpt2, which a vocabulary of this size suggests" if vocab_size in (50257, 50304) else ""
    return (
        f"nothing says how text becomes the model's {vocab_size or ''} token ids; give --tokenizer PATH_OR_ID"
        f"{gpt2}, or ids with --tokens FILE, or ask for --random-tokens"
    )
