"""Learning, by family: what each of the five algorithms has come to know, and with whom it talks.

Panels of a family that a release does not serve are empty, and that is the truth.
"""

from deploy.grafana.overview import LEARNED, MODEL_AGE, RATE, REGRET, REWARD
from deploy.grafana.panels import HERE, JOB, Board, Limits, Panel, Query, Row


def _each(
    series: str, title: str, shows: str, wrong: str, *, unit: str = "short", width: int = 8
) -> Panel:
    """A gauge by recommender. Every pod tells the same, so the largest is taken, not the sum."""
    return Panel(
        title=title,
        shows=shows,
        wrong=wrong,
        unit=unit,
        queries=(Query(f"max by (recommender) ({series}{{{HERE}}})", "{{recommender}}"),),
        width=width,
    )


def _rate(
    series: str, by: str, title: str, shows: str, wrong: str, *, unit: str = "cps", width: int = 8
) -> Panel:
    """A counter's rate, by recommender and one label more."""
    labels = ", ".join(filter(None, ("recommender", by)))
    legend = "{{recommender}}" + "".join(f" {{{{{name}}}}}" for name in by.split(", ") if name)
    return Panel(
        title=title,
        shows=shows,
        wrong=wrong,
        unit=unit,
        queries=(Query(f"sum by ({labels}) (rate({series}{{{HERE}}}{RATE}))", legend),),
        width=width,
    )


