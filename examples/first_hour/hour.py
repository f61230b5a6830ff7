"""A newcomer's first hour: from files of three formats to a lake on this machine, and ten mistakes on the way.

``python examples/first_hour/hour.py`` plays it in build/first-hour; ``--record FILE`` also draws its first commands.
"""

import argparse
import json
import os
import pty
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 110
KEYS = re.compile(r"local[0-9a-f]{16}|[0-9a-f]{40}")
FONTS = re.compile(r"@font-face \{.*?\}\n", re.DOTALL)
"""A picture asks no other host for its letters."""
TOLD = re.compile(r"^(?:[A-Z_]+: |warning: ).*\n(?:[ \t].*\n)*", re.MULTILINE)
"""Lines of standard error that tell of a failure, or of what is odd; those that belong to one are indented."""
SHOWN_FOLDER = "~/shop"
SEED = 20260105
FIRST_DAY = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Mistake:
    """What a newcomer does wrong: an edit of lake.yaml or a command, how it ends, and what the answer must say."""

    what: str
    edit: Callable[[str], str]
    command: tuple[str, ...]
    exit_code: int
    says: str


def keep(text: str) -> str:
    """The file as it is."""
    return text


MISTAKES = (
    Mistake("a key misspelt", lambda text: text.replace("primary_key:", "primarykey:", 1), ("check", "lake.yaml"), 2,
            "primary_key"),
    Mistake("a destination that is none", lambda text: text.replace("lakewriter-s3", "lakewriter", 1),
            ("check", "lake.yaml"), 2, "lakewriter-s3"),
    Mistake("another file's name", keep, ("check", "lakes.yaml"), 2, "lake.yaml"),
    Mistake("a stage that is not there", keep, ("plan", "lake.yaml", "--stage", "dev"), 2, "dev"),
    Mistake("a lag without its cursor", lambda text: text.replace("    cursor:", "    cursor_lag: 1 hour\n    #", 1),
            ("check", "lake.yaml"), 2, "cursor_lag"),
    Mistake("a job id with a space", keep, ("run", "lake.yaml", "--local", "--job-id", "my load"), 2, "my load"),
    Mistake("an overwrite", lambda text: text.replace("    cursor:", "    mode: overwrite\n    # cursor:", 1),
            ("check", "lake.yaml"), 2, "overwrite"),
    Mistake("a load that never was", keep, ("verify", "lake.yaml", "no-such-load", "--local"), 2, "no-such-load"),
    Mistake("a file that is gone", lambda text: text.replace("data/orders.csv", "data/order.csv", 1),
            ("check", "lake.yaml", "--local"), 1, "data/order.csv"),
    Mistake("a column that is not there", lambda text: text.replace("[order_id]", "[orderid]", 1),
            ("check", "lake.yaml", "--local"), 2, "orderid"),
)  # fmt: skip


def read_terminal(terminal: int) -> str:
    """What a program prints on a terminal, until it ends."""
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            # Linux says so when the other side is closed.
            part = b""
        if not part:
            os.close(terminal)
            return b"".join(parts).decode().replace("\r\n", "\n")
        parts.append(part)


class Session:
    """A shell in ``folder`` whose commands are shown, and what they print."""

    def __init__(self, folder: Path, console: Console) -> None:
        self.folder = folder
        self.console = console
        self.failures: list[str] = []
        self.commands = 0

    def say(self, text: str) -> None:
        """A line between commands."""
        self.console.print(f"\n# {text}", style="dim", markup=False, highlight=False)

    def run(self, *arguments: str, exit_code: int = 0, says: str = "") -> str:
        """``lakewriter`` with ``arguments``; its standard output, and its standard error where it fails."""
        self.commands += 1
        self.console.print(f"$ lakewriter {shlex.join(arguments)}", style="bold", markup=False, highlight=False)
        environment = os.environ | {"COLUMNS": str(self.console.width), "PYTHONWARNINGS": "ignore"}
        # Standard output is a terminal, so that it has colours and fits; standard error is none, so that no progress
        # is drawn on it, which would be gone when the command ends.
        terminal, inner = pty.openpty()
        command = [sys.executable, "-m", "lakewriter", *arguments]
        with subprocess.Popen(
            command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=inner, stderr=subprocess.PIPE
        ) as process:
            os.close(inner)
            with ThreadPoolExecutor() as reader:
                printed = reader.submit(read_terminal, terminal)
                errors = process.stderr.read().decode() if process.stderr else ""
            output = printed.result() + "".join(TOLD.findall(errors))
        shown = output.rstrip().replace(str(self.folder), SHOWN_FOLDER)
        self.console.print(Text.from_ansi(shown), overflow="fold")
        if process.returncode != exit_code or says not in output:
            self.failures.append(f"lakewriter {' '.join(arguments)}: exit code {process.returncode}, {errors[-2000:]}")
        return output


