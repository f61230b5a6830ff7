"""Loads at the same time: ten of one pipeline, and two pipelines on one table."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.report import RunReport
from tests.faults.books import EVENTS, ORDERS, SCHEMA, Books
from tests.faults.process import Process
from tests.load.lakes import BUCKET, Lake, writes

pytestmark = pytest.mark.spark

JOBS = [f"job{number}" for number in range(10)]
FOUR_OR_TEN = pytest.mark.parametrize("jobs", [JOBS[:4], JOBS], ids=len)


def command_exit(lake: Lake, *arguments: str) -> int:
    verb, *others = arguments
    return CliRunner().invoke(main, [verb, str(lake.file), *others]).exit_code


def codes(report) -> set[str | None]:
    return {result.code for result in report.tables}


def together(lake: Lake, jobs: list[str]) -> list[set[str | None]]:
    """The codes of loads that all have staged before the first of them binds its intent."""
    staged = threading.Barrier(len(jobs))
    early: list[RunReport] = []

    def load(job: str) -> set[str | None]:
        steps: list[str] = []

        def progress(_table: object, step: str, _detail: str) -> None:
            steps.append(step)
            if step == "committing":
                staged.wait(900)

        report = lake.load(job, progress=progress)
        if "committing" not in steps:
            early.append(report)
            staged.abort()
        return codes(report)

    with ThreadPoolExecutor(len(jobs)) as pool:
        loads = [pool.submit(load, job) for job in jobs]
    assert early == []
    return [load.result() for load in loads]


def in_turn(books: Books, jobs: list[str]) -> None:
    """Each job once more, with new rows for each; together they hold each row once."""
    for job in jobs:
        books.grow()
        assert books.lake.load(job).status == "done"
    books.audit(again=jobs)


@pytest.mark.exhaustive
@FOUR_OR_TEN
def test_appends_at_once(lake, jobs):
    books = Books(lake, ORDERS)
    assert together(lake, jobs) == [{None}] * len(jobs)
    assert books.audit(again=jobs).left_uploads == {}


@pytest.mark.exhaustive
@FOUR_OR_TEN
def test_incremental_loads_at_once(lake, jobs):
    books = Books(lake, EVENTS)
    found = together(lake, jobs)
    assert sorted(map(str, found)) == ["{'CONCURRENT_LOAD'}"] * (len(jobs) - 1) + ["{None}"]
    won = jobs[found.index({None})]
    assert books.audit(again=[won]).left_uploads == {}
    in_turn(books, jobs)


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("table", [ORDERS, EVENTS])
def test_ten_processes_at_once(lake, table):
    books = Books(lake, table)
    staged = threading.Barrier(len(JOBS))
    with ExitStack() as stack:
        loads = [stack.enter_context(Process(lake.file, job, lake.aws.url)) for job in JOBS]
        for load in loads:
            load.gate.at(writes(f"{table}.json"), lambda: staged.wait(900))
        exits = [load.wait(1200) for load in loads]
    assert sorted(exits) == ([0] * 10 if table == ORDERS else [0] + [75] * 9)
    assert all("CONCURRENT_LOAD: " in load.errors for load in loads if load.wait())
    done = [job for job, code in zip(JOBS, exits, strict=True) if code == 0]
    assert books.audit(again=done).left_uploads == {}
    in_turn(books, JOBS)


def other_pipeline(lake: Lake, folder: Path) -> Lake:
    """Another pipeline that writes the same table from the same sources."""
    shutil.copytree(lake.folder, folder, dirs_exist_ok=True)
    other = Lake(folder, lake.aws, lake._spark)
    other.file.write_text(
        yaml.safe_dump(yaml.safe_load(lake.file.read_text("utf-8")) | {"pipeline": "trains", "shares_tables": True}),
        "utf-8",
    )
    return other


@pytest.fixture
def pair(lake, tmp_path_factory) -> tuple[Books, Lake]:
    """Two pipelines on one table."""
    return Books(lake, ORDERS), other_pipeline(lake, tmp_path_factory.mktemp("other"))


def both_are_there(books: Books) -> None:
    counted = (
        "SELECT count(*), count(DISTINCT id), count(DISTINCT filename), min(_supa_job_id), max(_supa_job_id) FROM t"
    )
    assert books.lake.rows(counted, f"{SCHEMA}/{ORDERS}") == [(60, 30, 6, "same", "same")]
    assert books.lake.aws.uploads(BUCKET) == []


@pytest.mark.exhaustive
def test_two_pipelines_on_one_table_with_the_same_job_id(pair):
    books, other = pair
    assert [codes(lake.load("same")) for lake in (books.lake, other)] == [{None}, {None}]
    both_are_there(books)
    assert [command_exit(lake, "verify", "same") for lake in (books.lake, other)] == [0, 0]


@pytest.mark.exhaustive
def test_two_pipelines_on_one_table_with_the_same_job_id_at_once(pair):
    books, other = pair

    def meanwhile(_table: object, step: str, _: str) -> None:
        if step == "committing":
            assert codes(other.load("same")) == {None}

    assert codes(books.lake.load("same", progress=meanwhile)) == {"CONCURRENT_LOAD"}
    assert codes(books.lake.load("same")) == {None}
    both_are_there(books)
