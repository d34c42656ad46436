"""Released models of users' preferences, and answers from them.

An answer is made from the client's own sums, which may serve that same client, and from what the
released model tells about users alike. Both are information about one preference vector, so they
add up; an item's utility is its estimated reward and some standard errors of that estimate.

Users come in kinds. A user is taken to be of kind k with a probability that begins at the kind's
share of users and grows or falls with how well the user's own sums fit; or of no known kind, with
a probability that begins at one half. So a model that does not fit, or is mostly noise, soon
counts for nothing: with the prior's half the loss against not sharing is at most ln 2 in the log
likelihood of what the user likes.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from discreet.errors import InvalidArgument, UnknownDecision
from discreet.families.choice import UtilityChoice, filled
from discreet.families.fclub.evidence import Floats, Knowledge, potential
from discreet.families.fclub.features import Coordinates
from discreet.families.fclub.linear import inverse_roots, upper_bounds
from discreet.families.fclub.own_rows import OwnEncoding
from discreet.families.fclub.sums import NoisyUpdate
from discreet.families.questions import Choice, Decision, PendingDecision, Question
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector

EXACT_ANSWERS = "answers are exact: the document does not protect them"
NO_FEEDBACK = "no feedback from this client yet"
BUDGET_SPENT = "the client's budget for answers is spent"
NOTHING_TO_CHOOSE = "there was nothing to choose from"

ID_BYTES = 8
MOST_KINDS = 32
"""Kinds that a user is compared with; the largest, if there are more."""
_ALONE = 0.5
"""The probability of being of no known kind, before anything is known about a user."""
_BLOCK_NUMBERS = 1 << 17
"""Of users' matrices that are worked with at a time: a megabyte stays in the processor's caches."""


class Preferences(NamedTuple):
    """An estimate of preferences and its covariance, a row for each user."""

    estimate: Floats
    covariance: Floats

    def row(self, place: int) -> "Preferences":
        """Return one user's."""
        return Preferences(self.estimate[place], self.covariance[place])

    def rows(self, places: Sequence[int]) -> "Preferences":
        """Return some users', whose places ascend."""
        if len(places) == len(self.estimate):
            return self
        return Preferences(self.estimate[places], self.covariance[places])


