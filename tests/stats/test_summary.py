import json
import math

import numpy as np
import pytest
from stats_cases import Source, alibi, causal, distances, noisy

from posviz.errors import PosvizError
from posviz.rows import Folding, fold
from posviz.stack import HeadStack
from posviz.stats import head_stats

SLOPES = 2.0 ** (-8 * np.arange(1, 13) / 12)


def geometric_reach(slope: float, keys: int, share: float) -> int:
    """The least d with (1 - r^(d+1)) / (1 - r^n) >= share, for r = exp(-slope): the partial sum solved for d."""
    r = math.exp(-slope)
    return math.ceil(math.log(1 - share * (1 - r**keys)) / math.log(r)) - 1


def geometric_entropy(slope: float, keys: int) -> float:
    """log Z + slope * E[d] of the weights r^d / Z, d = 0 .. n-1."""
    r = math.exp(-slope)
    mean_distance = r / (1 - r) - keys * r**keys / (1 - r**keys)
    return math.log((1 - r**keys) / (1 - r)) + slope * mean_distance


def test_alibi_reach_and_entropy_are_those_of_the_geometric_series():
    length = 512
    for slope, stats in zip(SLOPES, head_stats(alibi(SLOPES, length)), strict=True):
        for name, share in (("reach50", 0.5), ("reach90", 0.9)):
            each = [geometric_reach(slope, n, share) for n in range(1, length + 1)]
            assert getattr(stats, name) == np.median(each)
            assert stats.last[name] == geometric_reach(slope, length, share)
        each = [geometric_entropy(slope, n) for n in range(1, length + 1)]
        assert stats.entropy == pytest.approx(np.mean(each), abs=1e-6)
        assert stats.last["entropy"] == pytest.approx(geometric_entropy(slope, length), abs=1e-6)


def test_alibi_sink_and_previous_are_terms_of_the_series():
    (stats,) = head_stats(alibi(np.array([0.25]), 64))
    r = math.exp(-0.25)
    total = {n: (1 - r ** (n + 1)) / (1 - r) for n in range(64)}
    assert stats.sink == pytest.approx(np.mean([r**n / total[n] for n in range(1, 64)]))
    assert stats.previous == pytest.approx(np.mean([r / total[n] for n in range(1, 64)]))
    assert stats.last["sink"] == pytest.approx(r**63 / total[63])


def test_equal_weights_spend_half_on_half():
    (stats,) = head_stats(causal(np.full((1, 10, 10), 3.0)))
    assert stats.last["reach50"] == 4  # five keys of ten, though 5 x 0.1 is not quite 0.5
    assert stats.last["reach90"] == 8
    assert stats.last["entropy"] == pytest.approx(math.log(10))
    assert stats.entropy == pytest.approx(np.mean(np.log(np.arange(1, 11))))
    assert stats.sink == pytest.approx(np.mean(1 / np.arange(2, 11)))


@pytest.mark.parametrize(
    ("diagonal", "below", "expected"), [((0, 2), 1, 0.0), ((0, 2), 4, 0.75), ((5, 5), 1, 1.0), ((3, 3), 3, 1.0)]
)
def test_uniformity_by_hand(diagonal: tuple[float, float], below: float, expected: float):
    values = np.array([[[diagonal[0], 0], [below, diagonal[1]]]])
    assert head_stats(causal(values))[0].uniformity == pytest.approx(expected)


def test_functions_of_distance_have_uniformity_one_in_every_printed_digit():
    d = np.abs(distances(512)).astype(np.float32)
    table = noisy(1, 32)[0, 0]
    kinds = [-0.4 * d, -0.7 * np.log1p(0.3 * d), table[np.minimum(31, np.sqrt(2 * d)).astype(int)], 100 - 0.01 * d]
    for stats in head_stats(causal(np.stack(kinds))):
        assert f"{stats.uniformity:.9f}" == "1.000000000"


def test_uniformity_is_the_share_between_distances():
    values = noisy(1, 30)[0] - 0.2 * distances(30)
    lines = [np.diagonal(values, -d).astype(np.float64) for d in range(30)]
    every = np.concatenate(lines)
    between = sum(len(line) * (line.mean() - every.mean()) ** 2 for line in lines)
    expected = between / np.sum((every - every.mean()) ** 2)
    assert head_stats(causal(values[None]))[0].uniformity == pytest.approx(expected, abs=1e-6)
    assert 0.5 < expected < 0.95


