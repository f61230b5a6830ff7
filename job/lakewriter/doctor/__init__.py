"""Check a pipeline's access: run every probe, give each finding a remedy, and leave nothing in the bucket."""

from lakewriter.doctor.doctor import run_checks
from lakewriter.doctor.probe import CheckReport, Finding

__all__ = ["CheckReport", "Finding", "run_checks"]
