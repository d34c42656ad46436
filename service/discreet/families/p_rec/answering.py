"""One answer: read the history, pay if a run begins, draw, keep it, and only then show it.

The order is the guarantee. A run is debited to the population's ledger, durably, before the first
draw of it; what is drawn is on the client's page, durably, before it leaves this process. A draw
that another worker forestalled is thrown away unseen. So nobody is shown two draws of one round,
and nobody's history lacks an answer that was shown.
"""

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.families.p_dap.contract import Address, Choice, Decision
from discreet.families.p_rec.voting import Answer as Drawn
from discreet.families.p_rec.voting import answer as draw
from discreet.families.p_rec.voting import begin as begin_run
from discreet.families.p_rec.voting import draw_without_votes
from discreet.families.questions import Ask, Recommendation
from discreet.families.observer import Answer, Count, note_refusal
from discreet.families.budgets import FREE
from discreet.decisions.tokens import DECISION_BYTES, Pending, seal_decision
from discreet.families.p_rec.clients import Known, read_history
from discreet.families.p_rec.desk import Desk
from discreet.families.p_rec.history import (
    MARK_BYTES,
    Answered,
    History,
    RunBegun,
    RunSoFar,
    Word,
)
from discreet.families.p_rec.notes import Note
from discreet.families.p_rec.recommender import VotersRecommender
from discreet.families.p_rec.rounds import Round
from discreet.errors import BudgetExhausted, InvalidArgument, NothingToRecommend
from discreet.privacy.charges import Charge

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer that stands on the client's page."""

    round: Round
    position: int
    answered: Answered
    charge: Charge = FREE
    again: bool = False


async def answer(
    runtime: "Runtime", recommender: VotersRecommender, desk: Desk, ask: Ask
) -> Recommendation:
    """Answer a client's next round, or the one it names."""
    recommender.touched = True
    who = runtime.principals.client(recommender.name, ask.client)
    async with desk.turn(who):
        while True:
            known = await _look(runtime, recommender, desk, who)
            kept = await _step(runtime, recommender, desk, who, known, ask)
            desk.clients.put(who, known)
            if kept is not None:
                break
            # Somebody was faster with another worker; what it did is read next.
    return await _shown(runtime, recommender, who, known.history, kept)


async def _look(
    runtime: "Runtime", recommender: VotersRecommender, desk: Desk, who: bytes
) -> Known:
    """Return the client as the store has it, with a page of its own."""
    erasures = runtime.store.load(keys=[recommender.erasures])
    known = await read_history(runtime, recommender, who, desk.clients.get(who))
    (blob,) = await erasures
    desk.notice_erasures(0 if blob is None else blob.version)
    if known is not None:
        return known
    desk.clients.drop(who)
    # Listed before it is there, so that removing the recommender finds it.
    await runtime.store.post_letter(
        queue=recommender.clients_part(who[0]), letter=who, content=b"1"
    )
    page = recommender.history(who)
    await runtime.store.append_page(page=page, content=os.urandom(MARK_BYTES), expected=0)
    known = await read_history(runtime, recommender, who, None)
    if known is None:
        raise InvalidArgument("client", "was erased at this moment; ask again")
    return known


async def _step(
    runtime: "Runtime",
    recommender: VotersRecommender,
    desk: Desk,
    who: bytes,
    known: Known,
    ask: Ask,
) -> _Kept | None:
    """Return the answer that stands now, or None if the page was written by somebody else."""
    history = known.history
    pending = history.pending
    if ask.round is not None:
        one = await desk.rounds.named(runtime, recommender, ask.round)
    elif pending is not None:
        found = await desk.rounds.numbered(runtime, recommender, pending.round)
        assert found is not None, "a round that was answered has its objects"
        one = found
    else:
        one = await _next_round(runtime, recommender, desk, history)
    stands = history.find(one.number)
    if stands is not None:
        return _Kept(one, *stands, again=True)
    if recommender.closes_by_answering:
        await desk.rounds.close(runtime, recommender, one)
    elif not await desk.rounds.is_closed(runtime, recommender, one):
        raise InvalidArgument("round", "is still open to votes: close it before asking from it")
    return await _draw_and_keep(runtime, recommender, desk, who, known, one)


async def _next_round(
    runtime: "Runtime", recommender: VotersRecommender, desk: Desk, history: History
) -> Round:
    """Return the first round, in the order in which they came, that has no answer yet."""
    size = await runtime.store.roster_size(roster=recommender.rounds_roster)
    number = history.next_round(size)
    while number < size:
        if history.find(number) is None:
            one = await desk.rounds.numbered(runtime, recommender, number)
            if one is not None and (
                recommender.closes_by_answering
                or await desk.rounds.is_closed(runtime, recommender, one)
            ):
                return one
        number += 1
    raise NothingToRecommend("there is no round that this client has not been answered from")


