"""Privacy: what is spent, how fast, how long it lasts, and what was refused."""

from deploy.grafana.overview import LEARNED, RATE, UNPAID_SHARE, ratio
from deploy.grafana.panels import HERE, JOB, Board, Box, Limits, Panel, Query, Row

SPENT = f"discreet_epsilon_spent_total{{{HERE}}}"
RHO = f"discreet_rho_spent_total{{{HERE}}}"
# What feedback costs is not counted, for that would tell who sent any. It is at least the price of
# one record for every record in the released sums: a client's n-th in a release costs 2n - 1 times.
FEEDBACK = f"{LEARNED} * max by (recommender) (discreet_feedback_rho{{{HERE}}})"
LEDGER = 'operation="spend"'
# The other two answer exactly by default: fclub from the client's own feedback, collaborative from
# profiles that devices may have made private. Their guarantee cards say so.
BARE = 'outcome="unprotected",algorithm!~"fclub|collaborative"'
CLIENTS = Box(
    name="clients",
    label="Active clients",
    value="1000",
    description="How many people use this in a month. The service counts nobody, so you have to "
    "say it; only the panels about days use it.",
)
BUDGET = Box(
    name="budget",
    label="Answers' budget (epsilon)",
    value="20",
    description="What all answers to one client may cost: privacy.answers.budget.epsilon.",
)
FEEDBACK_BUDGET = Box(
    name="feedback_budget",
    label="Feedback's budget (rho)",
    value="1.05",
    description="What all feedback of one client may cost, in rho. privacy.feedback.budget of "
    "epsilon 1, 2, 8 at delta 1e-6 is 0.0244, 0.0882, 1.05.",
)

