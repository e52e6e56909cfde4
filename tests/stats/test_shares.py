import numpy as np
import pytest
from stats_cases import causal, distances, noisy

from posviz.errors import PosvizError
from posviz.stack import HeadStack
from posviz.stats import variance_shares


def test_the_shares_of_independent_parts_are_their_variances():
    content = np.array([[[1, -1, 1, -1], [1, -1, 1, -1]]]) * 3.0
    position = np.array([[[1, 1, -1, -1], [1, 1, -1, -1]]]) * 4.0
    (found,) = variance_shares(HeadStack(content + position, (1,)), HeadStack(content, (1,)))
    assert found.variance == pytest.approx(25)
    assert (found.content, found.position) == pytest.approx((9 / 25, 16 / 25))


def test_the_shares_sum_to_one():
    content = noisy(3, 24)
    scores = content - np.float32(0.4) * np.abs(distances(24)).astype(np.float32) + 0.5 * content
    for found in variance_shares(causal(scores), causal(content)):
        assert found.content + found.position == pytest.approx(1, abs=1e-12)


def test_position_that_undoes_content_has_a_negative_share():
    content = noisy(1, 12)
    (found,) = variance_shares(causal(0.5 * content), causal(content))
    assert (found.content, found.position) == pytest.approx((2, -1), abs=1e-5)


def test_scores_that_do_not_vary_have_no_shares():
    (found,) = variance_shares(causal(np.ones((1, 4, 4))), causal(noisy(1, 4)))
    assert (found.content, found.position) == (None, None)


def test_different_heads_are_refused():
    with pytest.raises(PosvizError, match="scores of heads 1 to 3 on 4 positions beside content of heads 1, 2"):
        variance_shares(causal(noisy(3, 4)), causal(noisy(2, 4)))


def test_reduced_stacks_are_refused():
    stack = HeadStack(noisy(1, 4), (1,), cell=8)
    with pytest.raises(PosvizError, match="8 x 8 positions"):
        variance_shares(stack, stack)
