"""Claims about one person in the closed loop of the adaptive partition, and planted faults."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.closed_loop.claiming import claims_of, faults_of
from discreet.audit.closed_loop.faulty import (
    ForgetfulDiscardStore,
    HastyReleaser,
    RedrawingAnswers,
    RedrawingReleaser,
    RepeatedFreezeStore,
    decides_from_raw_sums,
    dislikes_are_free,
    exactness_unbooked,
    releases_by_feedback,
)
from discreet.audit.closed_loop.stage import Planted
from discreet.audit.families.p_dap.closed_loop import PartitionLoop, stories
from discreet.audit.families.p_dap.feedback import AddOrRemoveOnly
from discreet.audit.mechanisms.stores import LinearPriceStore, UnpaidStore
from discreet.families.p_dap.learning import OWN_USERS, block
from discreet.families.p_dap.model import PartitionModel
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.questions import Decision, Question
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector


def claims() -> Iterator[Claim]:
    """Yield the claims about one person."""
    return claims_of(stories(), PartitionLoop())


class SparseNoise(PartitionRecommender):
    """Adds noise only to the cells from which feedback came."""

    def release(
        self, model: PartitionModel, gathered: Mapping[bytes, Vector], noise: NoiseSource
    ) -> PartitionModel:
        """Return the next model; cells that nothing was said about stay as they are."""
        released = super().release(model, gathered, noise)
        before, after = model.own.statistics, released.own.statistics
        silent = [
            cell for cell in range(len(before.tree)) if block(OWN_USERS, cell) not in gathered
        ]
        liked, disliked = after.liked.copy(), after.disliked.copy()
        liked[silent], disliked[silent] = before.liked[silent], before.disliked[silent]
        own = replace(after, liked=liked, disliked=disliked)
        return self._model(own, released.guests.statistics)


class CuriousDegradation(PartitionRecommender):
    """Looks at the context of clients whose budget is spent."""

    def decide_without_client(
        self, model: PartitionModel, questions: Sequence[Question], noise: NoiseSource
    ) -> list[Decision]:
        """Decide as if it had been paid for."""
        decided = super().decide(model, questions, [None] * len(questions), noise)
        return [decision._replace(personalised=False) for decision in decided]


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes of the whole loop."""
    family = PartitionRecommender
    plants: dict[str, tuple[Planted, str]] = {
        "answers decided from raw sums": (
            Planted(recommender=decides_from_raw_sums(family)),
            "one record, feedback epsilon 1",
        ),
        "feedback learned that was not paid for": (Planted(store=UnpaidStore), "budgets spent"),
        "n records in one release charged n times": (
            Planted(store=LinearPriceStore),
            "three records in each of two releases, feedback epsilon 1",
        ),
        "noise drawn anew for the same release": (
            Planted(releaser=RedrawingReleaser),
            "one record, feedback epsilon 1",
        ),
        "a release that waits for feedback": (
            Planted(recommender=releases_by_feedback(family, records=3)),
            "feedback or none",
        ),
        "exact answers not booked": (
            Planted(recommender=exactness_unbooked(family)),
            "exact answers",
        ),
        "exact feedback not booked": (
            Planted(recommender=exactness_unbooked(family)),
            "exact feedback",
        ),
        "a retry that pays once and draws twice": (Planted(answers=RedrawingAnswers), "retries"),
        "a worker that answers from an unreleased model": (
            Planted(releaser=HastyReleaser),
            "workers that die",
        ),
        "the loser of a race answers from its own model": (
            Planted(releaser=HastyReleaser),
            "two workers",
        ),
        "records let into a release after it was frozen": (
            Planted(store=RepeatedFreezeStore),
            "workers that die",
        ),
        "records that are in two releases": (
            Planted(store=ForgetfulDiscardStore),
            "three records in each of two releases, feedback epsilon 1",
        ),
        "noise only where feedback came from": (
            Planted(recommender=SparseNoise),
            "three records in each of two releases, feedback epsilon 1",
        ),
        "noise for adding and removing only": (
            Planted(recommender=AddOrRemoveOnly),
            "one record, feedback epsilon 1",
        ),
        "degraded answers that look at the context": (
            Planted(recommender=CuriousDegradation),
            "budgets spent",
        ),
        "a price that depends on the reward": (
            Planted(recommender=dislikes_are_free(family)),
            "three records in each of two releases, feedback epsilon 1",
        ),
    }
    return faults_of(plants, stories, PartitionLoop())
