"""Whole loads into Amazon S3 Tables: every kind of change, the service's upkeep between them, and none is refused."""

from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from pyiceberg.catalog import load_catalog

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify
from tests.iceberg.commits import stores
from tests.iceberg.tables import IcebergLake
from tests.load.lakes import BUCKET, PREFIX, read_quarantine, table
from tests.support.narrow import need
from tests.support.s3_tables import EXPIRED, UNREFERENCED, S3TablesCatalog

pytestmark = pytest.mark.spark


class Shop:
    """Three tables in one table bucket: appended, refreshed and merged."""

    def __init__(self, lake: IcebergLake, catalog: S3TablesCatalog) -> None:
        self.lake, self.catalog = lake, catalog
        destination = {
            "type": "lakewriter-s3", "location": f"s3://{BUCKET}/{PREFIX}", "region": "us-east-1",
            **catalog.make_settings(),
        }  # fmt: skip
        self.bring("id,at\n1,1\n2,2\n")
        entries = [
            table("events", "events.csv", cursor="at") | {"partition_by": ["id"]},
            table("codes", "codes.csv") | {"mode": "refresh"},
            table("people", "people.csv") | {"mode": "merge", "primary_key": ["id"], "order_by": ["at"]},
        ]
        content = {"pipeline": "flights", "destination": destination, "tables": entries}
        lake.file.write_text(yaml.safe_dump(content), "utf-8")

    def bring(self, text: str) -> None:
        """The same rows in each table's file."""
        for name in ("events", "codes", "people"):
            self.lake.csv(f"{name}.csv", text)

    @property
    def pipeline(self) -> Pipeline:
        return Pipeline.open(self.lake.spec, Clients(self.lake.spec.access))

    def load(self, job: str) -> None:
        report = self.lake.load(job)
        assert (report.status, [each.message for each in report.tables]) == ("done", [None] * 3)
        pipeline = self.pipeline
        assert [each.message for each in verify(pipeline.controls, job, pipeline.clients).differences] == []

    def undo(self, job: str) -> None:
        Undo(self.pipeline, job, Choices("a drill")).run()

    def rows(self) -> dict[str, list[tuple[Any, Any]]]:
        """Id and time of each row, by table."""
        own = load_catalog("own", **self.catalog.make_options(), **stores(self.lake.aws))
        return {
            name: sorted(
                (row["id"], row["at"]) for row in own.load_table(("public", name)).scan().to_arrow().to_pylist()
            )
            for name in ("events", "codes", "people")
        }


@pytest.fixture
def shop(lake):
    """An empty table bucket, and one of ours."""
    with S3TablesCatalog(lake.aws, BUCKET) as catalog:
        yield Shop(lake, catalog)
        # Whatever was done: nothing asked a table's bucket for what it lacks.
        assert catalog.rule.refused == []


FIRST, SECOND, NEWER = [(1, 1), (2, 2)], [(2, 3), (3, 3)], [(1, 1), (2, 3), (3, 3)]


def test_every_kind_of_change_and_its_undo(shop):
    """The service's upkeep of days comes between them, and only keeps what readers see."""
    shop.load("a")
    assert shop.rows() == dict.fromkeys(("events", "codes", "people"), FIRST)
    shop.catalog.pass_time(UNREFERENCED)
    shop.bring("id,at\n2,3\n3,3\n")
    shop.load("b")
    second = {"events": sorted(FIRST + SECOND), "codes": SECOND, "people": NEWER}
    assert shop.rows() == second
    shop.undo("b")
    assert shop.rows() == dict.fromkeys(("events", "codes", "people"), FIRST)
    shop.catalog.pass_time(UNREFERENCED)
    shop.load("b.r2")
    assert shop.rows() == second
    cleared = shop.catalog.pass_time(EXPIRED)
    assert [uri for uri in cleared if uri.endswith(".parquet")]
    assert shop.rows() == second
    # What the undo would show again has expired; an append's own files can be taken out.
    with pytest.raises(Exception, match="expired"):
        shop.undo("b.r2")
    assert shop.rows() == second


