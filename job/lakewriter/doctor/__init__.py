"""The doctor: every probe runs, every finding has a remedy, and nothing of it stays behind."""

from lakewriter.doctor.doctor import run_checks
from lakewriter.doctor.probe import Finding

__all__ = ["Finding", "run_checks"]
