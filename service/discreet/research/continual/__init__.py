"""Running sums released again and again, with noise that grows like log T instead of T.

Releasing every prefix sum of a stream of T values with independent noise would cost T releases.
Each sum here instead answers with sums of a few noisy partial sums, and one step of the stream
enters few of them. All four keep one interface (`contract.ContinualSum`), state their exact
variance, and take their privacy as a noise multiplier: node noise divided by the whole stream's
sensitivity, so that the stream costs 1/(2 multiplier**2) in zCDP (1/multiplier in epsilon for
Laplace), whichever is chosen.

| sum            | standard deviation at multiplier 1, horizon 2**10, 2**16, 2**20 | memory       |
|----------------|------------------------------------------------------------------|--------------|
| `BinaryTree`   | 10.5, 16.5, 20.5 at worst, varying with the step                 | d*log2(T)    |
| `SmoothBinary` | 6.3, 9.4, 11.4, the same at every step                           | d*log2(T)    |
| `SquareRoot`   | 3.3, 4.6, 5.5 at worst, growing with the step                    | 2*d*T        |
| `Doubling`     | any of these without a known horizon                             | as its parts |

`LaplaceTree` is the tree with Laplace noise, for promises without a delta.
"""

from discreet.research.continual.contract import ContinualSum
from discreet.research.continual.doubling import Doubling, DoublingState
from discreet.research.continual.dyadic import BinaryTree, DyadicState, LaplaceTree, SmoothBinary
from discreet.research.continual.square_root import SquareRoot, SquareRootState

__all__ = [
    "BinaryTree",
    "ContinualSum",
    "Doubling",
    "DoublingState",
    "DyadicState",
    "LaplaceTree",
    "SmoothBinary",
    "SquareRoot",
    "SquareRootState",
]
