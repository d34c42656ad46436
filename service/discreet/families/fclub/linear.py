"""The linear algebra of upper confidence bounds."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def upper_bounds(*, items: Floats, estimate: Floats, inverse: Floats, width: float) -> Floats:
    """Return x.estimate + width * |x|_inverse for every row x of `items`; a row for each of many
    estimates."""
    squares = np.add.reduce((items @ inverse) * items, axis=-1)
    bounds: Floats = estimate @ items.T + width * np.sqrt(np.maximum(squares, 0.0))
    return bounds


def positive(matrix: Floats, *, floor: float) -> Floats:
    """Return the nearest symmetric matrix with no eigenvalue below `floor`."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    raised: Floats = (vectors * np.maximum(values, floor)) @ vectors.T
    return raised