async def _draw_and_keep(
    runtime: "Runtime",
    recommender: VotersRecommender,
    desk: Desk,
    who: bytes,
    known: Known,
    one: Round,
) -> _Kept | None:
    history, terms = known.history, recommender.run
    pending = history.pending
    passed = None if pending is None else pending.told(Word.PASSED)
    so_far = _so_far(history, passed)
    charge, begun = FREE, None
    if so_far is None or len(so_far.answers) >= terms.voting.rounds:
        if await _pay(runtime, recommender, history):
            charge = recommender.charge
            begun = RunBegun(begin_run(terms=terms, noise=runtime.noise))
            so_far = RunSoFar(history.runs + 1, begun.offset, ())
        else:
            so_far = None
    stands = False
    try:
        if so_far is None or so_far.ended:
            drawn = draw_without_votes(terms=terms, noise=runtime.noise)
        else:
            drawn = await _draw(runtime, recommender, desk, known, so_far, one)
        answered = Answered(one.number, drawn.chosen, drawn.counted)
        content = (b"" if begun is None else begun.encode()) + answered.encode()
        stands = await _keep(runtime, recommender.history(who), history, passed, content)
    finally:
        if passed is not None and not stands:
            # The credits have heard a word that may turn out to be another.
            known.forget_credits()
    if not stands:
        return None
    if passed is not None:
        history.take(passed.encode(), position=len(history.records) - 1)
    history.take(content, position=len(history.records))
    _note(runtime, recommender, begun=begun is not None, so_far=so_far, drawn=drawn)
    return _Kept(one, len(history.records) - 1, answered, charge)


def _so_far(history: History, passed: Answered | None) -> RunSoFar | None:
    """Return the run under way, a pending answer counted as passed over."""
    so_far = history.run()
    if so_far is None or passed is None or not so_far.answers:
        return so_far
    return RunSoFar(so_far.number, so_far.offset, [*so_far.answers[:-1], passed])


async def _draw(
    runtime: "Runtime",
    recommender: VotersRecommender,
    desk: Desk,
    known: Known,
    so_far: RunSoFar,
    one: Round,
) -> Drawn:
    credits = await known.credits_for(runtime, recommender, desk.ballots, so_far)
    ballots = await desk.ballots.of(runtime, recommender, one.number)
    return draw(
        terms=recommender.run,
        credits=credits,
        offset=so_far.offset,
        ballots=ballots,
        noise=runtime.noise,
    )


async def _pay(runtime: "Runtime", recommender: VotersRecommender, history: History) -> bool:
    """Debit a run to the population; tell whether there was enough.

    The marker names this history and this run of it: if the debit is made and the answer is not
    kept, the next attempt is not debited again. One run is begun by it at most, because whoever
    keeps its first answer makes the page longer.
    """
    account = await runtime.store.spend(
        principal=runtime.principals.client(recommender.name, recommender.population),
        charge=recommender.charge,
        limit=recommender.population_terms.limit,
        marker=history.mark + history.runs.to_bytes(4, "little"),
        marker_ttl=recommender.ttl,
    )
    if account.granted:
        return True
    runtime.observer.exhausted(recommender=recommender.name, algorithm=recommender.algorithm)
    if recommender.refuses:
        note_refusal(
            runtime.observer, recommender=recommender.name, algorithm=recommender.algorithm
        )
        raise BudgetExhausted("the voters' privacy budget with this recommender is spent")
    return False


async def _keep(
    runtime: "Runtime", page: bytes, history: History, passed: Answered | None, content: bytes
) -> bool:
    """Write the answer behind what was read, if nothing else was written there."""
    if passed is None:
        length = await runtime.store.append_page(
            page=page, content=content, expected=history.length
        )
        return length is not None
    # The pending record is also the guard: whoever goes on, or tells a word, changes it.
    pending = history.pending
    assert pending is not None
    at = History.offset_of(len(history.records) - 1)
    written = await runtime.store.write_page(
        page=page,
        writes=[(at, passed.encode()), (history.length, content)],
        guard=(at, pending.encode()),
    )
    return written.done


def _note(
    runtime: "Runtime",
    recommender: VotersRecommender,
    *,
    begun: bool,
    so_far: RunSoFar | None,
    drawn: Drawn,
) -> None:
    label = ""
    if begun:
        label = "begun"
        runtime.observer.spent(
            recommender=recommender.name,
            algorithm=recommender.algorithm,
            charge=recommender.charge,
        )
    elif so_far is None:
        label = "unpaid"
    if label:
        runtime.observer.count(recommender=recommender.name, what=Count.CLIENT_RUNS, label=label)
    if so_far is not None and not so_far.ended and not drawn.counted:
        runtime.observer.count(recommender=recommender.name, what=Count.CLIENT_RUNS, label="ended")


async def _shown(
    runtime: "Runtime",
    recommender: VotersRecommender,
    who: bytes,
    history: History,
    kept: _Kept,
) -> Recommendation:
    spent = await runtime.store.balance(
        principal=runtime.principals.client(recommender.name, recommender.population)
    )
    answered = kept.answered
    outcome = Answer.PERSONALISED if answered.counted else Answer.DEGRADED
    runtime.observer.recommendation(
        recommender=recommender.name,
        algorithm=recommender.algorithm,
        outcome=Answer.REPEATED if kept.again else outcome,
        charge=FREE,  # a run's is noted when it begins
        items=1,
        estimated_regret=0.0,
    )
    expires_at = int(runtime.clock()) + recommender.ttl
    note = Note(history.mark, kept.position, answered.round)
    return Recommendation(
        recommendation_id=seal_decision(
            runtime.sealer,
            Pending(
                generation=recommender.generation,
                # The same answer shown again is the same decision.
                decision_id=hashlib.blake2b(
                    who + note.encode(), digest_size=DECISION_BYTES
                ).digest(),
                expires_at=expires_at,
                decision=Decision(
                    choices=(Choice(slot=answered.chosen, propensity=1.0),),
                    address=Address(who),
                    personalised=answered.counted,
                ),
                nano_epsilon=kept.charge.nano_epsilon,
                note=note.encode(),
            ),
        ),
        items=(kept.round.objects[answered.chosen],),
        personalised=answered.counted,
        privacy=recommender.population_terms.report(spent=spent, charge=kept.charge),
        expires_at=expires_at,
        round=kept.round.id,
    )
