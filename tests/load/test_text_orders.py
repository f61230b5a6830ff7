"""Rows merged by texts that do not sort as what they spell: refused before a row is bound, and right once typed."""

import json
from typing import Any

import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.operate.planning import plan
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed

REFUSED = [
    # the texts of an older and a newer row, the line of the remedy
    ("31.01.2026", "01.02.2026", {"at": {"type": "date", "format": "dd.MM.yyyy"}}),
    ("9", "10", {"at": "bigint"}),
    ("1.9.0", "1.10.0", None),
    ("2026-03-28T10:00:00+01:00", "2026-03-28T09:30:00+00:00", {"at": "timestamp"}),
    ("1,5", "10,5", None),
]


class Merged(Refreshed):
    """A table whose rows of one key are merged by the text ``at``; each load has a file of its own."""

    def __init__(self, folder: Any, aws: Any, **rules: Any) -> None:
        super().__init__(folder, aws, "iceberg", mode="merge", primary_key=["id"], order_by=["at"], **rules)

    def bring(self, job: str, *texts: str | None, **rules: Any) -> Any:
        (self.folder / f"{job}.json").write_text(
            "".join(f"{json.dumps({'id': 1, 'at': at, 'v': at})}\n" for at in texts), "utf-8"
        )
        self.write(read={"format": "json", "path": f"{job}.json"}, **rules)
        (result,) = self.run(job).tables
        return result

    def read(self) -> list[str]:
        return [row["v"] for row in self.iceberg().scan().to_arrow().to_pylist()]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("older", "newer", "line"), REFUSED, ids=range(len(REFUSED)))
def test_texts_that_do_not_sort_are_refused(tmp_path, aws, bucket, older, newer, line):
    users = Merged(tmp_path, aws)
    result = users.bring("a", older, newer)
    assert (result.status, result.code) == ("failed", "SPEC_INVALID"), result.message
    assert "order_by 'at' is text, which is compared letter by letter" in result.message
    assert not [key for key in aws.objects(BUCKET) if key.endswith(".parquet")]
    if line is None:
        assert "an sql: read can make one" in result.remedy
        return
    assert yaml.safe_load(result.remedy.partition("Declare its type: ")[2].removesuffix("."))["columns"] == line
    assert users.bring("b", older, columns=line).status == "done"
    assert users.bring("c", newer, columns=line).status == "done"
    assert users.read() == [newer]


def test_plan_refuses_as_well(tmp_path, aws, bucket):
    users = Merged(tmp_path, aws)
    users.bring("a", "31.01.2026")
    (planned,) = plan(
        users.spec, job_id=None, clients=Clients(users.spec.access), spark=lambda: users.spark,
        controls=users.pipeline.controls,
    )  # fmt: skip
    assert planned.failure is not None
    assert (planned.failure.code, "order_by 'at'" in planned.failure.message) == ("SPEC_INVALID", True)


SORTED = [
    ("2026-01-31", "2026-02-01"),
    ("0009", "0010"),
    ("2026-01-31T10:00:00Z", "2026-01-31T10:00:01Z"),
    ("apple", "pear"),
    (None, "2026-02-01"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("older", "newer"), SORTED, ids=range(len(SORTED)))
def test_texts_that_sort_are_merged_without_a_word(tmp_path, aws, bucket, older, newer):
    users = Merged(tmp_path, aws, columns={"at": "string"})
    for job, texts in (("a", (older,)), ("b", (newer,)), ("c", (older,))):
        result = users.bring(job, *texts)
        assert result.status == "done", result.message
    assert users.read() == [newer]
    assert not any(b'"orders"' in body for body in aws.objects(BUCKET).values())


def test_a_table_that_has_the_text_already(tmp_path, aws, bucket):
    """As an earlier release has loaded it."""
    users = Merged(tmp_path, aws)
    assert users.bring("a", "2026-01-31").status == "done"
    result = users.bring("b", "01.02.2026")
    assert result.code == "SPEC_INVALID"
    assert "let an sql: read add a column of the type that columns: {at: {type: date" in result.remedy
    assert users.read() == ["2026-01-31"]


def test_texts_behind_the_first_rows_are_seen(tmp_path, aws, bucket):
    """The tasks see all of them. By then the table is made, and has the column as text."""
    users = Merged(tmp_path, aws)
    result = users.bring("a", *[None] * 1000, "01.02.2026")
    assert result.code == "SPEC_INVALID"
    assert result.remedy.startswith(
        "Drop the table in its catalog, which has no rows. Declare its type: columns: {at: "
    )
    aws.client("glue").delete_table(DatabaseName="crm", Name="users")
    assert users.bring("b", "01.02.2026", columns=REFUSED[0][2]).status == "done"
