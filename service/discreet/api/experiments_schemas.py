"""What is answered about experiments."""

from pydantic import BaseModel, Field


class RewardInterval(BaseModel):
    """A mean reward, and where it lies with 95 % confidence; chance and noise are both in it."""

    mean: float
    low: float
    high: float


class ArmAnswer(BaseModel):
    """An arm of an experiment, by its released model."""

    recommender: str
    share: float
    holdout: bool
    release: int = Field(description="The number of the release that this is from.")
    feedback: float | None = Field(
        description="How much feedback the model was made from, with the noise of its releases."
    )
    reward: RewardInterval | None = Field(
        description="Null while noise could pretend as much feedback, or where the algorithm does "
        "not say."
    )
    ahead: RewardInterval | None = Field(
        description="How far the mean is ahead of the first arm's; null for that one itself."
    )


class ExperimentResults(BaseModel):
    """Reward by arm, from released models: free, and as old as the last release."""

    arms: list[ArmAnswer]


class ExperimentsAnswer(BaseModel):
    """The names of all experiments."""

    experiments: list[str]
