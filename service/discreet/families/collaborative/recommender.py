"""A collaborative recommender: profiles and the model in, what goes with them out."""

import importlib.util
import time
from collections.abc import Awaitable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.budgets import FREE, rho_of
from discreet.families.cards import GuaranteeCard
from discreet.families.collaborative import guarantee
from discreet.families.collaborative.document import CollaborativeDocument
from discreet.families.collaborative.learning import RewardLearning
from discreet.families.collaborative.model import (
    CollaborativeModel,
    ProfileQuestion,
    TrainingRecipe,
    padded,
)
from discreet.families.collaborative.popularity import PopularItems
from discreet.families.collaborative.processes import TrainingProcess
from discreet.families.collaborative.profiles import Profiles
from discreet.families.collaborative.similarities import Ints, ItemSimilarities, Slots
from discreet.families.contract import Blocks, Recommender, Resources
from discreet.families.observer import FamilyCounter, FamilyGauge, ReleasedFigures
from discreet.families.questions import (
    Ask,
    Choice,
    Decision,
    Lesson,
    PendingDecision,
    Question,
    plain_ids,
    refuse_unused,
)
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import Charge
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import EXACT

LIBRARY = "implicit"


class GatheredProfiles(NamedTuple):
    """What a training is made from: profile p is `slots[starts[p]:starts[p + 1]]`."""

    starts: Ints
    slots: Ints
    recipe: TrainingRecipe


class GatheredForTraining(NamedTuple):
    """What a release is made from; `profiles` None if training again would find the same."""

    rewards: Blocks
    profiles: GatheredProfiles | None


