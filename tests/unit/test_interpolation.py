"""Rows that rise, against scipy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from fedassay.interpolation import nearest_rising


@given(st.lists(st.one_of(st.floats(-1e6, 1e6), st.integers(-3, 3).map(float)), min_size=1))
def test_the_nearest_rising_row_is_that_of_scipy(values: list[float]) -> None:
    """Ties and long falls included."""
    row = np.array(values)
    found = nearest_rising(row)
    np.testing.assert_allclose(found, isotonic_regression(row).x, rtol=1e-9, atol=1e-6)
    assert (np.diff(found) >= 0.0).all()
