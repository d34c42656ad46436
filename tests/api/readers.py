"""The readers of the request path's batches."""

from discreet.api import schemas
from discreet.api.batches import BatchReader
from discreet.api.direct import FEEDBACK, RECOMMEND

read_recommend = BatchReader(
    schemas.RecommendBatch, "requests", schemas.RecommendRequest, RECOMMEND.convert
)
read_feedback = BatchReader(
    schemas.FeedbackBatch, "feedback", schemas.FeedbackRequest, FEEDBACK.convert
)
