"""The trainer: every method learns, a resumed run is the same run, and a run says what it was."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from training_cases import SMALL, tensors, training, write_text

from posviz import methods
from posviz.checkpoint import open_checkpoint
from posviz.corpus import Corpus
from posviz.errors import PosvizError
from posviz.models.gpt import GPT
from posviz.train import Plan, Progress, Trainer


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus([write_text(tmp_path / "words.txt")], SMALL["context"])


def run(trainer: Trainer, until: int | None = None) -> list[Progress]:
    told: list[Progress] = []
    trainer.run(told.append, lambda: trainer.step == until, lambda: None)
    return told


@pytest.mark.parametrize("method", methods.names())
def test_every_method_learns(method: str, corpus: Corpus, tmp_path: Path) -> None:
    trainer = Trainer(Plan(method, steps=60, lr=0.02, warmup=5, **SMALL), corpus)
    before = trainer.validate()
    assert before == pytest.approx(math.log(256), abs=0.05)  # it begins without an opinion
    run(trainer)
    assert trainer.validate() < before - 2
    trainer.save(tmp_path / "c.safetensors", torch.float32)
    opened = open_checkpoint(tmp_path / "c.safetensors")
    assert opened.config["method"] == method
    moved = training(tmp_path / "c.safetensors")["moved"]
    learnt = {name for name, p in trainer.model.layer(0).attn.pos.named_parameters() if p.requires_grad}
    assert set(moved) == learnt
    assert all(way > 0 for way in moved.values())


def test_equal_plans_end_with_equal_weights_and_other_seeds_do_not(corpus: Corpus) -> None:
    plan = Plan("kerple", steps=5, **SMALL)
    ends = []
    for each in (plan, plan, replace(plan, seed=1)):
        trainer = Trainer(each, corpus)
        run(trainer)
        ends.append(trainer.model.state_dict())
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    assert not torch.equal(ends[0]["lm_head.weight"], ends[2]["lm_head.weight"])


@pytest.mark.parametrize("method", ["dapev2-fire", "rope"])
def test_a_resumed_run_is_the_same_run(method: str, corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan(method, steps=12, warmup=3, **SMALL)
    whole, first, second = (Trainer(plan, corpus) for _ in range(3))
    run(whole)
    run(first, until=7)
    first.save_state(tmp_path / "state")
    second.load_state(tmp_path / "state")
    assert second.step == 7
    run(second)
    ends = whole.model.state_dict(), second.model.state_dict()
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    assert second.loss == whole.loss
    assert second.seconds > first.seconds


def test_saving_in_between_changes_nothing(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan("fire", steps=6, **SMALL)
    quiet, saving = Trainer(plan, corpus), Trainer(plan, corpus)
    run(quiet)

    def save() -> None:
        saving.save(tmp_path / "c.safetensors", torch.float16)
        saving.save_state(tmp_path / "state")

    saving.run(lambda _: None, lambda: False, save)
    ends = quiet.model.state_dict(), saving.model.state_dict()
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_the_schedule_rises_then_falls_to_a_tenth() -> None:
    plan = Plan("none", steps=100, warmup=10, lr=1.0)
    rates = [plan.rate(step) for step in range(101)]
    assert rates[:10] == pytest.approx([0.1 * n for n in range(1, 11)])
    assert rates[10] == pytest.approx(1.0)
    assert rates[55] == pytest.approx(0.55)
    assert rates[100] == pytest.approx(0.1)
    assert all(a >= b for a, b in pairwise(rates[10:]))


def test_the_optimizer_is_fused_and_positions_are_not_decayed(corpus: Corpus) -> None:
    trainer = Trainer(Plan("fire", **SMALL), corpus)
    decayed, free = trainer.optimizer.param_groups
    assert decayed["fused"]
    assert free["fused"]
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.1, 0.0)
    names = {id(parameter): name for name, parameter in trainer.model.named_parameters()}
    assert {names[id(p)] for p in free["params"]} == {
        name for name in names.values() if ".pos." in name or ".ln_" in name or name.endswith("bias")
    }


def test_rope_attends_with_torchs_own_kernel_and_bf16_computes_in_it(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    from posviz.models import gpt

    types: list[torch.dtype] = []
    real = gpt.scaled_dot_product_attention

    def spy(q: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        types.append(q.dtype)
        return real(q, *args, **kwargs)

    monkeypatch.setattr(gpt, "scaled_dot_product_attention", spy)
    for bf16 in (True, False):
        run(Trainer(Plan("rope", steps=1, bf16=bf16, **SMALL), corpus))
    assert types == [torch.bfloat16, torch.float32]


def test_gradients_are_clipped(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    norms: list[float] = []
    trainer = Trainer(Plan("t5", steps=3, clip=0.01, **SMALL), corpus)
    step = trainer.optimizer.step

    def spy() -> None:
        squares = [p.grad.square().sum() for p in trainer.model.parameters() if p.grad is not None]
        norms.append(float(torch.stack(squares).sum().sqrt()))
        step()

    monkeypatch.setattr(trainer.optimizer, "step", spy)
    run(trainer)
    assert norms == pytest.approx([0.01] * 3, rel=1e-3)


def test_progress_counts_and_averages(corpus: Corpus) -> None:
    trainer = Trainer(Plan("none", steps=4, **SMALL), corpus)
    told = run(trainer)
    assert [p.step for p in told] == [1, 2, 3, 4]
    assert all(p.steps == 4 for p in told)
    assert all(p.tokens_per_second > 0 for p in told)
    assert [p.seconds_left > 0 for p in told] == [True, True, True, False]
    assert told[-1].loss == trainer.loss


def test_the_header_says_what_the_training_was(corpus: Corpus, tmp_path: Path) -> None:
    trainer = Trainer(Plan("cable", steps=9, seed=3, **SMALL), corpus)
    run(trainer, until=6)
    told = trainer.save(tmp_path / "c.safetensors", torch.float16)
    notes = training(tmp_path / "c.safetensors")
    assert notes.keys() == told.keys()
    assert notes["data"] == ["words.txt"]
    assert (notes["steps"], notes["planned_steps"]) == (6, 9)
    assert notes["training_loss"] == pytest.approx(trainer.loss, abs=1e-4)
    assert notes["validation_loss"] == pytest.approx(trainer.validate(), abs=1e-4)
    assert notes["unigram_loss"] == pytest.approx(corpus.unigram_loss(), abs=1e-4)
    assert notes["plan"]["seed"] == 3
    config = open_checkpoint(tmp_path / "c.safetensors").config
    shape = {key: config[key] for key in ("method", "n_layer", "n_head", "n_embd", "block_size", "vocab_size")}
    assert shape == {"method": "cable", "n_layer": 1, "n_head": 2, "n_embd": 12, "block_size": 16, "vocab_size": 256}
    assert config["tokenizer"] == "bytes"


def test_a_checkpoint_of_no_steps_has_no_training_loss(corpus: Corpus, tmp_path: Path) -> None:
    trainer = Trainer(Plan("none", steps=2, **SMALL), corpus)
    assert trainer.save(tmp_path / "c.safetensors", torch.float32)["training_loss"] is None


@pytest.mark.parametrize(
    ("dtype", "stored"), [(torch.float32, "F32"), (torch.float16, "F16"), (torch.bfloat16, "BF16")]
)
def test_weights_are_stored_in_the_type_that_is_asked_for(
    dtype: torch.dtype, stored: str, corpus: Corpus, tmp_path: Path
) -> None:
    trainer = Trainer(Plan("kerple", steps=1, **SMALL), corpus)
    run(trainer)
    trainer.save(tmp_path / "c.safetensors", dtype)
    opened = open_checkpoint(tmp_path / "c.safetensors")
    assert {info.dtype for info in opened.tensors.values()} == {stored}
    own = trainer.model.state_dict()
    for name, values in tensors(tmp_path / "c.safetensors").items():
        assert np.array_equal(values, own[name].to(dtype).float().numpy())


def test_what_moved_is_the_root_mean_square_over_the_layers(corpus: Corpus) -> None:
    plan = Plan("kerple", steps=1, **{**SMALL, "layers": 2})
    trainer = Trainer(plan, corpus)
    assert trainer.moved() == {"bias_p": 0.0, "bias_a": 0.0}
    with torch.no_grad():
        trainer.model.layer(0).attn.pos.bias_p.add_(3.0)
        trainer.model.layer(1).attn.pos.bias_p.sub_(4.0)
    assert trainer.moved() == {"bias_p": pytest.approx(math.sqrt(12.5), abs=1e-4), "bias_a": 0.0}
    assert isinstance(trainer.model, GPT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "--steps is 0; expected 1 or more"),
        ({"seed": -1}, "--seed is -1; expected 0 or more"),
        ({"lr": 0.0}, "--lr is 0.0; expected a number above 0"),
        ({"lr": float("nan")}, "--lr is nan; expected a number above 0"),
        ({"heads": 5}, "--width 12 cannot be split over --heads 5; expected a multiple"),
        ({"method": "kerpel"}, "unknown method 'kerpel'; did you mean 'kerple'?"),
    ],
)
def test_a_plan_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(PosvizError) as caught:
        Plan(**{"method": "kerple", **SMALL, **changes})
    assert str(caught.value).startswith(message)


def test_a_loss_that_is_no_number_stops_the_run(corpus: Corpus) -> None:
    trainer = Trainer(Plan("none", steps=3, **SMALL), corpus)
    with torch.no_grad():
        trainer.model.lm_head.weight[0, 0] = float("nan")
    with pytest.raises(PosvizError, match="the loss became nan at step 0; try a smaller --lr or --no-bf16"):
        run(trainer)


def test_what_cannot_be_resumed_from(corpus: Corpus, tmp_path: Path) -> None:
    plan = Plan("kerple", steps=3, **SMALL)
    state = tmp_path / "state"
    Trainer(plan, corpus).save_state(state)
    with pytest.raises(PosvizError, match="was trained with steps 3, not 4; resume with the same options"):
        Trainer(replace(plan, steps=4), corpus).load_state(state)
    other = Corpus([write_text(tmp_path / "other.txt", seed=5)], SMALL["context"])
    with pytest.raises(PosvizError, match="was trained on other text; resume with the same --text-file"):
        Trainer(plan, other).load_state(state)
    torch.save({"something": 1}, tmp_path / "foreign")
    (tmp_path / "broken").write_bytes(state.read_bytes()[:200])
    for name in ("foreign", "broken"):
        with pytest.raises(PosvizError, match=r"cannot be resumed from .*; delete it to begin again") as caught:
            Trainer(plan, corpus).load_state(tmp_path / name)
        assert "\n" not in str(caught.value)