def test_extremes_are_placed_and_named():
    values = noisy(1, 6)
    values[0, 4, 1], values[0, 5, 3] = 50, -50
    values[0, 0, 5] = 900  # in the future, where nobody looks
    (stats,) = head_stats(causal(values, tokens=tuple("abcdef"), meta={"layer": 3, "method": "x", "quantity": "bias"}))
    data = stats.to_json()
    assert (data["min"], data["max"]) == (-50, 50)
    assert data["max_at"] == {"query": 4, "key": 1, "distance": 3, "tokens": ["e", "b"]}
    assert data["min_at"] == {"query": 5, "key": 3, "distance": 2, "tokens": ["f", "d"]}
    assert data["mean"] == pytest.approx(values[0][distances(6) >= 0].mean(), abs=1e-5)
    assert (data["layer"], data["method"], data["quantity"]) == (3, "x", "bias")


def test_attention_is_not_softmaxed_again():
    scores = np.where(distances(20) >= 0, noisy(1, 20)[0], -np.inf).astype(np.float64)
    attention = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    (direct,) = head_stats(causal(attention[None], meta={"quantity": "attention"}))
    (through,) = head_stats(causal(noisy(1, 20), meta={"quantity": "scores"}))
    for name in ("reach50", "reach90", "entropy", "sink", "previous"):
        assert getattr(direct, name) == pytest.approx(getattr(through, name), abs=1e-6)


def test_reach_of_an_encoder_counts_both_sides():
    (stats,) = head_stats(HeadStack(np.zeros((1, 9, 9)), (1,), meta={"quantity": "bias"}))
    each = [min(d for d in range(9) if sum(abs(i - j) <= d for j in range(9)) >= 4.5) for i in range(9)]
    assert stats.reach50 == np.median(each)
    assert stats.last["reach50"] == each[-1] == 4


def test_a_query_that_sees_nothing_is_left_out():
    values = np.zeros((1, 4, 4), dtype=np.float32)
    values[0, 3] = np.nan
    values[0][distances(4) < 0] = np.nan
    (stats,) = head_stats(HeadStack(values, (1,)))
    assert stats.entropy == pytest.approx(np.mean(np.log([1, 2, 3])))
    assert stats.last["entropy"] == pytest.approx(math.log(3))


def test_minus_infinity_is_not_seen():
    values = np.where(distances(5) >= 0, 1.0, -np.inf)[None]
    (stats,) = head_stats(HeadStack(values, (1,)))
    assert (stats.min, stats.uniformity) == (1, 1)
    assert stats.last["entropy"] == pytest.approx(math.log(5))


def test_the_json_has_the_promised_keys_and_is_json():
    data = head_stats(alibi(np.array([0.5]), 8))[0].to_json()
    names = {"head", "layer", "method", "quantity", "min", "max", "mean", "uniformity", "fit"}
    assert names | {"reach50", "reach90", "entropy", "sink", "previous"} <= set(data)
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_a_reduced_stack_tells_what_it_knows_and_says_what_not():
    d = distances(96)
    values = (-0.03 * np.abs(d)).astype(np.float32)[None]
    (whole,) = head_stats(causal(values))
    (stats,) = head_stats(fold(Source(values), "bias", Folding(most_cells=16, profile=True)))
    assert (stats.min, stats.max) == (whole.min, whole.max)
    assert stats.mean == pytest.approx(whole.mean)
    assert stats.fit.linear.scale == pytest.approx(0.03, abs=1e-6)
    assert stats.uniformity is None
    assert stats.reach50 is None
    assert stats.min_at is None
    assert "6 x 6 positions" in stats.note


def test_a_reduced_stack_without_profile_has_extremes_alone():
    (stats,) = head_stats(fold(Source(noisy(1, 64)), "bias", Folding(most_cells=16)))
    assert (stats.mean, stats.fit) == (None, None)
    assert stats.max > stats.min


def test_cross_attention_has_entropy_but_no_reach():
    (stats,) = head_stats(HeadStack(np.zeros((1, 5, 7)), (1,), meta={"seq_len": 5, "key_len": 7}))
    assert stats.entropy == pytest.approx(math.log(7))
    assert (stats.reach50, stats.previous, stats.uniformity, stats.fit) == (None, None, None, None)
    assert "two sequences" in stats.note


def test_a_blank_head_is_refused_by_number():
    values = np.zeros((2, 4, 4), dtype=np.float32)
    values[1] = np.nan
    with pytest.raises(PosvizError, match="head 7 has no finite value"):
        head_stats(HeadStack(values, (3, 7)))


def test_one_position_is_measured_without_a_past():
    (stats,) = head_stats(HeadStack(np.zeros((1, 1, 1)), (1,)))
    assert (stats.reach50, stats.entropy, stats.sink, stats.previous, stats.fit) == (0, 0, None, None, None)
