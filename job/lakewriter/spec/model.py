"""What the specification's parts have in common."""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
