"""A load that keeps a fifth of its rows out by a check, beside loads that warn of them and that look at nothing.

PYTHONPATH=job:. python -m bench.quarantine --copies 4
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from bench.data import KEYS, sources
from bench.measure import medians, table, timed
from bench.sinks import credentials, null_sink
from bench.ways import lake_file_of, load_file
from lakewriter.source.session import open_spark_session

FEWEST: dict[str, object] = {"column": "distance", "at_least": 427}
"""A fifth of all flights is shorter."""
RULES: dict[str, dict[str, object]] = {
    "no check": {},
    "a check that warns": {"expect": [{"range": FEWEST, "on_violation": "warn"}]},
    "a check that keeps a fifth out": {"expect": [{"range": FEWEST, "on_violation": "set_aside"}]},
}

FEEDS: dict[str, dict[str, object]] = {
    "splits": {"options": {}},
    # A reader option that the other feed does not know, and that changes nothing for these files.
    "rows": {"options": {"mergeSchema": "false"}},
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=4, help="how often the 336,776 flights are taken")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    credentials()
    with tempfile.TemporaryDirectory() as name, null_sink() as server:
        folder = Path(name)
        rows = sources(folder / "flights", given.copies)
        spark = open_spark_session("bench")
        lines = [f"{rows:,} flights as gzip Parquet, to a server that discards:", ""]
        for feed, options in FEEDS.items():
            ways = {way: timed(_load(spark, folder, server, rules | options)) for way, rules in RULES.items()}
            lines += [f"The {feed} feed:", "", *table(medians(ways, given.rounds)), ""]
    sys.stdout.write("\n".join(lines))


def _load(spark: SparkSession, folder: Path, server: str, rules: dict[str, object]) -> Callable[[], int]:
    entry = {"table": "flights", "primary_key": list(KEYS), "index": "sparse"}
    read = {"format": "parquet", "path": str(folder / "flights"), "options": rules.get("options", {})}
    apart = {"on_bad_row": {"action": "quarantine", "at_most": 0.5}}

    def load() -> int:
        own = entry | {"read": read, "expect": rules.get("expect", [])} | apart
        report = load_file(spark, lake_file_of(folder, server, own))
        return report.tables[0].bytes

    return load


if __name__ == "__main__":
    main()
