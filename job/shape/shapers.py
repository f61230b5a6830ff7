"""The shaper for each kind of plan."""

from datetime import datetime

from job.shape.envelope import EnvelopePlan
from job.shape.enveloper import EnvelopeShaper
from job.shape.plan import ShapePlan
from job.shape.shaper import Shaper

AnyPlan = ShapePlan | EnvelopePlan


def shaper(plan: AnyPlan, *, job_id: str, start: datetime, first_index: int) -> Shaper | EnvelopeShaper:
    """The shaper of one task."""
    if isinstance(plan, EnvelopePlan):
        return EnvelopeShaper(plan, job_id=job_id, start=start, first_index=first_index)
    return Shaper(plan, job_id=job_id, start=start, first_index=first_index)
