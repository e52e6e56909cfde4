"""The tokens a model runs on: where they come from, which window, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from posviz.errors import SequenceError
from posviz.sequence import Sequence, SequenceRequest, sample, sample_text
from posviz.tokenizer import ByteTokenizer, open_tokenizer


def drawn(vocab_size: int | None = 256, block_size: int | None = None, **said: Any) -> Sequence:
    """A sample, with what is asked for and what the model is told apart by name."""
    model = {name: said.pop(name) for name in ("learned_positions", "tokenizer_hint") if name in said}
    return sample(SequenceRequest(**said), vocab_size=vocab_size, block_size=block_size, **model)


def refusal(**said: Any) -> str:
    with pytest.raises(SequenceError) as caught:
        drawn(**said)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_sample_text_is_plain_and_long_enough() -> None:
    text = sample_text()
    assert text.isascii()
    assert 9_000 <= len(text) <= 10_240


def test_without_a_text_the_sample_is_used_and_the_seed_picks_the_window() -> None:
    text = sample_text()
    windows = ["".join(chr(i) for i in drawn(seed=seed).ids) for seed in (0, 1, 0)]
    assert windows[0] == windows[2] != windows[1]
    for seed, window in zip((0, 1), windows, strict=False):
        start = int(np.random.default_rng(seed).integers(len(text) - 512 + 1))
        assert window == text[start : start + 512]
    assert drawn().source == "the sample text"
    assert drawn().ids.dtype == np.int64


def test_bytes_are_shown_as_a_person_reads_them() -> None:
    found = drawn(text="a\u2192\n\t\\ ", seq_len=8, tokenizer_hint="bytes")
    assert found.ids.tolist() == list("a\u2192\n\t\\ ".encode())
    assert found.tokens == ("a", r"\xe2", r"\x86", r"\x92", r"\n", r"\t", "\\", " ")


def test_a_text_file_may_begin_with_a_mark(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"\xef\xbb\xbfhello")
    found = drawn(text_file=tmp_path / "t.txt", seq_len=5)
    assert "".join(found.tokens) == "hello"
    assert found.source == "t.txt"


@pytest.mark.parametrize("suffix", [".npy", ".bin", ".json"])
def test_token_files_give_their_ids(suffix: str, tmp_path: Path) -> None:
    ids = np.arange(100, 160, dtype=np.uint16)
    path = tmp_path / f"ids{suffix}"
    if suffix == ".npy":
        np.save(path, ids)
    elif suffix == ".bin":
        path.write_bytes(ids.astype("<u2").tobytes())
    else:
        path.write_text(json.dumps(ids.tolist()))
    whole = drawn(tokens_file=path, seq_len=60, vocab_size=50304)
    assert whole.ids.tolist() == ids.tolist()
    assert whole.tokens[:2] == ("100", "101")
    start = int(np.random.default_rng(5).integers(60 - 8 + 1))
    assert drawn(tokens_file=path, seq_len=8, seed=5, vocab_size=50304).ids.tolist() == ids[start : start + 8].tolist()
    assert drawn(tokens_file=path, seq_len=60, tokenizer_hint="bytes").tokens[:2] == ("d", "e")


def test_random_ids_are_only_ever_asked_for() -> None:
    found = drawn(random_tokens=True, vocab_size=50304, seq_len=64)
    assert found.source == "random ids"
    assert found.ids.tolist() == drawn(random_tokens=True, vocab_size=50304, seq_len=64).ids.tolist()
    assert found.ids.max() < 50304
    message = refusal(vocab_size=50304)
    assert "--tokenizer" in message
    assert "gpt2" in message
    assert "--random-tokens" in message
    assert "gpt2" not in refusal(vocab_size=65)


def test_a_vocabulary_of_256_is_taken_as_bytes_and_said_so() -> None:
    assert any("plain bytes" in note for note in drawn(vocab_size=256).notes)
    assert drawn(vocab_size=256, tokenizer_hint="bytes").notes == ()


def test_longer_than_the_training_is_noted_or_refused() -> None:
    assert drawn(seq_len=64, block_size=64, tokenizer_hint="bytes").notes == ()
    assert drawn(seq_len=64, block_size=0, tokenizer_hint="bytes").notes == ()
    (note,) = drawn(seq_len=65, block_size=64, tokenizer_hint="bytes").notes
    assert "extrapolation" in note
    assert "--seq-len 64 or less" in refusal(seq_len=65, block_size=64, learned_positions=True)


def test_too_short_a_text_says_how_short() -> None:
    message = refusal(text="twelve bytes", seq_len=512)
    assert "has 12 tokens, and 512 are needed" in message
    assert "--seq-len 12" in message


def test_an_id_beyond_the_vocabulary_is_named(tmp_path: Path) -> None:
    (tmp_path / "ids.json").write_text("[1, 2, 99, 3]")
    message = refusal(tokens_file=tmp_path / "ids.json", seq_len=4, vocab_size=64)
    assert "token id 99 at position 2" in message
    assert "vocabulary of 64" in message
    (tmp_path / "ids.json").write_text("[1, -2]")
    assert "token id -2" in refusal(tokens_file=tmp_path / "ids.json", seq_len=2, vocab_size=64)
    assert "outside the model's vocabulary of 64" in refusal(text="z" * 9, seq_len=9, vocab_size=64, tokenizer="bytes")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.npy", b"", "empty"),
        ("a.bin", b"", "empty"),
        ("a.json", b"", "empty"),
        ("a.bin", b"abc", "3 bytes"),
        ("a.npy", b"no numpy file", "holds no token ids"),
        ("a.json", b"{", "holds no token ids"),
        ("a.json", b"[[1, 2], [3]]", "holds no token ids"),
        ("a.json", b"[[1, 2], [3, 4]]", "expected one row"),
        ("a.json", b"[1.5, 2]", "expected one row"),
        ("a.json", b"[true, false]", "expected one row"),
        ("a.json", b'["a"]', "expected one row"),
        ("a.json", b"[]", "expected one row"),
        ("a.csv", b"1,2", ".npy, .bin (uint16) or .json"),
    ],
)
def test_what_are_no_token_ids_is_refused(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    message = refusal(tokens_file=tmp_path / name, seq_len=2)
    assert says in message
    assert name in message


def test_an_array_of_objects_is_not_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "holds no token ids" in refusal(tokens_file=tmp_path / "a.npy", seq_len=1)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"ok \xff")
    assert "byte 0xff at 3" in refusal(text_file=tmp_path / "t.txt")
    (tmp_path / "t.txt").write_bytes(b"")
    assert "t.txt is empty" in refusal(text_file=tmp_path / "t.txt")
    assert "--text is empty" in refusal(text="")
    assert "no UTF-8" in refusal(text="a\udcff")
    assert "cannot be read" in refusal(text_file=tmp_path / "gone.txt")
    assert "cannot be read" in refusal(tokens_file=tmp_path / "gone.npy")


def test_only_one_source_may_be_given(tmp_path: Path) -> None:
    assert "--text and --random-tokens" in refusal(text="a", random_tokens=True)
    assert "--seq-len is 0" in refusal(seq_len=0)
    assert "--seed is -1" in refusal(seed=-1)


def word_pieces(folder: Path) -> Path:
    """A folder with a small byte-level tokenizer as transformers saves it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: n for n, piece in enumerate([*alphabet, "th", "the", "\u0120the"])}
    merges = [("t", "h"), ("th", "e"), ("\u0120", "the")]
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.save(str(folder / "tokenizer.json"))
    return folder


