"""The overview: what a team looks at in the morning."""

from deploy.grafana.panels import HERE, JOB, Board, Limits, Panel, Query, Row

PATH = 'route=~"/(recommend|feedback)(/batch)?"'
SINGLE = 'route=~"/recommend|/feedback"'
RATE = "[$__rate_interval]"


def quantile(share: float, which: str) -> str:
    """The latency that a share of a set of requests stays under."""
    return (
        f"histogram_quantile({share}, sum by (le) "
        f"(rate(discreet_request_duration_seconds_bucket{{{JOB},{which}}}{RATE})))"
    )


ERRORS = (
    f'(sum(rate(discreet_request_duration_seconds_count{{{JOB},{PATH},status="5xx"}}{RATE}))'
    f" or vector(0)) / sum(rate(discreet_request_duration_seconds_count{{{JOB},{PATH}}}{RATE}))"
)
PAID = 'outcome=~"personalised|degraded|refused"'
UNPAID = 'outcome=~"degraded|refused"'


def ratio(above: str, below: str, by: str = "") -> str:
    """One rate over another, both summed in the same way; nothing where there is no traffic."""
    group = f" by ({by})" if by else ""
    return f"sum{group} (rate({above}{RATE})) / (sum{group} (rate({below}{RATE})) > 0)"


UNPAID_SHARE = (
    f"discreet_recommendations_total{{{HERE},{UNPAID}}}",
    f"discreet_recommendations_total{{{HERE},{PAID}}}",
)
# What feedback taught is read off the released models. Every pod tells the same of one.
REWARD = f"max by (recommender) (discreet_released_reward_mean{{{HERE}}})"
REGRET = f"max by (recommender) (discreet_released_regret{{{HERE}}})"
LEARNED = f"max by (recommender) (discreet_released_feedback{{{HERE}}})"
# Rather no age than one since 1970.
MODEL_AGE = f"time() - min by (recommender) (discreet_release_timestamp_seconds{{{HERE}}} > 0)"

