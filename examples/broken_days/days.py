"""Three days on which a source sends what it should not: half of its rows, rows without ids, text in place of numbers.

``scripts/demo broken-days`` plays them on an embedded AWS, in build/broken-days; ``--record FILE`` also draws them.
"""

import argparse
import shutil
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from rich.console import Console

from examples.demo.demo import embedded_aws, packaged
from examples.first_hour.hour import ROOT, Session, draw

LAKE = Path(__file__).with_name("lake.yaml")
COLUMNS = ["flight", "carrier", "tailnum", "origin", "dest", "dep_delay", "air_time", "distance", "time_hour"]
FIRST = date(2013, 1, 1)
Row = dict[str, Any]


def break_ids(rows: list[Row]) -> None:
    """Three flights without their number, and two that were shorter than nothing."""
    for number in (10, 11, 12):
        rows[number]["flight"] = None
    for number in (20, 21):
        rows[number]["distance"] = -1


def break_numbers(rows: list[Row]) -> None:
    """The word NA in place of a number, in every twentieth row."""
    for row in rows[::20]:
        row["dep_delay"] = "NA"


class Source:
    """An airline's export: one file, which has the flights of the day before."""

    def __init__(self, flights: pa.Table, folder: Path) -> None:
        self._flights, self._folder = flights, folder

    def write(self, day: int, change: Callable[[list[Row]], None] = lambda rows: None, *, share: float = 1) -> None:
        """The flights of a day of January, or the first ``share`` of them, after a ``change``."""
        rows = self._flights.filter(pc.equal(self._flights["day"], day)).select(COLUMNS).to_pylist()
        rows = rows[: round(len(rows) * share)]
        change(rows)
        self._folder.mkdir(parents=True, exist_ok=True)
        lines = [",".join(COLUMNS), *(",".join(map(write_value, row.values())) for row in rows)]
        (self._folder / "flights.csv").write_text("\n".join(lines) + "\n", "utf-8")


def write_value(value: object) -> str:
    """A value as the export has it: nothing for what is not known."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    return "" if value is None else str(value)


def edit(session: Session, before: str, after: str) -> None:
    """Change lake.yaml by hand."""
    lake = session.folder / "lake.yaml"
    text = lake.read_text("utf-8")
    assert text.count(before) == 1
    session.say(f"in lake.yaml: {after}")
    lake.write_text(text.replace(before, after), "utf-8")


def load(session: Session, day: int, *options: str, exit_code: int = 0, says: str = "") -> str:
    """The load of a day's flights, on the morning after."""
    morning = f"{FIRST + timedelta(days=day)}T06:00:00Z"
    return session.run("run", "lake.yaml", "--scheduled-at", morning, *options, exit_code=exit_code, says=says)


def play(session: Session, flights: pa.Table) -> None:
    """The first six days of January."""
    shutil.rmtree(session.folder, ignore_errors=True)
    session.folder.mkdir(parents=True)
    shutil.copy(LAKE, session.folder / "lake.yaml")
    source = Source(flights.filter(pc.equal(flights["month"], 1)), session.folder / "source")
    for day, rows in ((1, 842), (2, 943)):
        session.say(f"the flights of January {day}")
        source.write(day)
        load(session, day, says=f"{rows} rows")
    play_half_a_day(session, source)
    play_bad_rows(session, source)
    play_text(session, source)
    play_stale_file(session, source)


def play_half_a_day(session: Session, source: Source) -> None:
    """The source sends half of its rows, which turns out to be right."""
    session.say("January 3: half of the flights")
    source.write(3, share=0.5)
    load(session, 3, exit_code=1, says="rows.of_last_loads found 457 rows")
    session.run("status", "lake.yaml")
    session.say("snow: half of the flights is all there were")
    load(session, 3, "--accept", "rows.of_last_loads", "--reason", "La Guardia was closed by snow", says="457")
    session.run("report", "lake.yaml", "-o", "january-3.html")


def play_bad_rows(session: Session, source: Source) -> None:
    """Rows without ids, and values that cannot be: these stay out, the others are loaded."""
    session.say("January 4: three flights without number, two with a distance of -1")
    source.write(4, break_ids)
    load(session, 4, says="910")
    session.run("show", "lake.yaml", says="offset 617: not_null.flight")
    session.run("report", "lake.yaml", "-o", "january-4.html")


def play_text(session: Session, source: Source) -> None:
    """Text in place of numbers, in too many rows."""
    session.say("January 5: NA in the columns of numbers")
    source.write(5, break_numbers)
    load(session, 5, exit_code=1, says="SOURCE_FAILED")
    session.say("the others are needed now: up to a tenth of the rows may stay out")
    edit(session, "at_most: 0.01", "at_most: 0.1")
    load(session, 5, says="684 rows")
    session.say("later: NA is what this source writes for null")
    edit(session, "header: true", "header: true, nullValue: NA")
    session.run("replay", "lake.yaml", "nyc.flights", says="36 rows")


def play_stale_file(session: Session, source: Source) -> None:
    """The file of the day before, and then the right one."""
    session.say("January 6: the file of the day before, once more")
    load(session, 6, exit_code=1, says="fresh.time_hour")
    session.say("the right file, and the same command")
    source.write(6)
    load(session, 6, says="832 rows")
    session.run("report", "lake.yaml", "-o", "january-6.html")


def main() -> int:
    """Play the days; 0 when every command ended as it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "broken-days")
    parser.add_argument("--record", type=Path, help="Draw what it prints as an SVG picture.")
    parser.add_argument("--width", type=int, default=100)
    options = parser.parse_args()
    console = Console(width=options.width, record=options.record is not None, highlight=False)
    session = Session(options.folder, console)
    with embedded_aws():
        play(session, packaged("flights"))
    if options.record is not None:
        draw(console, options.record, "Three broken days")
    for failure in session.failures:
        console.print(f"[red]Not as it should be:[/] {failure}", markup=True)
    return 1 if session.failures else 0


if __name__ == "__main__":
    sys.exit(main())
