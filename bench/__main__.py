"""Every measurement, side by side in one run, as the page ``docs/benchmarks.md``."""

import argparse
import logging
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from bench import sections
from bench.sinks import credentials
from job.source.session import spark_session

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Made by `{command}` on {machine}. Each table is one run: its ways take turns, round by round, so that whatever else the
machine does falls on all alike. The first round only warms up; seconds are medians of {rounds}. The ratios are the
result; the seconds are this machine's.
"""


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=12, help="how often the 336,776 flights are taken")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=sections.SECTIONS, default=list(sections.SECTIONS))
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} instead of printing it")
    given = parser.parse_args()
    logging.getLogger("botocore").setLevel(logging.ERROR)
    credentials()
    folder = Path(tempfile.mkdtemp(prefix="lakewriter-bench-"))
    try:
        text = _page(given, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if given.write:
        PAGE.write_text(text, "utf-8")
    else:
        print(text)  # noqa: T201


def _page(given: argparse.Namespace, folder: Path) -> str:
    command = " ".join(["scripts/bench", *sys.argv[1:]])
    machine = f"{os.cpu_count()} cores, {_memory():.0f} GiB, {platform.system()} {platform.machine()}"
    parts = [HEAD.format(command=command, machine=machine, rounds=given.rounds)]
    spark: Callable[[], SparkSession] = partial(spark_session, "bench")
    for name in given.only:
        parts.append("\n".join(sections.SECTIONS[name](spark, folder / name, given.copies, given.rounds)) + "\n")
    return "\n".join(parts)


def _memory() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30


if __name__ == "__main__":
    main()