@dataclass(frozen=True, eq=False)
class UserKinds:
    """What is known about each kind of user; `shares` are proportional to how many there are."""

    knowledge: Knowledge
    shares: Floats
    variety: float

    def largest(self) -> "UserKinds":
        """Return the kinds that users are compared with."""
        kept = np.sort(np.argsort(-self.shares, kind="stable")[:MOST_KINDS])
        kept = kept[self.shares[kept] > 0]
        return UserKinds(self.knowledge[kept], self.shares[kept], self.variety)

    def preferences(self, users: Knowledge) -> Preferences:
        """Return what the kinds and the users' own exact knowledge say together."""
        dimensions = users.vector.shape[-1]
        if not len(self.shares):
            roots, _ = inverse_roots(np.eye(dimensions) / self.variety + users.matrix)
            alone = np.swapaxes(roots, 1, 2) @ roots
            return Preferences(_applied(alone, users.vector), alone)
        estimate = np.empty_like(users.vector)
        covariance = np.empty_like(users.matrix)
        rows = max(1, _BLOCK_NUMBERS // ((1 + len(self.shares)) * dimensions**2))
        for start in range(0, len(users), rows):
            block = slice(start, start + rows)
            estimate[block], covariance[block] = self._mixed(users[block])
        return Preferences(estimate, covariance)

    def _mixed(self, users: Knowledge) -> Preferences:
        matrices, vectors, odds = self._components
        roots, sizes = inverse_roots(matrices + users.matrix[:, None])
        halves = _applied(roots, vectors + users.vector[:, None])
        means = (halves[..., None, :] @ roots)[..., 0, :]
        # What `potential` returns.
        fits = odds + 0.5 * np.add.reduce(halves * halves, axis=-1) - sizes
        weights = np.exp(fits - np.maximum.reduce(fits, axis=1, keepdims=True))
        weights /= np.add.reduce(weights, axis=1, keepdims=True)
        estimate: Floats = (weights[:, None] @ means)[:, 0]
        # The covariance of a mixture: that within its parts, and that between them.
        roots *= np.sqrt(weights)[..., None, None]
        below = roots.reshape(len(roots), -1, roots.shape[-1])
        apart = means - estimate[:, None]
        covariance = np.swapaxes(below, 1, 2) @ below
        covariance += np.swapaxes(apart, 1, 2) @ (weights[..., None] * apart)
        return Preferences(estimate, covariance)

    @cached_property
    def _components(self) -> tuple[Floats, Floats, Floats]:
        """Return matrices, vectors and log probabilities; no known kind comes first.

        The matrices have what is known about anybody in them, and the probabilities what every
        user's are compared with.
        """
        dimensions = self.knowledge.vector.shape[-1]
        nothing = Knowledge.nothing(dimensions=dimensions, pieces=1)
        shares = (1 - _ALONE) * self.shares / self.shares.sum()
        matrices = np.concatenate([nothing.matrix, self.knowledge.matrix])
        matrices = np.eye(dimensions) / self.variety + matrices
        vectors = np.concatenate([nothing.vector, self.knowledge.vector])
        odds = np.log(np.concatenate([[_ALONE], shares])) - potential(matrices, vectors)
        return matrices, vectors, odds

    @cached_property
    def anybody(self) -> Preferences:
        """What is known about somebody of whom nothing is known."""
        dimensions = self.knowledge.vector.shape[-1]
        return self.preferences(Knowledge.nothing(dimensions=dimensions, pieces=1)).row(0)


def _applied(matrices: Floats, vectors: Floats) -> Floats:
    product: Floats = (matrices @ vectors[..., None])[..., 0]
    return product


class NumberedUpdate(NamedTuple):
    """A noisy update to be sent; whatever changes gets the next number."""

    number: int
    update: NoisyUpdate


class ClusterModel(ABC):
    """What was released: it answers for any user, and says what other servers may be told."""

    kinds: UserKinds
    updates: tuple[NumberedUpdate, ...]

    @property
    @abstractmethod
    def clusters(self) -> int:
        """How many clusters of this server's users there are."""

    def preferences(self, clients: Sequence[bytes], own: Knowledge) -> Preferences:
        """Return each client's preferences; `own` is what their own sums tell."""
        return self.kinds.preferences(own)


@dataclass(slots=True, eq=False)
class ClusterQuestion(Question):
    """What may be recommended: ids, and their features in steps and as numbers, a row each."""

    ids: tuple[str, ...]
    steps: Coordinates
    features: Floats
    notes: Sequence[bytes] | None = None
    """What recommendation ids carry of each row, if it was worked out ahead,"""
    products: Floats | None = None
    """and the products of the features (`linear.products_of`)."""

    def note(self, row: int) -> bytes:
        """Return what a recommendation id carries of a row."""
        if self.notes is not None:
            return self.notes[row]
        return note_of(self.ids[row], self.steps[row])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How questions are decided."""

    own: OwnEncoding
    reward_variance: float
    exploration: float
    choice: UtilityChoice

    def own_knowledge(self, own: Sequence[Vector]) -> tuple[Knowledge, Floats]:
        """Return what clients' own sums tell, and from how many observations each."""
        sums = self.own.sums(own)
        variance = self.reward_variance
        return Knowledge(sums.gram / variance, sums.moment / variance), sums.count

    def decide(
        self,
        model: ClusterModel,
        questions: Sequence[ClusterQuestion],
        own: Sequence[Vector],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Decide each by the client's own sums and by what the model tells about users alike."""
        known, counts = self.own_knowledge(own)
        preferences = model.preferences([one.client for one in questions], known)
        chosen = self._drawn(preferences, questions, self.choice, noise)
        decisions = []
        for question, drawn, count in zip(questions, chosen, counts.tolist(), strict=True):
            choosable = len(question.ids) > 1
            reason: str | None = None if choosable else NOTHING_TO_CHOOSE
            personalised = choosable
            if choosable and self.choice.epsilon is None:
                # Whether there is feedback is private: only an exact answer may depend on it.
                personalised = count > 0
                reason = EXACT_ANSWERS if personalised else NO_FEEDBACK
            if len(drawn) < min(question.limit, len(question.ids)):
                (anybody,) = self._for_anybody(model, [question], noise)
                drawn = filled(drawn, anybody, question.limit)
            decisions.append(_decision(question, drawn, personalised, reason))
        return decisions

    def decide_for_anybody(
        self, model: ClusterModel, questions: Sequence[ClusterQuestion], noise: NoiseSource
    ) -> list[Decision]:
        """Rank by what the model tells about anybody, without looking at the client."""
        chosen = self._for_anybody(model, questions, noise)
        return [
            _decision(one, drawn, False, BUDGET_SPENT)
            for one, drawn in zip(questions, chosen, strict=True)
        ]

    def _for_anybody(
        self, model: ClusterModel, questions: Sequence[ClusterQuestion], noise: NoiseSource
    ) -> list[tuple[Choice, ...]]:
        anybody = model.kinds.anybody
        alike = Preferences(
            *(np.broadcast_to(one, (len(questions), *one.shape)) for one in anybody)
        )
        return self._drawn(alike, questions, UtilityChoice(None), noise)

    def _drawn(
        self,
        preferences: Preferences,
        questions: Sequence[ClusterQuestion],
        choice: UtilityChoice,
        noise: NoiseSource,
    ) -> list[tuple[Choice, ...]]:
        """Return the rows to show; those that may be shown the same items are drawn together."""
        together: dict[int, list[int]] = {}
        for row, question in enumerate(questions):
            together.setdefault(id(question.features), []).append(row)
        chosen: list[tuple[Choice, ...]] = [()] * len(questions)
        for rows in together.values():
            items, products = questions[rows[0]].features, questions[rows[0]].products
            at_once = max(1, _BLOCK_NUMBERS // max(1, items.size))
            for start in range(0, len(rows) if len(items) else 0, at_once):
                some = rows[start : start + at_once]
                worth = self._utilities(preferences.rows(some), items, products)
                limits = [questions[row].limit for row in some]
                for row, drawn in zip(some, choice.draw_each(worth, limits, noise), strict=True):
                    chosen[row] = drawn
        return chosen

    def _utilities(
        self, preferences: Preferences, items: Floats, products: Floats | None = None
    ) -> Floats:
        """Return what each item is worth, a row for each of the users."""
        bounds = upper_bounds(
            items=items,
            estimate=preferences.estimate,
            inverse=preferences.covariance,
            width=self.exploration,
            products=products,
        )
        utilities: Floats = self.own.encoding.baseline + bounds
        return utilities

    def utilities(self, model: ClusterModel, question: ClusterQuestion, own: Vector) -> Floats:
        """Return what each row is worth to the client, whose own sums these are."""
        known, _ = self.own_knowledge([own])
        preferences = model.preferences([question.client], known)
        utilities: Floats = self._utilities(preferences, question.features)[0]
        return utilities

    def law(
        self,
        model: ClusterModel,
        questions: Sequence[ClusterQuestion],
        own: Sequence[Vector] | None,
    ) -> list[Floats]:
        """Return with which probability each row is the first of an answer, for each question.

        Without `own` the clients are not looked at.
        """
        if own is None:
            anybody, best = model.kinds.anybody, UtilityChoice(None)
            alike = Preferences(*(one[None] for one in anybody))
            return [
                best.probabilities(self._utilities(alike, one.features)[0]) for one in questions
            ]
        known, _ = self.own_knowledge(own)
        preferences = model.preferences([one.client for one in questions], known)
        return [
            self.choice.probabilities(self._utilities(preferences.rows([row]), one.features)[0])
            for row, one in enumerate(questions)
        ]


def _decision(
    question: ClusterQuestion,
    chosen: tuple[Choice, ...],
    personalised: bool,
    reason: str | None,
) -> Decision:
    if len(chosen) == 1:
        ((row, share),) = chosen
        shown = (question.ids[row],)
        return Decision(shown, (Choice(0, share),), personalised, question.note(row), reason)
    rows = [choice.slot for choice in chosen]
    return Decision(
        items=tuple([question.ids[row] for row in rows]),
        # Candidates need not be in the catalogue: feedback finds them by their place in the list.
        choices=tuple([Choice(place, choice.propensity) for place, choice in enumerate(chosen)]),
        personalised=personalised and len(chosen) > 0,
        note=b"".join([question.note(row) for row in rows]),
        reason=reason,
    )


def note_bytes(dimensions: int) -> int:
    """Return how many bytes a recommendation id carries for each item."""
    return ID_BYTES + 2 * dimensions


def note_of(item: str, steps: Coordinates) -> bytes:
    """Return what a recommendation id carries of an item: its id's digest and its features."""
    return digest_of(item) + steps.astype("<i2").tobytes()


def digest_of(item: str) -> bytes:
    """Return what a recommendation id keeps of an item's id, to recognise it in feedback."""
    return blake2b(item.encode(), digest_size=ID_BYTES, person=b"item").digest()


def position_of(pending: PendingDecision, item: str | None, *, dimensions: int) -> int:
    """Return which of the recommended items is meant, or raise `InvalidArgument`."""
    entries = _entries(pending, dimensions)
    if not entries:
        raise InvalidArgument("recommendation_id", "that recommendation was empty")
    if item is None:
        if len(entries) > 1:
            raise InvalidArgument(
                "item", "must name the item: this recommendation was a list of several"
            )
        return 0
    digest = digest_of(item)
    for position, entry in enumerate(entries):
        if entry[:ID_BYTES] == digest:
            return position
    raise InvalidArgument("item", "is not one of the items of this recommendation")


def features_shown(pending: PendingDecision, position: int, dimensions: int) -> bytes:
    """Return the features that an item had when it was recommended: steps, two bytes each."""
    size = _entry_bytes(pending, dimensions)
    return pending.note[position * size + ID_BYTES : (position + 1) * size]


def _entry_bytes(pending: PendingDecision, dimensions: int) -> int:
    """Return how long what a note says of each item is."""
    size = note_bytes(dimensions)
    if len(pending.note) != size * len(pending.choices):
        raise UnknownDecision("the recommender that made this recommendation has changed")
    return size


def _entries(pending: PendingDecision, dimensions: int) -> list[bytes]:
    size = _entry_bytes(pending, dimensions)
    return [pending.note[start : start + size] for start in range(0, len(pending.note), size)]
