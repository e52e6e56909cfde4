"""What cannot be captured is refused in words; and the one bias that needs no checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import formulas
import pytest
from closeness import assert_near
from small_models import config_of, model_of, saved

from posviz import methods
from posviz.errors import MethodError, PosvizError
from posviz.options import CaptureRequest
from posviz.session import Session
from posviz.stack import HeadStack


def taken(path: Path, **options: Any) -> HeadStack:
    request = CaptureRequest(ckpt=str(path), **options)
    return Session([request]).stack(request)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {m: saved(model_of(config_of(m)), folder / f"{m}.safetensors") for m in ("kerple", "rope", "none")}


@pytest.mark.parametrize("method", ["rope", "none"])
def test_no_bias_is_explained(method: str, paths: dict[str, Path]) -> None:
    title = methods.get(method).title
    wanted = f"{title} adds no bias to the scores; ask for --quantity scores, content or attention"
    with pytest.raises(MethodError, match=wanted):
        taken(paths[method], quantity="bias", seq_len=20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantity": "score"}, "unknown quantity 'score'; did you mean 'scores'?"),
        ({"seq_len": 0}, "seq-len is 0; expected 1 or more"),
        ({"reduce": "median"}, "unknown reduction 'median'"),
        ({"heads": "13"}, "there is no head 13; the layer has heads 1 to 12"),
        ({"heads": "0"}, "there is no head 0;"),
        ({"heads": "a"}, "heads 'a': 'a' is no number or range"),
        ({"heads": "4-2"}, "heads '4-2': '4-2' counts down"),
        ({"verify": True}, "a bias alone runs no attention to verify against"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(
    options: dict[str, Any], message: str, paths: dict[str, Path]
) -> None:
    with pytest.raises(PosvizError) as raised:
        taken(paths["kerple"], **options)
    assert message in str(raised.value)


def test_alibi_needs_no_checkpoint_but_the_rest_of_a_model_does() -> None:
    request = CaptureRequest(method="alibi", n_head=12, alibi_slopes="interleaved")
    stack = Session([request]).stack(request)
    assert_near(stack.values, formulas.alibi({}, 12, 512, "interleaved"))
    assert stack.meta["source"] == "alibi formula"
    assert stack.meta["sha256"] is None
    for wrong, message in [
        ({"n_head": 0}, "n-head is 0; expected 1 or more"),
        ({"n_head": 12, "quantity": "scores"}, "scores depends on the tokens and needs a checkpoint; say --ckpt"),
        ({"n_head": 12, "alibi_slopes": "steep"}, "'steep' of alibi: expected geometric or interleaved"),
    ]:
        request = CaptureRequest(method="alibi", **wrong)
        with pytest.raises(PosvizError, match=message):
            Session([request]).stack(request)
