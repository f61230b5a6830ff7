"""Every measurement, side by side in one run, as the page ``docs/benchmarks.md``."""

import argparse
import logging
import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from bench import sections
from bench.sinks import credentials
from lakewriter.source.session import open_spark_session

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
HEAD: Final = """# Benchmarks

Each section is one run of the command that it names. The ways that it compares take turns, round by round, so that any
other load on the machine affects all of them alike. The first round is a warm-up; seconds are medians of the other
rounds. The ratios are the result; the seconds depend on the machine.
"""
TITLES: Final = {
    "writers": "Writers",
    "dataframes": "DataFrames",
    "others": "Outside Spark",
    "readers": "Readers of files",
    # Of bench/json_decoding.py, entered by hand.
    "json-decoding": "JSON decoded",
    "requests": "Requests",
    "memory": "Memory of a worker",
    "growth": "Growth",
    # Entered by hand: a profiler is none of the project's tools.
    "profile": "What is left of a load",
    "small-files": "Small source files",
    "start": "Start",
    "repeated": "A run with nothing to do",
    "iceberg": "Iceberg",
    "merges": "Merges by key",
    "messages": "Messages",
    "long-messages": "Long inputs of messages",
    "streamed": "Messages over standard input",
    "databases": "Databases",
    # Its figures are those of scripts/nightly, entered by hand.
    "soak": "A thousand batches",
    "week": "A batch a minute",
    # Of bench/at_scale.py and its like, entered by hand.
    "scale": "Scale",
}


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
    """Sections that are not run stay as they are."""
    made = dict.fromkeys(sections.SECTIONS, "") | _present()
    command = f"scripts/bench --write --copies {given.copies} --rounds {given.rounds} --only"
    machine = f"{os.cpu_count()} cores, {_memory():.0f} GiB, {platform.system()} {platform.machine()}"
    spark: Callable[[], SparkSession] = partial(open_spark_session, "bench")
    for name in given.only:
        lines = sections.SECTIONS[name](spark, folder / name, given.copies, given.rounds)
        made[name] = "\n".join(
            [f"## {TITLES[name]}", "", f"`{command} {name}` on {machine}, {date.today()}.", "", *lines, ""]
        )
    return "\n".join([HEAD, *(made[name] for name in TITLES if made.get(name))])


def _present() -> dict[str, str]:
    names = {title: name for name, title in TITLES.items()}
    parts = PAGE.read_text("utf-8").split("\n## ")[1:] if PAGE.exists() else []
    return {names[part.partition("\n")[0]]: f"## {part.rstrip()}\n" for part in parts}


def _memory() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30


if __name__ == "__main__":
    main()
