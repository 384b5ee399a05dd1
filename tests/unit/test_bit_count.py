import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedassay.mechanisms.bit_count import count_bits


def unpacked(rows: npt.NDArray[np.uint8]) -> list[int]:
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    columns: list[int] = bits.sum(axis=0, dtype=np.int64).tolist()
    return columns


def drawn(count: int, width: int, *, seed: int, density: int = 256) -> npt.NDArray[np.uint8]:
    generator = np.random.default_rng(seed)
    rows = generator.integers(0, 256, (count, width), dtype=np.uint8)
    keep = generator.integers(0, 256, (count, width), dtype=np.int64) < density
    return rows * keep.astype(np.uint8)


@given(
    count=st.integers(0, 600),
    width=st.integers(1, 40),
    seed=st.integers(0, 9),
    density=st.sampled_from([3, 128, 256]),
)
def test_bits_are_counted_as_if_unpacked(count: int, width: int, seed: int, density: int) -> None:
    rows = drawn(count, width, seed=seed, density=density)
    assert count_bits(rows).tolist() == unpacked(rows)


@pytest.mark.parametrize(
    ("count", "width"),
    [
        # A lane is the multiple of 8 rows that comes nearest to 2^17 bytes from below, or 8 rows.
        (3 * 2**17, 1),
        (5 * 2**17 + 77, 1),
        (4 * 43_688 + 5, 3),
        (9 * 10_080 + 1, 13),
        (11 * 1016 + 3, 129),
        (64 * 8, 2**14),
        (7 * 8 + 3, 2**14 - 1),
        (40, 2**17 + 1),
    ],
    ids=str,
)
def test_bits_are_counted_as_if_unpacked_when_the_adders_run(count: int, width: int) -> None:
    rows = drawn(count, width, seed=count)
    assert count_bits(rows).tolist() == unpacked(rows)


@pytest.mark.parametrize("lanes", [3, 4, 7, 8, 15, 16, 17, 33])
def test_carries_run_through_every_digit(lanes: int) -> None:
    rows = np.full((lanes * 16, 2**13), 0xFF, dtype=np.uint8)
    assert set(count_bits(rows).tolist()) == {lanes * 16}


def test_rows_that_do_not_lie_next_to_each_other_are_counted_too() -> None:
    rows = drawn(3000, 300, seed=4)[::2, ::3]
    assert count_bits(rows).tolist() == unpacked(rows)


def test_counting_does_not_change_the_rows() -> None:
    rows = drawn(64, 2**14, seed=5)
    before = rows.copy()
    rows.flags.writeable = False
    count_bits(rows)
    assert np.array_equal(rows, before)
