"""Text to train on: what is held out, what a batch depends on, and what a unigram model would lose."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from training_cases import write_text

from posviz.corpus import Corpus
from posviz.errors import SequenceError


def test_the_end_of_every_file_is_held_out(tmp_path: Path) -> None:
    first, second = write_text(tmp_path / "a.txt", 4000, seed=1), write_text(tmp_path / "b.txt", 2000, seed=2)
    corpus = Corpus([first, second], context=16)
    one, two = first.read_bytes(), second.read_bytes()
    assert corpus.train.tobytes() == one[:3800] + two[:1900]
    assert corpus.held_out.tobytes() == one[3800:] + two[1900:]
    assert corpus.names == ["a.txt", "b.txt"]


def test_a_short_text_still_has_one_window_of_each_kind(tmp_path: Path) -> None:
    corpus = Corpus([write_text(tmp_path / "t.txt", 34)], context=16)
    assert len(corpus.train) == len(corpus.held_out) == 17
    assert [rows.shape for rows in corpus.held_out_batches(4, 17)] == [(1, 17)]


def test_a_batch_is_made_of_windows_of_the_training_text(tmp_path: Path) -> None:
    corpus = Corpus([write_text(tmp_path / "t.txt")], context=16)
    rows = corpus.batch(8, 17, seed=(3, 5))
    assert rows.shape == (8, 17)
    assert rows.dtype == np.int64
    text = corpus.train.tobytes()
    assert all(bytes(row.astype(np.uint8)) in text for row in rows)


def test_a_batch_depends_on_its_seed_and_on_nothing_else(tmp_path: Path) -> None:
    corpus = Corpus([write_text(tmp_path / "t.txt")], context=16)
    first = corpus.batch(4, 17, seed=(0, 7))
    corpus.batch(4, 17, seed=(0, 8))
    assert np.array_equal(first, corpus.batch(4, 17, seed=(0, 7)))
    assert not np.array_equal(first, corpus.batch(4, 17, seed=(0, 8)))
    assert not np.array_equal(first, corpus.batch(4, 17, seed=(1, 7)))


def test_the_last_window_can_be_drawn(tmp_path: Path) -> None:
    corpus = Corpus([write_text(tmp_path / "t.txt", 40)], context=16)
    starts = {bytes(corpus.batch(1, 17, seed=(0, n))[0].astype(np.uint8)) for n in range(400)}
    assert corpus.train[-17:].tobytes() in starts


def test_validation_takes_the_same_windows_each_time_and_never_more_than_64(tmp_path: Path) -> None:
    corpus = Corpus([write_text(tmp_path / "t.txt", 60_000)], context=16)
    batches = list(corpus.held_out_batches(10, 17))
    assert sum(len(rows) for rows in batches) == 64
    assert all(np.array_equal(a, b) for a, b in zip(batches, corpus.held_out_batches(10, 17), strict=True))
    text = corpus.held_out.tobytes()
    assert all(bytes(row.astype(np.uint8)) in text for rows in batches for row in rows)
    assert batches[-1][-1].astype(np.uint8).tobytes() == text[-17:]


def test_the_unigram_loss_is_that_of_counting_bytes(tmp_path: Path) -> None:
    corpus = Corpus([write_text(tmp_path / "t.txt")], context=16)
    counts, total = Counter(corpus.train.tobytes()), len(corpus.train) + 256
    losses = [-math.log((counts[byte] + 1) / total) for byte in corpus.held_out.tobytes()]
    assert corpus.unigram_loss() == pytest.approx(sum(losses) / len(losses))


def test_other_text_has_another_fingerprint(tmp_path: Path) -> None:
    same = [Corpus([write_text(tmp_path / name, seed=1)], 16).fingerprint() for name in ("a.txt", "b.txt")]
    assert same[0] == same[1]
    assert Corpus([write_text(tmp_path / "c.txt", seed=2)], 16).fingerprint() != same[0]


def test_text_that_cannot_be_trained_on(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    short = write_text(tmp_path / "short.txt", 33)
    with pytest.raises(SequenceError, match=r"empty\.txt is empty; expected text to train on"):
        Corpus([tmp_path / "empty.txt"], 16)
    with pytest.raises(SequenceError, match=r"none\.txt cannot be read: No such file"):
        Corpus([tmp_path / "none.txt"], 16)
    with pytest.raises(SequenceError, match="cannot be read: Is a directory"):
        Corpus([tmp_path], 16)
    with pytest.raises(SequenceError, match="has 33 bytes; expected at least 34 for a context of 16"):
        Corpus([short], 16)