NOW = Row(
    "Now",
    (
        Panel(
            title="Answers a second",
            shows="Recommendations, whatever their outcome.",
            wrong="none at all while callers call: look at errors, and at the callers' keys (401).",
            unit="reqps",
            queries=(Query(f"sum(rate(discreet_recommendations_total{{{HERE}}}{RATE}))"),),
            width=4,
            height=4,
            figure=True,
        ),
        Panel(
            title="Errors",
            shows="The share of 5xx on /recommend and /feedback. The objective is 0.1% at most.",
            wrong="see the store first (Discreet / store and workers): without it every answer is "
            "503. Else the log has each request's id and where it failed.",
            unit="percentunit",
            queries=(Query(ERRORS),),
            limits=Limits(0.001, 0.0144),
            width=4,
            height=4,
            figure=True,
        ),
        Panel(
            title="Slowest 1%",
            shows="99% of single calls to /recommend and /feedback take no longer than this.",
            wrong="see whether the store's debits are slow, or a vendor is; then add pods.",
            unit="s",
            queries=(Query(quantile(0.99, SINGLE)),),
            limits=Limits(0.1, 0.5),
            width=4,
            height=4,
            figure=True,
        ),
        Panel(
            title="Mean reward, by release",
            shows="Of all feedback that the released model was made from, with its noise. It moves "
            "with releases, not with feedback.",
            wrong="if it falls while traffic is steady, look at estimated regret: a catalogue "
            "that lost its best items, or feedback that changed its meaning.",
            unit="none",
            queries=(Query(REWARD, "{{recommender}}"),),
            width=4,
            height=4,
            figure=True,
            most=1,
        ),
        Panel(
            title="Estimated regret, by release",
            shows="How much better the best item would do than an answer from the released model, "
            "by its own means. A plug-in estimate, not the true regret, which nobody can know.",
            wrong="see the runbook of DiscreetRegretNotFalling: more traffic, a larger epsilon, or "
            "fewer dimensions.",
            unit="none",
            queries=(Query(REGRET, "{{recommender}}"),),
            limits=Limits(0.1, 0.3),
            width=4,
            height=4,
            figure=True,
        ),
        Panel(
            title="Not personalised",
            shows="Of the answers that a budget should have paid for, the share that it could not.",
            wrong="budgets are spent, for good. See Discreet / privacy before changing anything.",
            unit="percentunit",
            queries=(Query(ratio(*UNPAID_SHARE)),),
            limits=Limits(0.05, 0.2),
            width=4,
            height=4,
            figure=True,
        ),
    ),
)
TRAFFIC = Row(
    "Traffic",
    (
        Panel(
            title="Answers by outcome",
            shows="personalised; degraded and refused (the budget is spent); repeated (a retry, "
            "free); unprotected (answers are exact); empty (nothing to recommend).",
            wrong="degraded or refused grows: budgets. repeated grows: callers time out and retry. "
            "empty: the catalogue is hidden or gone.",
            unit="reqps",
            queries=(
                Query(
                    f"sum by (outcome) (rate(discreet_recommendations_total{{{HERE}}}{RATE}))",
                    "{{outcome}}",
                ),
            ),
            stacked=True,
        ),
        Panel(
            title="Latency of /recommend and /feedback",
            shows="As the server measures it: from the request's last byte to the answer's.",
            wrong="p99 alone: the store's disk, or a vendor's timeout. All three: too few workers.",
            unit="s",
            queries=(
                Query(quantile(0.5, SINGLE), "p50"),
                Query(quantile(0.95, SINGLE), "p95"),
                Query(quantile(0.99, SINGLE), "p99"),
            ),
            limits=Limits(0.1, 0.5),
        ),
        Panel(
            title="Requests by status",
            shows="Every route, by class of status.",
            wrong="4xx: callers send what cannot be used; the problem's type says what. 5xx: ours.",
            unit="reqps",
            queries=(
                Query(
                    "sum by (status) "
                    f"(rate(discreet_request_duration_seconds_count{{{JOB}}}{RATE}))",
                    "{{status}}",
                ),
            ),
            stacked=True,
        ),
        Panel(
            title="Errors",
            shows="The share of 5xx on the request path, against an objective of 0.1%.",
            wrong="above 1.44% a month of the objective is gone in two days: act now.",
            unit="percentunit",
            queries=(Query(ERRORS, "5xx"),),
            limits=Limits(0.001, 0.0144),
            soft_most=0.02,
        ),
        Panel(
            title="Feedback requests by status",
            shows="Requests with feedback, as the network sees them. Which recommender they are "
            "for and how they ended is private; callers see that.",
            wrong="4xx: an id that expired (410: raise decision_ttl_seconds) or was forged (400), "
            "or another reward for the same item (409). 5xx: the store.",
            unit="reqps",
            queries=(
                Query(
                    "sum by (status) (rate(discreet_request_duration_seconds_count"
                    f'{{{JOB},route=~"/feedback(/batch)?"}}{RATE}))',
                    "{{status}}",
                ),
            ),
            stacked=True,
        ),
        Panel(
            title="Items recommended",
            shows="An answer has as many as its caller's limit asks for, and each of them costs.",
            wrong="many items an answer: callers pay for lists that nobody reads to the end.",
            unit="short",
            queries=(
                Query(
                    f"sum by (recommender) (rate(discreet_items_total{{{HERE}}}{RATE}))",
                    "{{recommender}}",
                ),
            ),
        ),
    ),
)
WORTH = Row(
    "What it is worth, and what it costs",
    (
        Panel(
            title="Mean reward, by release",
            shows="Of all feedback that the released model was made from, with its noise.",
            wrong="compare with estimated regret: if that falls and this does not, feedback has "
            "changed its meaning.",
            unit="none",
            queries=(Query(REWARD, "{{recommender}}"),),
            most=1,
        ),
        Panel(
            title="Estimated regret, by release",
            shows="Of an item answered from the released model, by its own means: a plug-in "
            "estimate. It should fall for days, then stay low.",
            wrong="see the runbook of DiscreetRegretNotFalling.",
            unit="none",
            queries=(Query(REGRET, "{{recommender}}"),),
            limits=Limits(0.1, 0.3),
        ),
        Panel(
            title="Not personalised",
            shows="The share of paying answers whose client has no budget left.",
            wrong="it never falls by itself: budgets do not grow back. Decide by Discreet / "
            "privacy.",
            unit="percentunit",
            queries=(Query(ratio(*UNPAID_SHARE, by="recommender"), "{{recommender}}"),),
            limits=Limits(0.05, 0.2),
            most=1,
        ),
        Panel(
            title="Epsilon spent a second",
            shows="Privacy loss charged for answers, over all clients, in epsilon.",
            wrong="a jump without more visitors: callers that retry without an event_id pay twice.",
            unit="none",
            queries=(
                Query(
                    f"sum by (recommender) (rate(discreet_epsilon_spent_total{{{HERE}}}{RATE}))",
                    "{{recommender}}",
                ),
            ),
        ),
        Panel(
            title="Feedback learned from",
            shows="How much feedback the released model was made from, as its noisy sums tell it.",
            wrong="it stands still though feedback is sent: see the runbook of "
            "DiscreetFeedbackNotLearned.",
            unit="short",
            queries=(Query(LEARNED, "{{recommender}}"),),
        ),
        Panel(
            title="Age of the model",
            shows="Time since the released model that answers are made from was made. What was "
            "learned after that waits for the next release.",
            wrong="it grows to the pause that the document's releases ask for, then falls to zero. "
            "Without visitors nothing is released. Else see the runbook of DiscreetModelStale.",
            unit="s",
            queries=(Query(MODEL_AGE, "{{recommender}}"),),
        ),
    ),
)
BOARD = Board(
    name="overview",
    title="Discreet / overview",
    description="Traffic, latency, errors, what is learned and what it costs in privacy.",
    rows=(NOW, TRAFFIC, WORTH),
)
