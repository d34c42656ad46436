"""From records to what they add to the sums: a few short ones one by one, others together.

Every step of numpy's costs as much for one record as for a dozen, and an idle worker gets one at a
time. Both ways give the same numbers.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.families.mirror_descent.learning import MirrorLearner
from discreet.families.mirror_descent.model import MirrorModel
from discreet.families.mirror_descent.reading import QuestionReader, RecordParts

FEW_RECORDS = 5
FEW_FEATURES = 64
"""Of each record. For more of either, numpy is quicker."""


def record_increments(
    reader: QuestionReader,
    learner: MirrorLearner,
    model: MirrorModel,
    parts: Sequence[RecordParts],
    rewards: Sequence[float],
) -> Sequence[Mapping[bytes, npt.NDArray[np.int32]]]:
    """Return what each record adds to blocks: rows of a field and its amount."""
    if len(parts) > FEW_RECORDS or max(map(reader.features_of, parts), default=0) > FEW_FEATURES:
        return learner.increments(model, reader.records(parts), np.array(rewards))
    return [
        learner.increments_of(model, reader.record(each), reward)
        for each, reward in zip(parts, rewards, strict=True)
    ]
