import itertools

import numpy as np
import pytest
from stats_cases import alibi, causal, distances, noisy

from posviz.stack import HeadStack
from posviz.stats import head_stats

AWAY = np.abs(distances(512)).astype(np.float32)
SLOPES = 2.0 ** (-8 * np.arange(1, 13) / 12)


def fit_of(values: np.ndarray):
    return head_stats(causal(values.astype(np.float32)[None]))[0].fit


def test_alibi_slopes_come_back():
    for slope, stats in zip(SLOPES, head_stats(alibi(SLOPES, 512)), strict=True):
        assert stats.fit.best == "linear"
        assert stats.fit.linear.scale == pytest.approx(slope, abs=1e-6)
        assert stats.fit.linear.intercept == pytest.approx(0, abs=1e-6)
        assert stats.fit.linear.r2 == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("p", "a"), list(itertools.product([0.01, 0.2, 1, 5], [0.01, 0.3, 1, 10])))
def test_kerple_comes_back(p: float, a: float):
    found = fit_of(-np.float32(p) * np.log(1 + np.float32(a) * AWAY))
    assert found.best == "log"
    assert found.log.scale == pytest.approx(p, abs=1e-3 * p)
    assert found.log.shaped_by == pytest.approx(a, abs=1e-3 * a)
    assert not found.log.at_limit


@pytest.mark.parametrize(("p", "a"), list(itertools.product([0.05, 0.5, 1.7], [0.01, 1, 10])))
def test_kerple_power_comes_back(p: float, a: float):
    found = fit_of(-np.float32(a) * AWAY ** np.float32(p))
    assert found.best == "power"
    assert found.power.shaped_by == pytest.approx(p, abs=1e-3 * p)
    assert found.power.scale == pytest.approx(a, abs=1e-3 * a)


def test_an_offset_goes_into_the_intercept():
    found = fit_of(3 - 0.7 * np.log(1 + 2 * AWAY))
    assert found.log.intercept == pytest.approx(3, abs=1e-4)
    assert found.log.scale == pytest.approx(0.7, abs=1e-3)
    assert found.log.shaped_by == pytest.approx(2, abs=1e-2)


def test_a_line_is_preferred_to_the_power_one_that_equals_it():
    found = fit_of(-0.25 * AWAY)
    assert found.power.r2 == pytest.approx(found.linear.r2, abs=1e-9)
    assert found.best == "linear"
    assert found.log.at_limit


def test_r2_is_the_profile_s_weighted_by_how_often_a_distance_occurs():
    values = noisy(1, 24)[0] - 0.3 * np.sqrt(np.abs(distances(24)))
    found = fit_of(values)
    d = np.arange(24)
    mean = np.array([np.diagonal(values, -k).mean() for k in d])
    slope, intercept = np.polyfit(d, mean, 1, w=np.sqrt(24 - d))
    left = np.sum((24 - d) * (mean - slope * d - intercept) ** 2)
    around = np.sum((24 - d) * (mean - np.average(mean, weights=24 - d)) ** 2)
    assert found.linear.scale == pytest.approx(-slope, abs=1e-6)
    assert found.linear.r2 == pytest.approx(1 - left / around, abs=1e-6)


def test_both_sides_of_an_encoder_count():
    found = head_stats(HeadStack(-0.5 * np.abs(distances(32))[None], (1,)))[0].fit
    assert found.best == "linear"
    assert found.linear.scale == pytest.approx(0.5, abs=1e-6)


def test_a_constant_is_a_line_without_slope():
    found = fit_of(np.full((16, 16), 2.5))
    assert found.best == "linear"
    assert (found.linear.scale, found.linear.intercept, found.linear.r2) == (0, 2.5, 1)
    assert found.to_json()["log"] is None


def test_one_distance_has_no_fit():
    assert fit_of(np.zeros((1, 1))) is None


def test_the_json_has_the_methods_own_names():
    data = fit_of(-2 * np.log(1 + 0.5 * AWAY)).to_json()
    assert data["best"] == "log"
    assert data["log"]["p"] == pytest.approx(2, abs=1e-3)
    assert data["log"]["a"] == pytest.approx(0.5, abs=1e-3)
    assert set(data["linear"]) == {"slope", "intercept", "r2"}


@pytest.mark.parametrize("law", [lambda d: 1 - 0.2 * d, lambda d: 2 - 0.7 * np.log1p(3 * d), lambda d: -0.3 * d**0.4])
def test_the_best_curve_runs_through_the_values_it_was_fitted_to(law):
    found = fit_of(law(AWAY))
    far = np.array([-3, 0, 1, 40, 511])
    assert found.curve(far) == pytest.approx(law(np.abs(far).astype(float)), abs=1e-4)