def test_a_compaction(shop):
    """Of merged rows, whose deletes it applies."""
    for number in range(5):
        shop.bring(f"id,at\n{number // 2},{number}\n")
        shop.load(f"j{number}")
    before, pipeline = shop.rows(), shop.pipeline
    (entry,) = (each for each in shop.lake.spec.tables if each.name == "people")
    report = need(Compaction(pipeline, entry, 2**30).run())
    assert (need(report.compacted).files, report.files, shop.rows()) == (5, 1, before)
    assert verify(pipeline.controls, report.job_id, pipeline.clients).differences == ()
    shop.catalog.pass_time(EXPIRED)
    assert shop.rows() == before
    shop.bring("id,at\n9,9\n")
    shop.load("k")
    assert (9, 9) in shop.rows()["events"]


def test_a_killed_load_whose_files_are_cleared_away(shop):
    """Days later the same job id ends as its first attempt would have."""
    shop.load("a")
    shop.bring("id,at\n2,3\n3,3\n")
    shop.lake.cut_off("b", lambda call: call.method == "PUT" and call.key.endswith(".avro"))
    shop.catalog.pass_time(UNREFERENCED)
    shop.load("b")
    assert shop.rows() == {"events": sorted(FIRST + SECOND), "codes": SECOND, "people": NEWER}


@pytest.mark.exhaustive
def test_bad_rows_lie_in_our_bucket(shop):
    """And they are replayed, and undone, as those of other tables."""
    text = yaml.safe_load(shop.lake.file.read_text("utf-8"))
    rules = {"expect": [{"range": {"column": "id", "at_least": 2}, "on_violation": "quarantine"}],
             "on_bad_row": {"action": "quarantine", "at_most": 0.5}}  # fmt: skip
    text["tables"] = [table("events", "events.csv") | rules]
    shop.lake.file.write_text(yaml.safe_dump(text), "utf-8")
    report = shop.lake.load("a")
    assert (report.status, len(read_quarantine(shop.lake.aws))) == ("done", 1)
    pipeline = shop.pipeline
    assert verify(pipeline.controls, "a", pipeline.clients).differences == ()
    shop.undo("a")
    assert read_quarantine(shop.lake.aws) == []


def run(shop, *arguments: str) -> str:
    """What a command says, by the command line."""
    name, *others = arguments
    result = CliRunner().invoke(main, [name, str(shop.lake.file), *others])
    assert result.exit_code == 0, (arguments, result.output)
    return result.output


@pytest.mark.exhaustive
def test_by_hand(shop):
    """A lost state is concluded again; and a load that the service has compacted is taken out by its rows."""
    for number in (1, 2):
        shop.bring(f"id,at\n{number},{number}\n")
        shop.load(f"j{number}")
    for key in [key for key in shop.lake.aws.objects(BUCKET) if key.endswith("/public.events/state.json")]:
        shop.lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    assert "2 committed loads, the last one j2" in run(shop, "rebuild", "public.events", "--reason", "lost")
    assert "all as the load left it" in run(shop, "verify", "j1", "--rows")
    events = load_catalog("own", **shop.catalog.make_options(), **stores(shop.lake.aws)).load_table(
        ("public", "events")
    )
    events.overwrite(events.scan().to_arrow())
    shop.catalog.pass_time(EXPIRED)

    def undo(*, rewrite: bool) -> None:
        choices = Choices("a drill", keep_cursor=True, rewrite=rewrite)
        Undo(shop.pipeline, "j1", choices, tables=["public.events"]).run()

    with pytest.raises(SpecInvalidError, match="compaction has 1 of its 1 file"):
        undo(rewrite=False)
    undo(rewrite=True)
    assert shop.rows()["events"] == [(2, 2)]
