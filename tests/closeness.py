"""How near is near enough."""

from __future__ import annotations

import numpy as np

# Of the largest magnitude. A float32 carries 6e-8, and a sum over some hundred products loses one or two digits of
# that; a colour map has 256 steps, so an error of this size moves no more than one cell in four hundred by one step.
TOLERANCE = 1e-5


def assert_near(found: np.ndarray, wanted: np.ndarray, tolerance: float = TOLERANCE) -> None:
    """NaN in the same places, and elsewhere no farther apart than this share of the largest magnitude."""
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    error = np.nanmax(np.abs(found.astype(np.float64) - wanted))
    assert error <= tolerance * np.nanmax(np.abs(wanted)), f"off by {error}"