def write_data(folder: Path) -> None:
    """Three tables, each in a format of its own, as an export leaves them."""
    (folder / "data" / "events").mkdir(parents=True)
    write_orders(folder, 400)
    people = ({"id": f"c{n}", "name": f"Customer {n}", "city": random.choice(["Oslo", "Bergen"])} for n in range(40))
    lines = "".join(f"{json.dumps(person)}\n" for person in people)
    (folder / "data" / "customers.jsonl").write_text(lines, "utf-8")
    for part in range(3):
        numbers = range(part * 100, part * 100 + 100)
        times = [FIRST_DAY + timedelta(minutes=number) for number in numbers]
        events = pa.table({"event_id": list(numbers), "event_time": times, "kind": ["click"] * 100})
        pq.write_table(events, folder / "data" / "events" / f"part-{part}.parquet")


def write_orders(folder: Path, count: int, vip: bool = False) -> None:
    """The first ``count`` orders; with a column more once somebody has added it."""
    rows = ["order_id,customer,zip,amount,updated_at" + (",vip" if vip else "")]
    for number in range(1, count + 1):
        at = FIRST_DAY + timedelta(minutes=7 * number)
        row = (
            f"{number},c{number % 40},{number * 37 % 10000:05},{number % 90}.{number % 100:02},{at:%Y-%m-%dT%H:%M:%SZ}"
        )
        rows.append(row + (f",{str(number % 3 == 0).lower()}" if vip else ""))
    (folder / "data" / "orders.csv").write_text("\n".join(rows) + "\n", "utf-8")


def begin(folder: Path, console: Console) -> Session:
    """From files to a lake."""
    random.seed(SEED)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_data(folder)
    session = Session(folder, console)
    session.say("data/ has orders.csv, customers.jsonl and a folder of Parquet files, events/")
    session.run("init", "data")
    session.run("check", "lake.yaml", "--local", says="source orders")
    session.run("plan", "lake.yaml", "--local")
    session.run("run", "lake.yaml", "--local", "--job-id", "first", says="740 rows")
    return session


def go_on(session: Session) -> None:
    """A look at the tables, and the next days: more rows, then a column more."""
    session.run("queries", "lake.yaml", "--local", says="read_parquet")
    session.say("the next day: 100 orders more, of which the cursor knows")
    write_orders(session.folder, 500)
    session.run("run", "lake.yaml", "--local", "--job-id", "second", says="100")
    session.say("somebody adds a column")
    write_orders(session.folder, 520, vip=True)
    session.run("plan", "lake.yaml", "--local", says="+ vip")
    session.run("run", "lake.yaml", "--local", "--job-id", "third", says="20")
    session.run("verify", "lake.yaml", "third", "--local", says="all as the load left it")
    session.run("status", "lake.yaml", "--local", says="third")


def make_mistakes(session: Session, mistakes: Sequence[Mistake] = MISTAKES) -> None:
    """Make each mistake, and mend it."""
    lake = session.folder / "lake.yaml"
    right = lake.read_text("utf-8")
    for number, mistake in enumerate(mistakes, 1):
        session.say(f"mistake {number} of {len(mistakes)}: {mistake.what}")
        lake.write_text(mistake.edit(right), "utf-8")
        session.run(*mistake.command, exit_code=mistake.exit_code, says=mistake.says)
    lake.write_text(right, "utf-8")


def draw(console: Console, picture: Path, title: str) -> None:
    """Draw what the console shows so far, without the keys of its server."""
    svg = FONTS.sub("", console.export_svg(title=title))
    picture.write_text(KEYS.sub("...", svg), "utf-8")


def main() -> int:
    """Play the hour; 0 when every command ended as it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "first-hour")
    parser.add_argument("--record", type=Path, help="Draw its first commands as an SVG picture.")
    options = parser.parse_args()
    console = Console(width=WIDTH, record=options.record is not None, highlight=False)
    began = time.monotonic()
    session = begin(options.folder, console)
    if options.record is not None:
        draw(console, options.record, "The first hour")
    go_on(session)
    make_mistakes(session)
    session.run("local", "stop", "lake.yaml", says="stopped")
    minutes = (time.monotonic() - began) / 60
    console.print(f"\n{session.commands} commands, {minutes:.1f} minutes of this machine's time.")
    for failure in session.failures:
        console.print(f"[red]Not as it should be:[/] {failure}", markup=True)
    return 1 if session.failures else 0


if __name__ == "__main__":
    sys.exit(main())
