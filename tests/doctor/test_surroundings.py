"""Lifecycle rules, loads that never ended, files that Spark cannot read."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.table_spec import Mode, Read
from tests.doctor.pipeline import CONTROL, abort_after, checked, spec
from tests.support.server import StrictAws

NO_RULE = (
    "warning",
    "no lifecycle rule aborts incomplete multipart uploads.",
    "Add a lifecycle rule that aborts incomplete multipart uploads after 30 days: what a killed load left staged is "
    "invisible, and is paid for until then.",
)
WAITS = "a lifecycle rule aborts incomplete multipart uploads after {}: a load could lose its files."
LONGER = "Let the rule wait at least 16 days, better 30."
LIFECYCLES = [
    # days, prefix of the rule; status, message and remedy: docs/failures.md says 16 days at least, and 30 to be safe
    (30, "", ("ok", "incomplete multipart uploads are aborted after 30 days.", "Nothing to do.")),
    (16, "", ("ok", "incomplete multipart uploads are aborted after 16 days.", "Nothing to do.")),
    (30, "data/", ("ok", "incomplete multipart uploads are aborted after 30 days.", "Nothing to do.")),
    (30, "other/", NO_RULE),
    (15, "", ("warning", WAITS.format("15 days"), LONGER)),
    (1, "", ("warning", WAITS.format("1 day"), LONGER)),
    (None, "", NO_RULE),
]


@pytest.mark.parametrize(("days", "prefix", "expected"), LIFECYCLES)
def test_lifecycle(aws: StrictAws, bucket: str, days: int | None, prefix: str, expected: tuple[str, str, str]) -> None:
    if days is not None:
        abort_after(aws, days, prefix)
    found = checked(spec())["lifecycle"]
    assert (found.status, found.message, found.remedy) == expected


def test_lifecycle_that_may_not_be_read(aws: StrictAws, bucket: str) -> None:
    aws.deny("s3:GetLifecycleConfiguration")
    found = checked(spec())["lifecycle"]
    assert found.status == "skipped"
    assert "s3:GetLifecycleConfiguration" in found.message


PENDING = [
    # content of the state, status, code
    ({"pending": None}, "ok", None),
    ({"pending": {"since": "2024-01-16T00:00:00Z"}}, "ok", None),
    ({"pending": {"since": "2024-01-14T00:00:00+00:00"}}, "warning", None),
    ({"pending": {}}, "failed", "PENDING_UNRECOVERABLE"),
]


@pytest.mark.parametrize(("state", "status", "code"), PENDING)
def test_pending_loads(aws: StrictAws, bucket: str, state: Any, status: str, code: str | None) -> None:
    key = f"{CONTROL}/tables/nyc_public.flights/state.json"
    aws.client("s3").put_object(Bucket=bucket, Key=key, Body=json.dumps(state).encode())
    found = checked(spec(), now=lambda: datetime(2024, 1, 30, tzinfo=UTC))["pending loads"]
    assert (found.status, found.code) == (status, code)


MERGED: list[tuple[Maintenance | None, tuple[str, str, str]]] = [
    # who compacts by the file, and what is said of a table that is merged by key
    (
        Maintenance(by="glue", compact=True, optimizer_role="optimizer"),
        ("ok", "Glue compacts nyc_public.flights, and removes files with deletes.", "Nothing to do."),
    ),
    (
        Maintenance(by="run", compact=True),
        ("ok", "a continuous run compacts nyc_public.flights, and removes files with deletes.", "Nothing to do."),
    ),
    (
        None,
        (
            "warning",
            "each merge of nyc_public.flights leaves files with deletes, which slow readers down and which nothing "
            "removes.",
            "Set maintenance: {compact: true, optimizer_role: NAME}. Or: Set maintenance: {by: command, compact: true}"
            ", and schedule 'lakewriter maintain LAKE'.",
        ),
    ),
]


@pytest.mark.parametrize(("maintenance", "expected"), MERGED)
def test_merged_tables(
    aws: StrictAws, bucket: str, maintenance: Maintenance | None, expected: tuple[str, str, str]
) -> None:
    wanted = spec(glue=True)
    tables = (wanted.tables[0].model_copy(update={"mode": Mode.MERGE}),)
    found = checked(wanted.model_copy(update={"tables": tables, "maintenance": maintenance}))["merged tables"]
    assert (found.status, found.message, found.remedy) == expected


SOURCES = [
    (Read(format="csv", path="s3a://acme-raw/flights.csv"), "warning"),
    (Read(format="parquet", path="s3://acme-raw/flights"), "ok"),
    (Read(format="csv", path="flights.csv"), "ok"),
    (Read(sql="select 1", views={"v": Read(format="parquet", path=("a", "s3://acme-raw/b"))}), "warning"),
]


@pytest.mark.parametrize(("read", "status"), SOURCES)
def test_source_files(aws: StrictAws, read: Read, status: str) -> None:
    found = checked(spec(read=read))["source files"]
    assert found.status == status
    assert ("hadoop-aws" in found.remedy) == (status == "warning")


def test_source_files_where_hadoop_aws_is(aws: StrictAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "hadoop-aws-3.4.2.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert checked(spec(read=SOURCES[0][0]))["source files"].status == "ok"
