"""The doctor: every probe runs, every finding has a remedy, and nothing of it stays behind."""

from job.check.doctor import run_checks
from job.check.probe import Finding

__all__ = ["Finding", "run_checks"]
