"""Products in pieces are numpy's products, whatever their size."""

import numpy as np
import pytest

from fedassay.calibration.products import matrix_product, row_product


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (43, 320, 43), (3, 5000, 2), (700, 3, 600), (2, 0, 3)]
)
def test_pieces_add_up_to_the_product(shape: tuple[int, int, int]) -> None:
    generator = np.random.default_rng(1)
    left, right = generator.normal(size=shape[:2]), generator.normal(size=shape[1:])
    assert matrix_product(left, right) == pytest.approx(left @ right, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (44, 800), (10_000, 3), (3, 0)])
def test_a_row_has_one_product_with_each_column(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(2)
    row, matrix = generator.normal(size=shape[0]), generator.normal(size=shape)
    assert row_product(row, matrix) == pytest.approx(row @ matrix, rel=1e-11, abs=1e-11)


def test_no_piece_is_large_enough_for_threads() -> None:
    """OpenBLAS starts them beyond 65,536 * 4 multiplications, or 2,304 * 4 entries."""

    class Watched(np.ndarray[tuple[int, ...], np.dtype[np.float64]]):
        largest = 0

        def __matmul__(self, other: np.ndarray) -> np.ndarray:  # type: ignore[override]  # of plain arrays
            work = self.size * other.shape[1]
            Watched.largest = max(Watched.largest, work)
            product: np.ndarray = np.asarray(self) @ np.asarray(other)
            return product

    matrix_product(np.ones((43, 400)).view(Watched), np.ones((400, 43)))
    assert 0 < Watched.largest <= 65_536 * 4
    Watched.largest = 0
    row_product(np.ones(44).view(Watched), np.ones((44, 800)))
    assert 0 < Watched.largest < 2_304 * 4
