"""The card of a recommender by voters' weights. The proof is in `model`."""

from discreet.families.budgets import BudgetPolicy
from discreet.families.cards import GuaranteeCard, PriceCard
from discreet.families.p_rec.run_parameters import RunParameters

NOT_COVERED = (
    "what a client likes, to the service and to whoever sees that client's answers",
    "whether a client sends feedback: it leads to the next round, which may close it or begin a "
    "paid run, and others can see both",
    "whoever reads the store; whoever sees the network, or counts requests on /metrics, learns "
    "that a request with votes came",
    "how long an answer takes",
    "the place of one voter when all places are taken: a request that holds a refused vote is "
    "refused whole, so set `voters` generously",
    "the voters' budget against a caller who makes up client ids: each may begin as many runs as "
    "`client_runs` allows, and every run is paid for by all voters",
    "what a failover of a replicated store loses: it may be a stored answer or the debit of a run",
)


def guarantee_card(*, run: RunParameters, budget: BudgetPolicy) -> GuaranteeCard:
    """Return who is protected against whom, and what that costs."""
    return GuaranteeCard(
        algorithm="p-rec",
        protected="every voter, with all votes that the voter ever casts",
        against="every client and all clients together, who may know everybody else's votes and "
        "like or dislike whatever reveals most",
        neighbours="the voter is there with all their votes, or is not there at all (changing all "
        "votes of a voter is two such steps)",
        unit="one voter, over all rounds and all clients' runs, for ever",
        closed_loop=True,
        answers=PriceCard(
            protects="the votes, in what answers reveal",
            mechanism="AboveThreshold on the credit of those who vote, then a truncated "
            "exponential of the votes that count, mixed with a uniform draw; further objects of an "
            "answer by exponentials of half the sharpness, each of them paid for. A client's run "
            "is charged to the voters' ledger before its first answer; its other answers are free",
            epsilon=run.event.epsilon,
            delta=run.delta,
            budget_epsilon=budget.budget.epsilon,
            budget_delta=budget.budget.delta,
            unit=f"one client's run of up to {run.voting.rounds} rounds of 2 to "
            f"{run.voting.objects} objects, up to {run.voting.shown} of them shown",
        ),
        feedback=PriceCard(
            protects="nothing: clients are not protected",
            mechanism="exact: likes and dislikes are kept under a keyed digest and used for that "
            "client's own answers; no other client's answer depends on them",
            epsilon=None,
            unit="one like or dislike",
        ),
        not_covered=NOT_COVERED,
    )