SPEND = Row(
    "Spend",
    (
        Panel(
            title="Epsilon spent in this time",
            shows="Charged to all clients together for answers, by recommender, over the "
            "dashboard's range.",
            wrong="much more than visitors times epsilon a decision: retries without an event_id, "
            "or lists that are longer than they need to be.",
            unit="none",
            queries=(
                Query(
                    f"sum by (recommender) (increase({SPENT}[$__range]))",
                    "{{recommender}}",
                ),
            ),
            width=12,
            height=5,
            figure=True,
        ),
        Panel(
            title="Rho spent in this time",
            shows="The same in zCDP's rho.",
            wrong="as for epsilon.",
            unit="none",
            queries=(
                Query(
                    f"sum by (recommender) (increase({RHO}[$__range]))",
                    "{{recommender}}",
                ),
            ),
            width=12,
            height=5,
            figure=True,
        ),
        Panel(
            title="Epsilon spent a second",
            shows="Over all clients, by recommender.",
            wrong="a jump without more visitors is a caller in a loop: see answers by outcome, and "
            "the runbook of DiscreetBudgetBurnFast.",
            unit="none",
            queries=(
                Query(
                    f"sum by (recommender) (rate({SPENT}{RATE}))",
                    "{{recommender}}",
                ),
            ),
        ),
        Panel(
            title="Rho spent a second",
            shows="Over all clients, by recommender.",
            wrong="see the runbook of DiscreetBudgetBurnFast.",
            unit="none",
            queries=(
                Query(
                    f"sum by (recommender) (rate({RHO}{RATE}))",
                    "{{recommender}}",
                ),
            ),
        ),
        Panel(
            title="Epsilon per personalised answer",
            shows="What an answer costs on average. A list costs more than one item.",
            wrong="above the document's epsilon: callers ask for lists. If it moved without a "
            "deployment, somebody changed the document.",
            unit="none",
            queries=(
                Query(
                    ratio(
                        SPENT,
                        f'discreet_recommendations_total{{{HERE},outcome="personalised"}}',
                        by="recommender",
                    ),
                    "{{recommender}}",
                ),
            ),
            limits=Limits(4, 16),
        ),
    ),
)
LEFT = Row(
    "How long it lasts",
    (
        Panel(
            title="Days that the budget for answers lasts",
            shows="If the clients above share the spending evenly: budget / (epsilon a day / "
            "clients), by the last hour's rate. Small epsilons last longer, because the sum of rho "
            "admits more of them than the sum of epsilon.",
            wrong="fewer days than people stay with you: lower privacy.answers.epsilon, recommend "
            "less often, or ask for shorter lists.",
            unit="d",
            queries=(
                Query(
                    "$budget / ((sum by (recommender) "
                    f"(rate({SPENT}[1h])) > 0) * 86400 / $clients)",
                    "{{recommender}}",
                ),
            ),
            limits=Limits(30, 7, above=False),
            height=8,
            figure=True,
        ),
        Panel(
            title="Answers' epsilon per client and day",
            shows="The last hour's rate, shared evenly among the clients above.",
            wrong="compare with the budget; see the panel beside.",
            unit="none",
            queries=(
                Query(
                    f"sum by (recommender) (rate({SPENT}[1h])) * 86400 / $clients",
                    "{{recommender}}",
                ),
            ),
            height=8,
        ),
        Panel(
            title="Not personalised",
            shows="The share of paying answers whose client has no budget left.",
            wrong="it tells how far the even share above is from the truth: a few heavy users "
            "exhaust theirs first. Budgets do not grow back; see the runbook of "
            "DiscreetBudgetsExhausted.",
            unit="percentunit",
            queries=(Query(ratio(*UNPAID_SHARE, by="recommender"), "{{recommender}}"),),
            limits=Limits(0.05, 0.2),
            height=8,
            most=1,
        ),
        Panel(
            title="Spent of the budgets for feedback",
            shows="If the clients above share it evenly: what the feedback in the released sums "
            "cost at least, over the clients' budgets. Several records of a client in one release "
            "cost more.",
            wrong="near 1: clients' feedback will soon be accepted and not learned. Lower "
            "privacy.feedback.epsilon (a new recommender, because waiting feedback was priced for "
            "it), or release more often.",
            unit="percentunit",
            queries=(Query(f"({FEEDBACK}) / ($clients * $feedback_budget)", "{{recommender}}"),),
            limits=Limits(0.5, 0.9),
            height=8,
            figure=True,
        ),
        Panel(
            title="Feedback's rho per client",
            shows="What the feedback in the released sums cost at least, shared evenly among the "
            "clients above.",
            wrong="compare with the budget; see the panel beside.",
            unit="none",
            queries=(Query(f"({FEEDBACK}) / $clients", "{{recommender}}"),),
            height=8,
        ),
        Panel(
            title="Feedback learned from",
            shows="How much feedback the released model was made from, as its noisy sums tell it. "
            "What a spent budget keeps out is missing here; which that is, is private.",
            wrong="it stands still though feedback is sent: budgets are spent, and do not grow "
            "back; see the runbook of DiscreetFeedbackNotLearned.",
            unit="short",
            queries=(Query(LEARNED, "{{recommender}}"),),
            height=8,
        ),
    ),
)
REFUSED = Row(
    "Refusals, and what must not be",
    (
        Panel(
            title="Debits refused: budget spent",
            shows="The ledger refused because a client's budget for answers is spent.",
            wrong="see how long it lasts, above.",
            unit="reqps",
            queries=(
                Query(
                    "sum by (recommender) "
                    f"(rate(discreet_budgets_exhausted_total{{{HERE}}}{RATE}))",
                    "{{recommender}}",
                ),
            ),
        ),
        Panel(
            title="Clients by the share of their budget that is spent",
            shows="How many clients' answers have cost at least this share of their budget, since "
            "counting began. The price of an answer is public, so this tells nothing private.",
            wrong="most clients near 1 get answers that are no longer personalised: a larger "
            "budget, a smaller epsilon, or fewer personal slots.",
            unit="short",
            queries=(
                Query(
                    f"sum by (share) (discreet_clients_spent_total{{{HERE}}})",
                    "{{share}}",
                ),
            ),
        ),
        Panel(
            title="Debits that got no answer",
            shows="The store did not answer a debit in time, so nothing was released.",
            wrong="anything above zero refuses people. See the runbook of "
            "DiscreetDebitsUnanswered.",
            unit="reqps",
            # No failure, no series: then zero is the truth.
            queries=(
                Query(
                    f"sum(rate(discreet_store_failures_total{{{JOB},{LEDGER}}}{RATE})) or vector(0)"
                ),
            ),
            limits=Limits(None, 0.001),
            soft_most=1,
        ),
        Panel(
            title="Slowest 1% of debits",
            shows="How long the ledger takes. Every answer waits for it.",
            wrong="a slow disk under the store: appendfsync always needs one that can.",
            unit="s",
            queries=(
                Query(
                    "histogram_quantile(0.99, sum by (le) "
                    f"(rate(discreet_store_duration_seconds_bucket{{{JOB},{LEDGER}}}{RATE})))"
                ),
            ),
            limits=Limits(0.02, 0.1),
        ),
        Panel(
            title="Answers without protection",
            shows="Recommenders whose document says privacy.answers: exact. Ledgers book them as "
            "unlimited, for good. fclub and collaborative are left out: they answer exactly by "
            "default, and their guarantee cards say what that means.",
            wrong="unless this is an experiment with people who agreed to it: give "
            "privacy.answers an epsilon.",
            unit="reqps",
            queries=(
                Query(
                    "sum by (recommender) (rate("
                    f"discreet_recommendations_total{{{HERE},{BARE}}}{RATE}))",
                    "{{recommender}}",
                ),
            ),
            limits=Limits(None, 0.001),
            soft_most=1,
        ),
        Panel(
            title="Retries that cost nothing",
            shows="Answers repeated under the same event_id. Nothing is released twice.",
            wrong="many: callers time out; see latency. None at all, with timeouts in callers' "
            "logs: they retry without an event_id and pay twice.",
            unit="reqps",
            queries=(
                Query(
                    "sum by (recommender) (rate("
                    f'discreet_recommendations_total{{{HERE},outcome="repeated"}}{RATE}))',
                    "{{recommender}}",
                ),
            ),
        ),
        Panel(
            title="Forged feedback",
            shows="Feedback under ids that this service did not issue. None of it is counted.",
            wrong="after a change of token keys: the old key was removed too early. Else somebody "
            "is guessing; ids cannot be guessed.",
            unit="reqps",
            queries=(
                Query(f"sum(rate(discreet_forged_feedback_total{{{JOB}}}{RATE})) or vector(0)"),
            ),
            limits=Limits(0.1, 10),
            soft_most=1,
        ),
    ),
)
BOARD = Board(
    name="privacy",
    title="Discreet / privacy",
    description="What is spent of people's privacy budgets, how long they last, what was refused.",
    rows=(SPEND, LEFT, REFUSED),
    boxes=(CLIENTS, BUDGET, FEEDBACK_BUDGET),
)