ALL = Row(
    "Every family",
    (
        Panel(
            title="Estimated regret, by release",
            shows="Of an item answered from the released model, by its own means: a plug-in "
            "estimate.",
            wrong="it should fall for days, then stay low. See the runbook of "
            "DiscreetRegretNotFalling.",
            unit="none",
            queries=(Query(REGRET, "{{recommender}}"),),
            limits=Limits(0.1, 0.3),
        ),
        Panel(
            title="Mean reward, by release",
            shows="Of all feedback that the released model was made from, with its noise. p-dap "
            "keeps sums that tell it; other families do not.",
            wrong="it should rise while regret falls. If it does not, feedback tells something "
            "else than it did.",
            unit="none",
            queries=(Query(REWARD, "{{recommender}}"),),
            most=1,
        ),
        Panel(
            title="Feedback learned from",
            shows="How much feedback the released model was made from, as its noisy sums tell it.",
            wrong="it stands still and nothing is learned: see the runbooks of DiscreetNoFeedback "
            "and of DiscreetFeedbackNotLearned.",
            unit="short",
            queries=(Query(LEARNED, "{{recommender}}"),),
        ),
    ),
)
RELEASES = Row(
    "Releases: what was learned becomes a model",
    (
        Panel(
            title="Age of the model",
            shows="Time since the released model that answers are made from was made.",
            wrong="it grows to the pause that the document's releases ask for, then falls to zero. "
            "Without visitors nothing is released.",
            unit="s",
            queries=(Query(MODEL_AGE, "{{recommender}}"),),
            width=6,
        ),
        Panel(
            title="Overdue",
            shows="How long ago the next release was due. A recommender that nobody asks may be "
            "overdue: nothing is released for it.",
            wrong="with visitors, more than a minute: see the runbook of DiscreetModelStale.",
            unit="s",
            queries=(
                Query(
                    "clamp_min(time() - min by (recommender) "
                    f"(discreet_release_due_timestamp_seconds{{{HERE}}} > 0), 0)",
                    "{{recommender}}",
                ),
            ),
            limits=Limits(60, 600),
            width=6,
        ),
        Panel(
            title="Releases an hour",
            shows="Models released within the last hour. There are fewer as a recommender gets "
            "older, because every release adds noise.",
            wrong="none with visitors and feedback: see the runbook of DiscreetModelStale.",
            unit="short",
            queries=(
                Query(
                    f"sum by (recommender) (increase(discreet_releases_total{{{HERE}}}[1h]))",
                    "{{recommender}}",
                ),
            ),
            width=6,
        ),
        Panel(
            title="Number of the model",
            shows="The oldest and the newest model that a pod answers from. They differ for less "
            "than a second after a release.",
            wrong="apart for long: a pod does not read new models. Its log says why.",
            unit="none",
            queries=(
                Query(
                    f"min by (recommender) (discreet_release{{{HERE}}})", "oldest {{recommender}}"
                ),
                Query(
                    f"max by (recommender) (discreet_release{{{HERE}}})", "newest {{recommender}}"
                ),
            ),
            width=6,
        ),
    ),
)
_LIKED = f"max by (recommender) (discreet_released_rewards{{{HERE}}})"
_MEAN = f"{_LIKED} / ({LEARNED} > 0)"
_ERROR = f"1.96 * max by (recommender) (discreet_released_reward_error{{{HERE}}} > 0)"
EXPERIMENTS = Row(
    "Rewards by recommender: the arms of an experiment",
    (
        Panel(
            title="Mean reward, with its interval",
            shows="The mean of all feedback that the released model was made from, scaled to "
            "[0, 1], and where it lies with 95 % confidence: chance and the releases' noise are "
            "both in it. There is no interval while noise could pretend as much feedback.",
            wrong="two arms whose intervals overlap cannot be told apart yet.",
            unit="none",
            queries=(
                Query(f"clamp_max({_MEAN} + {_ERROR}, 1)", "{{recommender}} at most"),
                Query(_MEAN, "{{recommender}}"),
                Query(f"clamp_min({_MEAN} - {_ERROR}, 0)", "{{recommender}} at least"),
            ),
            most=1,
            width=12,
        ),
        _each(
            "discreet_open_decisions",
            "Answers that await a reward",
            "Answers within their reward.wait, whether feedback came or not.",
            "it grows for longer than reward.wait though visitors do not: they are not counted.",
            width=6,
        ),
        _rate(
            "discreet_decisions_not_awaited_total",
            "",
            "Answers without room",
            "Answers that count as nothing without feedback, because as many await a reward as "
            "reward.most_open allows.",
            "more than none: raise reward.most_open, or shorten reward.wait.",
            width=6,
        ),
        _rate(
            "discreet_decisions_not_logged_total",
            "",
            "Missing in the decision log",
            "Decisions that a decision log lacks, because it could not be written fast enough.",
            "more than none: sample less (log.sample in the document), or write it elsewhere.",
            width=12,
        ),
    ),
)
PARTITION = Row(
    "p-dap: cells",
    (
        _each(
            "discreet_cells",
            "Cells",
            "Parts of the context space in the released model, with statistics of their own. "
            "There are 1,024 at most.",
            "at 1,024 soon: partition.base is too small, and cells are finer than traffic fills.",
            width=6,
        ),
        _each(
            "discreet_splits",
            "Cells that have split",
            "Where the learner has seen enough to look closer.",
            "none after days of traffic: partition.base is too large, privacy.feedback.epsilon "
            "too small, or contexts never vary.",
            width=6,
        ),
        _each(
            "discreet_depth",
            "Deepest level",
            "Each level halves every side of a cell (with two segments).",
            "much deeper than ten: contexts pile up in a point; are they constant?",
            width=6,
        ),
        _each(
            "discreet_arms_explored",
            "Items with feedback",
            "Items with feedback anywhere, as far as the noise lets one tell.",
            "far below the catalogue's size for long: raise exploration.rate, or shrink the "
            "catalogue.",
            width=6,
        ),
    ),
)
VENDORS = Row(
    "p-dap: vendors",
    (
        _rate(
            "discreet_forwards_total",
            "peer, outcome",
            "Questions to vendors",
            "answered is good. closed: left out for a while; busy, dead, slow, refused, "
            "malformed: why.",
            "slow: raise vendor_timeout_seconds, or ask a nearer vendor. refused: its key for us "
            "is gone.",
        ),
        _rate(
            "discreet_forwards_received_total",
            "peer, outcome",
            "Questions by vendors",
            "What other vendors ask of us, by peer: each question is answered from the model of "
            "guests.",
            "none though they name us: their key for us is gone, or our address has changed.",
        ),
        Panel(
            title="Vendors left out",
            shows="1 while a vendor is left out: for questions, or for deliveries, while rewards "
            "for its items wait.",
            wrong="see the runbook of DiscreetVendorGone.",
            unit="short",
            # A vendor that was never left out has no series: then zero is the truth.
            queries=(
                Query(
                    f"max by (peer, messages) (discreet_vendor_circuit_open{{{JOB}}}) or vector(0)",
                    "left out {{peer}} {{messages}}",
                ),
            ),
            limits=Limits(None, 1),
        ),
    ),
)
FEDERATION = Row(
    "fclub: clusters and communications",
    (
        _each(
            "discreet_clusters",
            "Clusters of users",
            "Kinds of users that the released model tells apart.",
            "one for ever: too little feedback to tell people apart, or too much noise.",
            width=6,
        ),
        _rate(
            "discreet_communications_total",
            "direction",
            "Communications",
            "Noisy updates sent to the global server, and merged models read from it.",
            "none for long: nothing was released since the last one, or the server is away.",
            width=6,
        ),
        _rate(
            "discreet_peer_messages_total",
            "peer, direction, outcome",
            "Messages between instances",
            "By peer, direction and outcome; federation and nodes.",
            "anything but success for long: see the runbook of DiscreetPeerGone.",
            width=6,
        ),
        _rate(
            "discreet_peer_bytes_total",
            "peer, direction",
            "Bytes between instances",
            "Size of the messages.",
            "a jump: more dimensions, or an interval that is too short.",
            unit="Bps",
            width=6,
        ),
    ),
)
NODES = Row(
    "mirror-descent: nodes",
    (
        Panel(
            title="Neighbours",
            shows="Neighbouring nodes by state: fresh, stale, missing.",
            wrong="missing: see the runbook of DiscreetNeighbourGone. stale: its mixing is slower "
            "than ours, or the network is.",
            unit="none",
            queries=(
                Query(
                    f"max by (recommender, state) (discreet_neighbours{{{HERE}}})",
                    "{{recommender}} {{state}}",
                ),
            ),
        ),
        _rate(
            "discreet_mixing_rounds_total",
            "",
            "Mixing rounds",
            "Rounds in which the node mixed its model with its neighbours'.",
            "none: no feedback, or all neighbours are missing.",
        ),
        _each(
            "discreet_model_nonzeros",
            "Weights that are not zero",
            "Features that stand out from the noise.",
            "zero for long: too little feedback for this much noise, or learning.truncation is too "
            "large. Nearly all: it is too small.",
        ),
    ),
)
VOTES = Row(
    "p-rec: rounds and runs",
    (
        Panel(
            title="Rounds",
            shows="Rounds of objects, by state.",
            wrong="many open ones: nobody closes them, and votes keep changing.",
            unit="none",
            queries=(
                Query(
                    f"max by (recommender, state) (discreet_rounds{{{HERE}}})",
                    "{{recommender}} {{state}}",
                ),
            ),
            width=12,
        ),
        _rate(
            "discreet_client_runs_total",
            "outcome",
            "Clients' runs",
            "begun: paid for by the voters' budget; unpaid: that is spent; ended: too few "
            "like-minded voters are left.",
            "unpaid: the voters' budget is spent for good. Recommend to fewer clients. ended: "
            "lower peers, or raise radius.",
            width=12,
        ),
    ),
)
PROFILES = Row(
    "collaborative: profiles and trainings",
    (
        _each(
            "discreet_profiles",
            "Profiles",
            "Profiles that the released model was trained on.",
            "none: no client sends profiles, or no training has succeeded.",
        ),
        Panel(
            title="Trainings in this time",
            shows="Trainings, by outcome. One is made with a release if profiles have changed.",
            wrong="failed: see the runbook of DiscreetTrainingFails.",
            unit="short",
            queries=(
                Query(
                    "sum by (recommender, outcome) "
                    f"(increase(discreet_trainings_total{{{HERE}}}[$__range]))",
                    "{{recommender}} {{outcome}}",
                ),
            ),
            figure=True,
            decimals=0,
        ),
        _each(
            "discreet_released_rewards",
            "Rewards learned from",
            "The sum of the rewards that the released model was made from, with its noise. Other "
            "families than collaborative that keep such sums show theirs too.",
            "it stands still though feedback is sent: budgets for feedback are spent.",
        ),
        _each(
            "discreet_training_seconds",
            "Last training",
            "How long the last training took.",
            "longer than the pause between releases: release less often, or train on fewer "
            "profiles (training.most_profiles).",
            unit="s",
        ),
    ),
)
BOARD = Board(
    name="learning",
    title="Discreet / learning",
    description="What each family of recommenders has come to know, and with whom it talks.",
    rows=(ALL, RELEASES, EXPERIMENTS, PARTITION, VENDORS, FEDERATION, NODES, VOTES, PROFILES),
)
