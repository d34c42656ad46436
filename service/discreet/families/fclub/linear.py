"""The linear algebra of upper confidence bounds."""

import numpy as np
import numpy.typing as npt

from discreet.families.fclub.sums import folded, triangle

Floats = npt.NDArray[np.float64]

_SMALL = 12
"""Rows of a block that is inverted row by row."""
_FEW = 32
"""Blocks for which that takes longer than one by one."""

_MOST_PRODUCTS = 1 << 18
"""Numbers that are worked out ahead for the items of a catalogue: two megabytes."""


def products_of(items: Floats) -> Floats | None:
    """Return the products of each item's coordinates, by which the squares of `upper_bounds` are
    one multiplication for many estimates; None if there would be too many."""
    rows, columns = triangle(items.shape[-1])
    if len(items) * len(rows) > _MOST_PRODUCTS:
        return None
    # Those off the diagonal stand for two entries of a symmetric matrix.
    twice = np.where(rows == columns, 1.0, 2.0)
    return np.ascontiguousarray((items[:, rows] * items[:, columns] * twice).T)


def upper_bounds(
    *,
    items: Floats,
    estimate: Floats,
    inverse: Floats,
    width: float,
    products: Floats | None = None,
) -> Floats:
    """Return x.estimate + width * |x|_inverse for every row x of `items`; a row for each of many
    estimates. `products` are those of `items`, if they were worked out ahead."""
    if products is None:
        squares: Floats = np.add.reduce((items @ inverse) * items, axis=-1)
    else:
        squares = folded(inverse) @ products
    bounds: Floats = estimate @ items.T + width * np.sqrt(np.maximum(squares, 0.0))
    return bounds


def inverse_roots(matrices: Floats) -> tuple[Floats, Floats]:
    """Return T with M^-1 = T^T T for each positive definite matrix M, lower triangular, and half
    the logarithms of the determinants, each in fixed time.

    T inverts Cholesky's factor L. numpy has no routine for that, and a general one takes several
    times as long: so small blocks on the diagonal are inverted for all matrices at once, and pairs
    [[P, 0], [Q, S]] of them joined by -S^-1 Q P^-1 until there is one.
    """
    roots: Floats = np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)
    order, lead = matrices.shape[-1], matrices.shape[:-2]
    sizes = np.add.reduce(np.log(np.diagonal(roots, axis1=-2, axis2=-1)), axis=-1)
    blocks = 1 << (-(-order // _SMALL) - 1).bit_length()
    size = -(-order // blocks)
    lower: Floats = roots.reshape(-1, order, order)
    if size * blocks > order:
        lower = np.tile(np.eye(size * blocks), (len(lower), 1, 1))
        lower[:, :order, :order] = roots.reshape(-1, order, order)
    inverse = _inverted_small(_on_diagonal(lower, blocks, slice(None), slice(None)))
    while blocks > 1:
        blocks //= 2
        first, last = inverse[:, ::2], inverse[:, 1::2]
        below = _on_diagonal(lower, blocks, slice(size, None), slice(size))
        joined = np.zeros((len(lower), blocks, 2 * size, 2 * size))
        joined[..., :size, :size], joined[..., size:, size:] = first, last
        np.negative(last @ below @ first, out=joined[..., size:, :size])
        inverse, size = joined, 2 * size
    return inverse[:, 0, :order, :order].reshape(*lead, order, order), sizes


def _on_diagonal(matrices: Floats, blocks: int, rows: slice, columns: slice) -> Floats:
    """Return these rows and columns of each block on the diagonal of matrices of so many."""
    size = matrices.shape[-1] // blocks
    cut = matrices.reshape(-1, blocks, size, blocks, size)[:, :, rows, :, columns]
    return np.ascontiguousarray(np.moveaxis(np.diagonal(cut, axis1=1, axis2=3), -1, 1))


def _inverted_small(lower: Floats) -> Floats:
    """Return the inverses of small lower triangular matrices, row by row for all of them."""
    if lower.size < _FEW * lower.shape[-1] ** 2:
        return np.asarray(np.linalg.inv(lower), dtype=np.float64)
    entries = np.ascontiguousarray(np.moveaxis(lower.reshape(-1, *lower.shape[-2:]), 0, -1))
    inverse = np.zeros(entries.shape)
    for row, above in enumerate(entries):
        scale = 1.0 / above[row]
        np.multiply(
            np.einsum("in,ijn->jn", above[:row], inverse[:row, :row]),
            -scale,
            out=inverse[row, :row],
        )
        inverse[row, row] = scale
    return np.ascontiguousarray(np.moveaxis(inverse, -1, 0)).reshape(lower.shape)


def positive(matrix: Floats, *, floor: float) -> Floats:
    """Return the nearest symmetric matrix with no eigenvalue below `floor`."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    raised: Floats = (vectors * np.maximum(values, floor)) @ vectors.T
    return raised
