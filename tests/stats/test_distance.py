import numpy as np
import pytest
from stats_cases import Source, causal, distances, noisy

from posviz.errors import PosvizError
from posviz.rows import Folding, fold
from posviz.stack import HeadStack
from posviz.stats import profile


def on_diagonal(matrix: np.ndarray, distance: int) -> np.ndarray:
    return np.diagonal(matrix, -distance)


def test_a_profile_is_the_quantiles_of_each_diagonal():
    values = noisy(2, 40)
    found = profile(causal(values))
    assert list(found.distance) == list(range(40))
    for head in range(2):
        for d in range(40):
            line = on_diagonal(values[head], d).astype(np.float64)
            assert found.count[head, d] == 40 - d
            assert found.mean[head, d] == pytest.approx(line.mean())
            expected = np.quantile(line, [0.05, 0.5, 0.95])
            assert [found.low[head, d], found.median[head, d], found.high[head, d]] == pytest.approx(list(expected))


def test_an_encoder_has_distances_on_both_sides():
    values = noisy(1, 9)
    found = profile(HeadStack(values, (1,)))
    assert list(found.distance) == list(range(-8, 9))
    assert found.median[0, 0] == pytest.approx(values[0, 0, 8])  # d = -8: the first query, the last key
    assert found.median[0, 8] == pytest.approx(np.median(np.diagonal(values[0])))


def test_a_window_leaves_far_distances_empty():
    values = np.where((distances(12) >= 0) & (distances(12) < 4), 1.0, np.nan)[None]
    found = profile(HeadStack(values, (1,)))
    assert list(found.count[0, :5]) == [12, 11, 10, 9, 0]
    assert np.isnan(found.median[0, 4:]).all()
    assert np.isnan(found.low[0, 4:]).all()


def test_a_reduced_stack_gives_the_mean_it_kept():
    values = noisy(3, 64)
    whole = profile(causal(values))
    reduced = profile(fold(Source(values), "bias", Folding(most_cells=16, profile=True)))
    assert reduced.median is None
    assert np.allclose(reduced.mean, whole.mean, atol=1e-6)
    assert np.array_equal(reduced.count, whole.count)
    assert np.array_equal(reduced.centre, reduced.mean)


def test_a_reduced_stack_without_a_profile_is_refused():
    stack = fold(Source(noisy(1, 64)), "bias", Folding(most_cells=16))
    with pytest.raises(PosvizError, match="4 x 4 positions and it holds no profile"):
        profile(stack)


def test_a_reduced_stack_that_sees_the_future_is_refused():
    stack = fold(Source(noisy(1, 64)), "bias", Folding(most_cells=16, profile=True, mask=False))
    with pytest.raises(PosvizError, match="mask is not a decoder's"):
        profile(stack)


def test_cross_attention_has_no_distance():
    with pytest.raises(PosvizError, match="5 queries look at 7 keys"):
        profile(HeadStack(np.zeros((1, 5, 7)), (1,), meta={"seq_len": 5, "key_len": 7}))
