"""A client's word on an answer: like or dislike, written once into its record."""

from typing import TYPE_CHECKING

from discreet.families.questions import Feedback, Receipt
from discreet.decisions.hearing import note_heard
from discreet.decisions.tokens import Pending
from discreet.families.p_rec.desk import Desk
from discreet.families.p_rec.history import (
    MARK_BYTES,
    RECORD_BYTES,
    Answered,
    History,
    Word,
    decode,
)
from discreet.families.p_rec.notes import Note
from discreet.families.p_rec.recommender import VotersRecommender
from discreet.errors import InvalidArgument, UnknownDecision
from discreet.state.stores import Claim

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime


def word_of(reward: float) -> Word:
    """Return what a reward means."""
    if reward == 1:
        return Word.LIKED
    if reward == 0:
        return Word.DISLIKED
    raise InvalidArgument("reward", "must be 1 (the client liked it) or 0 (disliked it)")


async def hear(
    runtime: "Runtime",
    recommender: VotersRecommender,
    desk: Desk,
    pending: Pending,
    feedback: Feedback,
) -> Receipt:
    """Write the word where the answer stands; a word that stands already is compared with it."""
    word = word_of(feedback.reward)
    note, who = Note.decode(pending.note), pending.decision.address.key
    [choice] = pending.decision.choices
    if feedback.item is not None:
        one = await desk.rounds.numbered(runtime, recommender, note.round)
        if one is None or one.objects[choice.slot] != feedback.item:
            raise InvalidArgument("item", "is not the item of this recommendation")
    recommender.touched = True
    asked = Answered(note.round, choice.slot, pending.decision.personalised)
    page, at = recommender.history(who), History.offset_of(note.position)
    mark = runtime.store.read_page(page=page, start=0, end=MARK_BYTES)
    if await mark != note.mark:
        raise UnknownDecision("what is known about this client was erased")
    written = await runtime.store.write_page(
        page=page, writes=[(at, asked.told(word).encode())], guard=(at, asked.encode())
    )
    claim = Claim.COUNTED
    if not written.done:
        claim = _compared(written.found, asked, word)
    return note_heard(runtime, recommender, claim, feedback.reward)


def _compared(found: bytes, asked: Answered, word: Word) -> Claim:
    standing = decode(found) if len(found) == RECORD_BYTES else None
    if not isinstance(standing, Answered) or standing.told(Word.PENDING) != asked:
        raise UnknownDecision("what is known about this client was erased")
    # Passing on to another round without a word was taken for dislike.
    said = Word.DISLIKED if standing.word is Word.PASSED else standing.word
    return Claim.DUPLICATE if said is word else Claim.CONFLICT
