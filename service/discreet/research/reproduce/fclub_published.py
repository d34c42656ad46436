"""What the paper on CDP-FCLUB-DC prints, and what its authors' program does.

The paper's figures of regret and communication have no numbers. The authors' program
(github.com/ZhaoHaoRu/Federated-Clustering-of-Bandits), run by us with 3 seeds in the environment of
section E.1, has the regrets below after 100,000 rounds. Where they differ from those of the
published algorithm, that was traced to a line of the program:

- `club`: edges are deleted at alpha = 0.25, everywhere else at 1.5. That soon leaves every user
  alone, so its CLUB is LinUCB.
- `sclub`: it splits at alpha = 1.5, and of the clusters of a server the last is never merged.
- `homo-dc`: servers are merged only if a test has failed which always succeeds, so every server has
  a model of its own, and where it holds one taste it does well.
- `cdp-fclub-dc`: noise is added to copies that are set to zero before they are used, and to the
  test for an upload, not to what is uploaded.
"""

from collections.abc import Mapping
from typing import Any

SYNTHETIC_MS: Mapping[str, float] = {
    "cdp-fclub-dc": 1.707,
    "fclub-dc": 1.814,
    "fclub": 58.870,
    "sclub": 3.805,
    "club": 0.779,
    "linucb": 0.647,
    "homo-dc": 1.277,
    "homo": 29.265,
}
MOVIELENS_MS: Mapping[str, float] = {
    "cdp-fclub-dc": 1.667,
    "fclub-dc": 1.892,
    "fclub": 83.492,
    "sclub": 3.855,
    "club": 0.776,
    "linucb": 0.654,
    "homo-dc": 1.301,
    "homo": 35.645,
}
AUTHORS_PROGRAM: Mapping[str, Mapping[str, float]] = {
    "blocks": {
        "cdp-fclub-dc": 605,
        "fclub-dc": 617,
        "fclub": 645,
        "sclub": 1359,
        "club": 1589,
        "linucb": 1588,
        "homo-dc": 4232,
        "homo": 12736,
    },
    "mixed": {
        "cdp-fclub-dc": 2025,
        "fclub-dc": 1721,
        "sclub": 1575,
        "linucb": 1567,
        "homo-dc": 13706,
    },
    "communications": {"cdp-fclub-dc": 1700, "fclub-dc": 15800, "fclub": 100000},
    "epsilon": {"0.5": 662, "1": 605, "2": 567, "4": 653, "8": 747},
}
PUBLISHED: Mapping[str, Any] = {
    "setting": "n=40, m=4, L=5, d=10, K=10, U=D=1.01, epsilon=1, delta=0.1",
    "table_3_ms_per_round": dict(SYNTHETIC_MS),
    "table_3_ms_per_round_movielens": dict(MOVIELENS_MS),
    "authors_program": {
        "note": "their program run by us, 3 seeds, 100,000 rounds; its noise never reaches a "
        "recommendation",
        **{name: dict(values) for name, values in AUTHORS_PROGRAM.items()},
    },
}
