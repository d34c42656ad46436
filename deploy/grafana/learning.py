"""Learning, by family: what each of the five algorithms has come to know, and with whom it talks.

Panels of a family that a release does not serve are empty, and that is the truth.
"""

from deploy.grafana.overview import RATE, REGRET, REWARD, ratio
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
            title="Estimated regret per item",
            shows="By the learner's own means: a plug-in estimate.",
            wrong="it should fall for days, then stay low. See the runbook of "
            "DiscreetRegretNotFalling.",
            unit="none",
            queries=(
                Query(ratio(*REGRET, by="recommender, algorithm"), "{{recommender}} {{algorithm}}"),
            ),
            limits=Limits(0.1, 0.3),
        ),
        Panel(
            title="Reward per feedback",
            shows="The mean of the rewards that were counted.",
            wrong="it should rise while regret falls. If it does not, feedback tells something "
            "else than it did.",
            unit="none",
            queries=(
                Query(ratio(*REWARD, by="recommender, algorithm"), "{{recommender}} {{algorithm}}"),
            ),
            most=1,
        ),
        Panel(
            title="Feedback counted per item",
            shows="How much of what is recommended comes back as feedback.",
            wrong="near zero nothing is learned: see the runbook of DiscreetNoFeedback.",
            unit="percentunit",
            queries=(
                Query(
                    ratio(
                        f'discreet_feedback_total{{{HERE},outcome="counted"}}',
                        f"discreet_items_total{{{HERE}}}",
                        by="recommender",
                    ),
                    "{{recommender}}",
                ),
            ),
            limits=Limits(0.01, 0.001, above=False),
        ),
    ),
)
PARTITION = Row(
    "p-dap: cells",
    (
        _each(
            "discreet_cells",
            "Cells",
            "Parts of the context space with statistics of their own.",
            "thousands within an hour: too many dimensions, or a partition.base that is too small.",
            width=6,
        ),
        _each(
            "discreet_splits",
            "Cells that have split",
            "Where the learner has seen enough to look closer.",
            "none after days of traffic: partition.base is too large, or contexts never vary.",
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
            "Items that were recommended and heard about at least once, anywhere.",
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
            "answered and trained are good. closed: left out for a while; dead, slow, refused, "
            "malformed, implausible: why.",
            "slow: raise vendor_timeout_seconds, or ask a nearer vendor. refused: its key for us "
            "is gone. implausible: it restarted from nothing; give it another name.",
        ),
        _rate(
            "discreet_forwards_received_total",
            "peer, outcome",
            "Questions by vendors",
            "What others ask of us. unpaid: vendor_privacy.budget is spent, no sums are told.",
            "unpaid after a change of vendor_privacy.epsilon: each change draws from the budget.",
        ),
        Panel(
            title="Vendors left out, feedback waiting",
            shows="1 while a vendor is left out; and how many rewards wait to be passed on.",
            wrong="see the runbook of DiscreetVendorGone.",
            unit="short",
            # A vendor that was never left out has no series: then zero is the truth.
            queries=(
                Query(
                    f"max by (peer) (discreet_vendor_circuit_open{{{JOB}}}) or vector(0)",
                    "left out {{peer}}",
                ),
                Query(f"max(discreet_vendor_outbox{{{JOB}}})", "waiting"),
            ),
            limits=Limits(1, 1000),
        ),
    ),
)
FEDERATION = Row(
    "fclub: clusters and communications",
    (
        _each(
            "discreet_clusters",
            "Clusters of users",
            "Groups that the learner cannot tell apart yet.",
            "one for ever: too little feedback to tell people apart. One per user: nothing is "
            "shared; noise has split what belongs together.",
            width=6,
        ),
        _rate(
            "discreet_communications_total",
            "direction",
            "Communications",
            "Uploads to the global server and downloads from it.",
            "none for long: the thresholds are not reached, or the server cannot be.",
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
            "What is said, in bytes.",
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
            "What the lasso leaves of the model.",
            "zero: the lasso is too strong, nothing is learned. Nearly all: too weak, or noise "
            "drowns the model.",
        ),
    ),
)
VOTES = Row(
    "p-rec: voters and rounds",
    (
        _each(
            "discreet_voters",
            "Voters",
            "People on the roster.",
            "it only grows; a jump is an import, or somebody stuffing the ballot.",
            width=6,
        ),
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
            width=6,
        ),
        _rate(
            "discreet_votes_total",
            "outcome",
            "Votes",
            "Counted and refused.",
            "refused: votes for rounds that are closed, or unknown.",
            width=6,
        ),
        _rate(
            "discreet_client_runs_total",
            "outcome",
            "Clients' runs",
            "begun: paid for by the voters' budget; unpaid: that is spent; ended: too few "
            "like-minded voters are left.",
            "unpaid: the voters' budget is spent for good. Recommend to fewer clients. ended: "
            "lower peers, or raise radius.",
            width=6,
        ),
    ),
)
PROFILES = Row(
    "collaborative: profiles and trainings",
    (
        _each(
            "discreet_profiles",
            "Profiles",
            "Profiles that devices have sent, already private when they left.",
            "none: no hub reaches this service.",
        ),
        Panel(
            title="Trainings in this time",
            shows="Models trained in the background, by outcome.",
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
            "discreet_training_seconds",
            "Last training",
            "How long the last training took.",
            "longer than the interval between trainings: train less often, or on fewer profiles.",
            unit="s",
        ),
    ),
)
BOARD = Board(
    name="learning",
    title="Discreet / learning",
    description="What each family of recommenders has come to know, and with whom it talks.",
    rows=(ALL, PARTITION, VENDORS, FEDERATION, NODES, VOTES, PROFILES),
)
