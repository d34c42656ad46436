"""Every family of algorithms: the one place that knows them all."""

from collections.abc import Mapping

from discreet.families.fclub.family import ClusterFamily
from discreet.families.collaborative.family import CollaborativeFamily
from discreet.decisions.family import Family
from discreet.families.mirror_descent.family import MirrorFamily
from discreet.families.p_dap.family import PartitionFamily
from discreet.families.p_dap.learners import LearnerFactory, learner_for
from discreet.families.p_rec.family import VotersFamily


def families(*, learners: LearnerFactory = learner_for) -> Mapping[str, Family]:
    """Return one worker's families, by the `algorithm` of their documents."""
    return {
        "p-dap": PartitionFamily(learners=learners),
        "collaborative": CollaborativeFamily(),
        "fclub": ClusterFamily(),
        "p-rec": VotersFamily(),
        "mirror-descent": MirrorFamily(),
    }
