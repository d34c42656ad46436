"""Every family of algorithms: the one place that knows them all."""

from collections.abc import Mapping

from service.decisions.clusters.family import ClusterFamily
from service.decisions.collaborative.family import CollaborativeFamily
from service.decisions.family import Family
from service.decisions.mirror.family import MirrorFamily
from service.decisions.partition.family import PartitionFamily
from service.decisions.partition.learners import LearnerFactory, learner_for
from service.decisions.voters.family import VotersFamily


def families(*, learners: LearnerFactory = learner_for) -> Mapping[str, Family]:
    """Return one worker's families, by the `algorithm` of their documents."""
    return {
        "p-dap": PartitionFamily(learners=learners),
        "collaborative": CollaborativeFamily(),
        "fclub": ClusterFamily(),
        "p-rec": VotersFamily(),
        "mirror-descent": MirrorFamily(),
    }