class CollaborativeRecommender(Recommender[CollaborativeModel]):
    """An answer reads the client's profile, so that a profile counts for its own client at once,
    with any worker; what it teaches about items counts from the next release on."""

    algorithm: ClassVar[str] = "collaborative"
    document_class = CollaborativeDocument

    def __init__(self, *, name: str, stored: StoredDocument, resources: Resources) -> None:
        document = stored.document
        assert isinstance(document, CollaborativeDocument)
        if importlib.util.find_spec(LIBRARY) is None:
            raise InvalidArgument(
                "algorithm", "needs one more package: pip install 'discreet[collaborative]'"
            )
        super().__init__(name=name, stored=stored, resources=resources)
        self.document = document
        self.releases = document.releases
        self.learning = RewardLearning(document.privacy.feedback)
        self.feedback_budget = self.learning.budget
        self._exact = document.privacy.answers == "exact"
        self._training = TrainingProcess()
        self._profiles = Profiles(
            store=self.store,
            key=self.key,
            principal=self.principal,
            items=document.items,
            slot_of=self.slot_of,
            on_change=self._note_change,
        )
        self.offer(self._profiles)
        slots: dict[str, set[int]] = {}
        for item in document.items:
            for category in item.categories or ():
                slots.setdefault(category, set()).add(self.slot_of[item.id])
        self._slots_in: dict[str, Slots] = {
            category: np.array(sorted(held), dtype=np.intp) for category, held in slots.items()
        }
        popular = PopularItems(
            model=lambda: self.current.model,
            visible=self.visible,
            slots_in=self._slots_in,
            id_of=self.id_of,
        )
        self.offer(popular)

    def guarantee(self) -> GuaranteeCard:
        """Return the card of this document."""
        return guarantee.card(self.document, release=self.current.number)

    # Deciding.

    def question(self, ask: Ask) -> ProfileQuestion:
        """Return the slots that may be answered: those of a category, where one is asked for."""
        refuse_unused(ask, uses=("category",))
        available = self.available(exclude=ask.exclude, candidates=plain_ids(ask))
        if ask.category is not None:
            if ask.category not in self._slots_in:
                raise InvalidArgument("category", "no item of this recommender is in it")
            available = np.intersect1d(available, self._slots_in[ask.category], assume_unique=True)
        return ProfileQuestion(self.principal(ask.client), ask.limit, available)

    def price(self, question: Question) -> Charge:
        """Return nothing where the device has paid, and everything where the profile is raw."""
        return EXACT if self._exact else FREE

    def read_own(self, questions: Sequence[Question]) -> Awaitable[Sequence[Slots]]:
        """Return the clients' profiles."""
        return self._profiles.read([question.client for question in questions])

    def decide(
        self,
        model: CollaborativeModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Rank what is available by the profile, then by popularity. Nothing is drawn."""
        ranked = model.rank(questions, own)  # type: ignore[arg-type]  # made by `question`
        reason = guarantee.REASON_EXACT if self._exact else guarantee.REASON_ON_DEVICE
        return [
            Decision(
                items=tuple(self.id_of[slot] for slot in slots),
                choices=tuple(Choice(slot, 1.0) for slot in slots),
                personalised=len(profile) > 0,
                reason=reason if len(profile) else guarantee.REASON_NO_PROFILE,
            )
            for slots, profile in zip((one.tolist() for one in ranked), own, strict=True)
        ]

    # Learning and releasing.

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Lesson:
        """Add the reward to its item's, for everybody: it changes nobody's profile."""
        return self.learning.lesson(pending.choices[position].slot, reward)

    def blank(self) -> CollaborativeModel:
        """Return a model in which no item is like another, or more popular."""
        return CollaborativeModel.blank(self.stored.next_slot)

    async def gather(self, number: int) -> GatheredForTraining:
        """Set rewards aside, and read all profiles if they changed since the last training.

        Profiles are public in the sense of the promise, so whether they changed is too.
        """
        rewards = await super().gather(number)
        # Counted before the profiles are read: one that comes in between is trained on again.
        (changes,) = await self.store.versions(keys=[self._profiles.changes_key])
        wanted = self.document.training
        recipe = TrainingRecipe(changes, wanted.neighbours, wanted.most_profiles)
        if not changes or recipe == self.current.model.recipe:
            return GatheredForTraining(rewards, None)
        starts, slots = await self._profiles.every(wanted.most_profiles)
        return GatheredForTraining(rewards, GatheredProfiles(starts, slots, recipe))

    def release(
        self, model: CollaborativeModel, gathered: GatheredForTraining, noise: NoiseSource
    ) -> CollaborativeModel:
        """Train if profiles changed, and add what feedback gathered.

        If a training fails, the similarities stay as they are until the next release tries again.
        """
        similarities, recipe = model.similarities, model.recipe
        if gathered.profiles is not None:
            trained = self._train(gathered.profiles)
            if trained is not None:
                similarities, recipe = trained, gathered.profiles.recipe
        size = max(self.stored.next_slot, len(model.rewards))
        rewards, variances = self.learning.release(gathered.rewards, size, noise)
        return CollaborativeModel(
            similarities,
            padded(model.rewards, size) + rewards,
            padded(model.variances, size) + variances,
            recipe,
        )

    def _train(self, profiles: GatheredProfiles) -> ItemSimilarities | None:
        began = time.monotonic()
        trained = self._training.train(
            starts=profiles.starts,
            slots=profiles.slots,
            live=np.array(sorted(self.id_of), dtype=np.int64),
            neighbours=profiles.recipe.neighbours,
        )
        if self._training.stopped:
            return None
        outcome = "failed" if trained is None else "done"
        seconds = time.monotonic() - began
        self.observer.count(recommender=self.name, what=FamilyCounter.TRAININGS, label=outcome)
        self.observer.gauge(recommender=self.name, what=FamilyGauge.TRAINING_SECONDS, value=seconds)
        return trained

    def encode(self, model: CollaborativeModel) -> bytes:
        """Return compressed arrays: no code, and nothing by client."""
        return model.encode()

    def decode(self, content: bytes) -> CollaborativeModel:
        """Return the model, with room for items that are newer than it."""
        return CollaborativeModel.decode(content).grown(self.stored.next_slot)

    def figures(self, model: CollaborativeModel) -> ReleasedFigures:
        """Return the noisy sum of all rewards; how many there were is not among the sums."""
        rewards = max(float(model.rewards.sum()), 0.0)
        return ReleasedFigures(rewards=rewards, rho=rho_of(self.learning.charge))

    def adopt(self, *, number: int, released_at: float, model: CollaborativeModel) -> None:
        """Answer from this model from now on."""
        super().adopt(number=number, released_at=released_at, model=model)
        self.observer.gauge(
            recommender=self.name, what=FamilyGauge.PROFILES, value=model.similarities.profiles
        )

    # Life.

    def _note_change(self) -> None:
        """Let the next release come, though nobody asked: a change is a public fact."""
        self.asked = True

    async def close(self) -> None:
        """End a training that runs."""
        self._training.stop()

    async def erase(self) -> None:
        """Erase the profiles and what feedback added up to."""
        await super().erase()
        await self._profiles.erase_all()

    async def forget(self, client: str) -> int:
        """Erase a client's profile; the next release is without it."""
        return int(await self._profiles.erase(client))