def test_the_folders_own_tokenizer_is_used(tmp_path: Path) -> None:
    folder = word_pieces(tmp_path)
    found = drawn(text="the the\n\u2192", seq_len=6, vocab_size=300, tokenizer_hint=folder)
    assert found.tokens[:3] == ("the", " the", r"\n")
    assert all(token and "\ufffd" not in token for token in found.tokens)
    assert found.ids[:2].tolist() == [257, 258]
    by_name = drawn(text="the the", seq_len=2, vocab_size=300, tokenizer=str(folder / "tokenizer.json"))
    assert by_name.tokens == ("the", " the")
    assert drawn(text="the the", seq_len=7, tokenizer="bytes", tokenizer_hint=folder).tokens[0] == "t"


def test_a_broken_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    assert "tokenizer.json is no tokenizer" in refusal(tokenizer=str(tmp_path))
    # Ids need no tokenizer to be run, so only one that was asked for by name must open.
    assert drawn(random_tokens=True, seq_len=4, tokenizer_hint=tmp_path).tokens[0].isdigit()
    assert "is no tokenizer" in refusal(random_tokens=True, seq_len=4, tokenizer=str(tmp_path))


def test_a_tokenizer_that_is_nowhere_gives_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "nothing").mkdir()
    message = refusal(tokenizer=str(tmp_path / "nothing"))
    assert "there is no tokenizer" in message
    assert "'bytes', a folder" in message


def test_opening_bytes_needs_no_files() -> None:
    assert isinstance(open_tokenizer("bytes"), ByteTokenizer)
