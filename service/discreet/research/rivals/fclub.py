"""Rivals that share nothing between servers: LinUCB, CLUB, SCLUB. For comparison only.

- LinUCB (Abbasi-Yadkori, Pal and Szepesvari, NeurIPS 2011): one model a user.
- CLUB (Gentile, Li and Zappella, ICML 2014), one a server: a graph over users that loses the edges
  of the user at hand when estimates are too far apart; a component's users share their sums.
- SCLUB (Li, Chen and Leung, IJCAI 2019), one a server: clusters as sets, which lose a user whose
  estimate is far from theirs and join when theirs are close. The frequency test of SCLUB is left
  out: users arrive equally often in these experiments.

FCLUB, FCLUB-DC, Homo and Homo-DC are the published algorithm without some of its parts
(`discreet.research.published.fclub`).
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.research.published.fclub import RIDGE, certainty, radius
from discreet.research.published.linear_bank import LinearBank
from discreet.research.published.similarity_graph import Graph

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


def _certain(count: float) -> float:
    """Return F(T) of one count; numpy is slow with single numbers."""
    return math.sqrt((1 + math.log1p(count)) / (1 + count))


class LinUCB:
    """Everybody alone."""

    communications = 0

    def __init__(
        self, *, servers: Sequence[int], dimensions: int, rounds: int, confidence: float = 0.05
    ) -> None:
        self.servers = np.asarray(servers, dtype=np.int64)
        self.users = LinearBank(models=len(self.servers), dimensions=dimensions, ridge=RIDGE)
        self._d, self._confidence = dimensions, confidence
        self._failure = 1 / (8 * rounds) / len(self.servers)

    def choose(self, user: int, items: Floats) -> int:
        """Return the item with the user's largest upper bound."""
        return self.users.choose(user, items, self.width(float(self.users.count[user])))

    def learn(self, user: int, x: Floats, y: float) -> None:
        """Update the user."""
        self.users.add(user, x, y)

    def width(self, count: float) -> float:
        """Return the scaled confidence radius after so many observations."""
        return self._confidence * radius(
            count=count,
            dimensions=self._d,
            failure=self._failure,
            sharing=1,
            least=RIDGE,
            most=RIDGE,
        )


class _Shared(LinUCB):
    """Users of a cluster share one model; `home` says which."""

    def __init__(
        self, *, servers: Sequence[int], dimensions: int, rounds: int, confidence: float = 0.05
    ) -> None:
        super().__init__(
            servers=servers, dimensions=dimensions, rounds=rounds, confidence=confidence
        )
        users = len(self.servers)
        self.models = LinearBank(models=users, dimensions=dimensions, ridge=RIDGE)
        # A cluster lives in the place of its first user.
        self.home: Labels = np.array(
            [np.flatnonzero(self.servers == server)[0] for server in self.servers]
        )

    def choose(self, user: int, items: Floats) -> int:
        """Return the item with the cluster's largest upper bound."""
        home = self.home[user]
        return self.models.choose(home, items, self.width(float(self.models.count[home])))

    def learn(self, user: int, x: Floats, y: float) -> None:
        """Update the user and the cluster."""
        self.users.add(user, x, y)
        self.models.add(self.home[user], x, y)

    def _gather(self, members: Labels) -> None:
        """Make these users one cluster, from their own sums."""
        self.home[members] = members[0]
        extra = (len(members) - 1) * RIDGE * np.eye(self._d)
        self.models.replace(
            int(members[0]),
            gram=self.users.gram[members].sum(axis=0) - extra,
            moment=self.users.moment[members].sum(axis=0),
            count=float(self.users.count[members].sum()),
        )


