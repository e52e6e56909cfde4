"""`posviz train` as a person meets it: progress, interruptions, resuming, and what is refused."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import Ran
from processes_cases import LONG, on_a_terminal, signal_group, start, until
from training_cases import SMALL, tensors, training, words, write_text

from posviz import training_run
from posviz.checkpoint import open_checkpoint

Posviz = Callable[..., Ran]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "words.txt")


def command(text: Path, out: Path, method: str = "kerple", /, **changes: object) -> list[str]:
    usual = {"method": method, "text-file": text, "out": out, **SMALL, "steps": 6}
    return ["train", *words({**usual, **changes})]


def test_a_run_writes_one_checkpoint_and_says_how_it_went(posviz: Posviz, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "c.safetensors"
    ran = posviz(*command(text, out, "t5", steps=40))
    assert ran.code == 0
    assert ran.out == f"{out}\n"
    assert [file.name for file in out.parent.iterdir()] == ["c.safetensors"]
    notes = training(out)
    assert (notes["data"], notes["steps"]) == (["words.txt"], 40)
    lines = ran.err.splitlines()
    assert len(lines) == 21  # every twentieth of the run, then the end
    assert re.fullmatch(r"step 2/40  loss \d\.\d{3}  [\d,]+ tokens/s  \d+:\d\d left", lines[0])
    assert lines[-1] == (
        f"posviz: validation loss {notes['validation_loss']} nats per byte "
        f"(of a unigram model: {notes['unigram_loss']}) after 40 steps"
    )


def test_what_is_trained_can_be_drawn(posviz: Posviz, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.safetensors"
    assert posviz(*command(text, out, "dapev2-kerple")).code == 0
    drawn = posviz("render", "--ckpt", out, "--seq-len", 16, "--out", tmp_path / "f.png")
    assert drawn.code == 0
    assert (tmp_path / "f.png").exists()


def test_several_texts_and_the_type_of_the_weights(posviz: Posviz, text: Path, tmp_path: Path) -> None:
    other, out = write_text(tmp_path / "more.txt", seed=4), tmp_path / "c.safetensors"
    ran = posviz(*command(text, out), "--text-file", other, "--save-dtype", "float16")
    assert ran.code == 0
    assert training(out)["data"] == ["words.txt", "more.txt"]
    assert {info.dtype for info in open_checkpoint(out).tensors.values()} == {"F16"}


def test_options_of_the_method_reach_it(posviz: Posviz, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.safetensors"
    assert posviz(*command(text, out, "alibi", heads=3), "--alibi-slopes", "interleaved").code == 0
    assert open_checkpoint(out).config["method_options"] == {"slopes": "interleaved"}
    assert posviz(*command(text, out, "rope"), "--rope-pairing", "neighbours").code == 0
    assert open_checkpoint(out).config["method_options"] == {"pairing": "neighbours"}


def test_snapshots_are_checkpoints_of_their_step(posviz: Posviz, text: Path, tmp_path: Path) -> None:
    ran = posviz(*command(text, tmp_path / "c.safetensors"), "--snapshot-every", 2)
    assert ran.code == 0
    snapshots = sorted(tmp_path.glob("c-step*.safetensors"))
    assert [file.name for file in snapshots] == [f"c-step{n:06d}.safetensors" for n in (2, 4, 6)]
    assert [training(file)["steps"] for file in snapshots] == [2, 4, 6]
    last, end = tensors(snapshots[-1]), tensors(tmp_path / "c.safetensors")
    assert all(np.array_equal(last[name], end[name]) for name in end)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_resumed_it_ends_with_the_weights_of_an_uninterrupted_run(
    number: signal.Signals, posviz: Posviz, text: Path, tmp_path: Path
) -> None:
    out, whole = tmp_path / "c.safetensors", tmp_path / "whole.safetensors"
    steps = {"steps": 400, "seed": 5}
    snapshot = tmp_path / "c-step000002.safetensors"
    process = start(*command(text, out, "cable", **steps), "--snapshot-every", 2)
    until(snapshot.exists, process)
    signal_group(process, number)
    said, told = process.communicate(timeout=LONG)
    assert process.returncode == 128 + number
    assert said == f"{out}\n"
    stopped = training(out)["steps"]
    assert 2 <= stopped < 400
    *_, losses, last = told.splitlines()
    assert f"after {stopped} steps" in losses
    assert last == f"posviz: stopped at step {stopped} of 400; the same command with --resume goes on"
    assert "Traceback" not in told
    ended = start(*command(text, out, "cable", **steps), "--resume")
    assert ended.wait(timeout=LONG) == 0
    assert not out.with_name("c.safetensors.resume").exists()
    assert posviz(*command(text, whole, "cable", **steps)).code == 0
    resumed, uninterrupted = tensors(out), tensors(whole)
    assert resumed.keys() == uninterrupted.keys()
    assert all(np.array_equal(resumed[name], uninterrupted[name]) for name in resumed)


def test_a_killed_run_can_be_resumed_from_what_it_kept(posviz: Posviz, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.safetensors"
    kept = tmp_path / "c.safetensors.resume"
    process = start(*command(text, out, steps=4000))
    until(kept.exists, process)
    signal_group(process, signal.SIGKILL)
    process.communicate(timeout=LONG)
    half = tmp_path / ".c.safetensors.0123456789ab.resume"
    half.write_bytes(b"half of a file")  # as if it had been killed while it was writing
    assert not out.exists()
    refused = posviz(*command(text, out, steps=50), "--resume")
    assert "was trained with steps 4000, not 50" in refused.error
    again = start(*command(text, out, steps=4000), "--resume")
    until(lambda: not half.exists(), again)
    assert "step" in str(again.stderr.readline() if again.stderr else "")  # it trains
    signal_group(again, signal.SIGINT)
    assert again.wait(timeout=LONG) == 130
    assert training(out)["steps"] > 100


def test_a_second_signal_ends_it_at_once(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with training_run.stopping() as stopped:
        assert stopped() is None
        signal.raise_signal(signal.SIGINT)
        assert stopped() == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_terminal_gets_a_bar(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.safetensors"
    code, said = on_a_terminal(*command(text, out, steps=30))
    assert code == 0
    assert "\x1b[" in said  # it is redrawn in place
    assert "━" in said
    assert re.search(r"30/30", said)
    assert re.search(r"loss.* \d\.\d{3} .*tokens/s", said)
    assert str(out) in said.replace("\r\n", "")


def test_a_run_that_was_interrupted_is_not_overwritten(posviz: Posviz, text: Path, tmp_path: Path) -> None:
    (tmp_path / "c.safetensors.resume").touch()
    refused = posviz(*command(text, tmp_path / "c.safetensors"))
    assert refused.code == 1
    assert refused.error.endswith(
        "c.safetensors.resume is of a run that was interrupted; go on with --resume, or delete it"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"resume": True}, "is not there, so there is nothing to resume; leave out --resume"),
        ({"text-file": "none.txt"}, "none.txt cannot be read: No such file or directory"),
        ({"context": 4000}, "has 6000 bytes; expected at least 8002 for a context of 4000"),
        ({"out": "c.pt"}, "c.pt does not end in .safetensors, which is how a checkpoint is written"),
        ({"out": "/proc/c.safetensors"}, "cannot write /proc/c.safetensors"),
        ({"out": "words.txt/c.safetensors"}, "a part of its folder's path is a file"),
        ({"save-dtype": "float8"}, "unknown save-dtype 'float8'"),
        ({"method": "kerpel"}, "unknown method 'kerpel'; did you mean 'kerple'?"),
        ({"method": "alibi", "alibi-slopes": "steep"}, "steep"),
        ({"method": "rope", "width": 6}, "rotary_dim is 3; expected an even number"),
        ({"heads": 5}, "--width 12 cannot be split over --heads 5"),
        ({"threads": 0}, "--threads is 0; expected 1 or more"),
        ({"snapshot-every": -1}, "--snapshot-every is -1"),
    ],
)
def test_what_is_refused_in_one_line(
    changes: dict[str, object], said: str, posviz: Posviz, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    resume = ["--resume"] if changes.pop("resume", False) else []
    refused = posviz(*command(Path("words.txt"), Path("c.safetensors"), **changes), *resume)
    assert refused.code == 1
    assert said in refused.error
    assert [file.name for file in tmp_path.iterdir()] == ["words.txt"]


def test_what_is_missing_is_wrong_usage(posviz: Posviz) -> None:
    refused = posviz("train", "--method", "kerple")
    assert refused.code == 2
    assert "--text-file" in refused.error
