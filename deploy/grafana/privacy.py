"""Privacy: what is spent, how fast, how long it lasts, and what was refused."""

from deploy.grafana.overview import RATE, UNPAID_SHARE, ratio
from deploy.grafana.panels import HERE, JOB, Board, Box, Limits, Panel, Query, Row

SPENT = f"discreet_epsilon_spent_total{{{HERE}}}"
RHO = f"discreet_rho_spent_total{{{HERE}}}"
LEDGER = 'operation="spend"'
# What collaborative recommenders know was made private before it left people's devices.
BARE = 'outcome="unprotected",algorithm!="collaborative"'
CLIENTS = Box(
    name="clients",
    label="Active clients",
    value="1000",
    description="How many people use this in a month. The service counts nobody, so you have to "
    "say it; only the panels about days use it.",
)
BUDGET = Box(
    name="budget",
    label="Budget (epsilon)",
    value="20",
    description="What one client may spend, as the recommender's document says.",
)

SPEND = Row(
    "Spend",
    (
        Panel(
            title="Epsilon spent in this time",
            shows="Charged to all clients together, by recommender, over the dashboard's range. "
            "Gaussian releases (fclub, mirror-descent) have no epsilon of their own: see rho.",
            wrong="much more than visitors times epsilon a decision: retries without an event_id, "
            "or lists that are longer than they need to be.",
            unit="none",
            queries=(
                Query(f"sum by (recommender) (increase({SPENT}[$__range]))", "{{recommender}}"),
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
                Query(f"sum by (recommender) (increase({RHO}[$__range]))", "{{recommender}}"),
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
            queries=(Query(f"sum by (recommender) (rate({SPENT}{RATE}))", "{{recommender}}"),),
        ),
        Panel(
            title="Rho spent a second",
            shows="Over all clients, by recommender.",
            wrong="as for epsilon.",
            unit="none",
            queries=(Query(f"sum by (recommender) (rate({RHO}{RATE}))", "{{recommender}}"),),
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
            title="Days that a budget lasts",
            shows="If the clients above share the spending evenly: budget / (epsilon a day / "
            "clients), by the last hour's rate.",
            wrong="fewer days than people stay with you: lower epsilon, recommend less often, or "
            "use accounting: zcdp, which fits more decisions into the same promise.",
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
            title="Epsilon per client and day",
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
    ),
)
REFUSED = Row(
    "Refusals, and what must not be",
    (
        Panel(
            title="Debits refused: budget spent",
            shows="The ledger said no because a client's budget is spent.",
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
            title="Debits that got no answer",
            shows="The store did not answer a debit in time, so nothing was released.",
            wrong="anything above zero refuses people. See the runbook of DiscreetReleasesRefused.",
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
            shows="Recommenders whose document says mode: none. They have no account. "
            "Collaborative ones are left out: their profiles were made private on the devices.",
            wrong="unless this is an experiment with people who agreed to it: change the mode.",
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
                Query(
                    f'sum(rate(discreet_feedback_total{{{JOB},outcome="forged"}}{RATE}))'
                    " or vector(0)"
                ),
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
    boxes=(CLIENTS, BUDGET),
)