class CLUB(_Shared):
    """Clusters by deletion of edges, on every server for itself."""

    def __init__(
        self,
        *,
        servers: Sequence[int],
        dimensions: int,
        rounds: int,
        confidence: float = 0.05,
        delete: float = 2.0,
    ) -> None:
        super().__init__(
            servers=servers, dimensions=dimensions, rounds=rounds, confidence=confidence
        )
        self._delete = delete
        self._people = [
            np.flatnonzero(self.servers == one) for one in range(int(self.servers.max()) + 1)
        ]
        self._graphs = [Graph(len(people)) for people in self._people]
        self._place = np.zeros(len(self.servers), dtype=np.int64)
        for people in self._people:
            self._place[people] = np.arange(len(people))

    def learn(self, user: int, x: Floats, y: float) -> None:
        """Update, and delete edges of this user that no longer hold."""
        super().learn(user, x, y)
        server = int(self.servers[user])
        people, graph = self._people[server], self._graphs[server]
        changed = graph.delete_at(
            int(self._place[user]),
            points=self.users.estimate[people],
            radii=self._delete * certainty(self.users.count[people]),
        )
        if changed:
            labels = graph.labels()
            for label in range(int(labels.max()) + 1):
                self._gather(people[labels == label])


class SCLUB(_Shared):
    """Clusters as sets that split and merge, on every server for itself.

    `programmed` is as the program of the paper on CDP-FCLUB-DC has it: users are compared with
    their cluster as it was when the stage began, and a server's cluster with the highest number is
    never joined with another.
    """

    def __init__(
        self,
        *,
        servers: Sequence[int],
        dimensions: int,
        rounds: int,
        confidence: float = 0.05,
        split: float = 2.0,
        programmed: bool = False,
    ) -> None:
        super().__init__(
            servers=servers, dimensions=dimensions, rounds=rounds, confidence=confidence
        )
        self._split, self._programmed = split, programmed
        self._round, self._stage = 0, 1
        self._checked = np.zeros(len(self.servers), dtype=np.bool_)
        # The number of each user's cluster on the server; a new one takes the lowest that is free.
        self._number = np.zeros(len(self.servers), dtype=np.int64)
        self._begin_stage()

    def _begin_stage(self) -> None:
        self._checked[:] = False
        # By user: the cluster that she was in, as it was.
        self._estimate_before = self.models.estimate[self.home]
        self._count_before = self.models.count[self.home]

    def learn(self, user: int, x: Floats, y: float) -> None:
        """Update; split this user off if she is unlike her cluster; join clusters alike."""
        super().learn(user, x, y)
        self._round += 1
        self._checked[user] = True
        home = int(self.home[user])
        mates = np.flatnonzero(self.home == home)
        if len(mates) > 1:
            estimate, count = self.models.estimate[home], self.models.count[home]
            if self._programmed:
                estimate, count = self._estimate_before[user], self._count_before[user]
            reach = _certain(self.users.count[user]) + _certain(count)
            gap = self.users.estimate[user] - estimate
            if float(gap @ gap) > (self._split * reach) ** 2:
                taken = set(self._number[self.servers == self.servers[user]].tolist())
                self._number[user] = min(set(range(len(taken) + 1)) - taken)
                self._gather(np.array([user]))
                self._gather(mates[mates != user])
                return
        # A cluster is compared once all of its users have been seen in this stage.
        if self._checked[mates].all():
            self._join(home, mates)
        if self._round >= 2**self._stage:
            self._stage += 1
            self._begin_stage()

    def _join(self, home: int, mates: Labels) -> None:
        here = self.servers == self.servers[home]
        last = self._number[here].max() if self._programmed else -1
        for other in np.unique(self.home[here]):
            theirs = np.flatnonzero(self.home == other)
            if other == home or not self._checked[theirs].all():
                continue
            if last in (self._number[home], self._number[other]):
                continue
            reach = _certain(self.models.count[home]) + _certain(self.models.count[other])
            gap = self.models.estimate[home] - self.models.estimate[other]
            if float(gap @ gap) < (self._split / 2 * reach) ** 2:
                together = np.sort(np.concatenate([mates, theirs]))
                self._number[together] = self._number[together].min()
                self._gather(together)
                return
