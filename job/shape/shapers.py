"""The shaper for each kind of plan."""

from datetime import datetime

from job.shape.flatten import FlattenPlan
from job.shape.flattener import Flattener
from job.shape.plan import ShapePlan
from job.shape.shaper import Shaper

AnyPlan = ShapePlan | FlattenPlan


def shaper(plan: AnyPlan, *, job_id: str, start: datetime, first_index: int) -> Shaper | Flattener:
    """The shaper of one task."""
    if isinstance(plan, FlattenPlan):
        return Flattener(plan)
    return Shaper(plan, job_id=job_id, start=start, first_index=first_index)
