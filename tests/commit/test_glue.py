"""Parquet tables in Glue: what is made, who is waited for, and which tables are left alone."""

import random
from datetime import timedelta
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt, bind, register, settle
from lakewriter.commit.control import Control
from lakewriter.commit.glue import GlueTables
from lakewriter.errors import CommitUnknownError, PendingUnrecoverableError, SchemaIncompatibleError
from lakewriter.naming import ControlKeys
from lakewriter.operate.repair import abandon
from lakewriter.records.actions import GlueAction, Projection
from lakewriter.records.facets import MergeIntent
from lakewriter.spec.access import Access
from tests.commit import intents
from tests.commit.memory import Memory, World
from tests.support.call import Call
from tests.support.server import StrictAws

ACCESS = Access(bucket="acme-lake", region="us-east-1")
ROOT = "s3://acme-lake/data/nyc"
PLACES = {"HOUR": "2024/01/15/10", "DAY": "2024/01/15", "SYNC_ID": "2024", "": "2024/01/15/10"}
"""A partition of each strategy: the first lies in the second, and both lie in the third."""


@pytest.fixture
def tables(aws: StrictAws) -> GlueTables:
    return GlueTables(Clients(ACCESS))


def action(strategy: str = "HOUR", *columns: tuple[str, str]) -> GlueAction:
    return GlueAction(
        database="nyc",
        database_location=ROOT,
        table="flights",
        location=f"{ROOT}/flights",
        columns=columns or (("id", "int"),),
        partition_key="_supa_partition",
        strategy=strategy,
        partition=PLACES[strategy],
        partition_location=f"{ROOT}/flights/{PLACES[strategy]}",
    )


def intent(own: Attempt, catalog: GlueAction) -> Any:
    return intents.intent(
        own, access=ACCESS, catalog=catalog, table_id="nyc.flights", schema_name="nyc", table="flights"
    )


def attempt(job_id: str) -> Attempt:
    return Attempt("p", job_id, f"attempt-{job_id}", World().tick(), timedelta(days=30))


def publish(tables: GlueTables, catalog: GlueAction) -> None:
    loaded = intent(attempt("a"), catalog)
    tables.publish(loaded, 1)
    tables.read_back(loaded)


def glue_table(aws: StrictAws) -> dict[str, Any]:
    found: dict[str, Any] = aws.client("glue").get_table(DatabaseName="nyc", Name="flights")["Table"]
    return found


# Errors that the SDK's model of Glue has for these calls, besides those of a call that is wrong.
CONFLICTS = [
    ("glue:CreateDatabase", "ConcurrentModificationException"),
    ("glue:CreateTable", "ConcurrentModificationException"),
    ("glue:CreateTable", "ResourceNotReadyException"),
    ("glue:UpdateTable", "ConcurrentModificationException"),
    ("glue:UpdateTable", "ResourceNotReadyException"),
    ("glue:BatchCreatePartition", "ConcurrentModificationException"),
]


@pytest.mark.parametrize(("call", "code"), CONFLICTS)
def test_conflicts_pass(aws: StrictAws, tables: GlueTables, call: str, code: str) -> None:
    if call == "glue:UpdateTable":
        publish(tables, action("HOUR", ("name", "string")))
    aws.fail(lambda each: each.action == call, status=400, code=code, times=2)
    publish(tables, action())
    assert [status for name, _, status in aws.calls if name == call] == [400, 400, 200]


@pytest.mark.parametrize(("call", "code"), CONFLICTS[:2])
def test_conflict_with_whoever_makes_the_same(aws: StrictAws, tables: GlueTables, call: str, code: str) -> None:
    others = [action()]

    def made_by_another(each: Call, proceed: Any) -> Any:
        if each.action != call or not others:
            return proceed(each)
        others.pop()
        proceed(each)
        return each.error(400, code, "somebody was faster")

    aws.interceptors.append(made_by_another)
    publish(tables, action())
    assert [status for name, _, status in aws.calls if name == call] == [400]


def test_conflicts_without_end_are_tried_again_later(
    aws: StrictAws, tables: GlueTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    code = "ConcurrentModificationException"
    aws.fail(lambda each: each.action == "glue:CreateTable", status=400, code=code, times=1000)
    with pytest.raises(CommitUnknownError) as caught:
        publish(tables, action())
    assert caught.value.transient
    assert "table nyc.flights was changed by others again and again, for 120 s" in caught.value.message


def test_strategy_is_kept_with_the_table(aws: StrictAws, tables: GlueTables) -> None:
    publish(tables, action("DAY"))
    publish(tables, action("DAY", ("id", "bigint")))
    assert glue_table(aws)["Parameters"] == {
        "EXTERNAL": "TRUE",
        "classification": "parquet",
        "compressionType": "gzip",
        "lakewriter.partition-strategy": "DAY",
    }


STRATEGIES = [
    # made with, loaded with, the strategy to go back to; blank for tables and intents that tell none
    ("HOUR", "DAY", "HOUR"),
    ("DAY", "HOUR", "DAY"),
    ("SYNC_ID", "HOUR", "SYNC_ID"),
    ("HOUR", "HOUR", None),
    ("", "DAY", None),
    ("HOUR", "", None),
]


@pytest.mark.parametrize(("made", "loaded", "kept"), STRATEGIES)
def test_another_strategy_would_count_rows_twice(
    aws: StrictAws, tables: GlueTables, made: str, loaded: str, kept: str | None
) -> None:
    publish(tables, action(made))
    if kept is None:
        assert tables.read_columns(action(loaded)) == {"id": "int"}
        return
    with pytest.raises(SchemaIncompatibleError) as caught:
        tables.read_columns(action(loaded))
    assert f"has partition_strategy {kept!r}, expected {loaded!r}" in caught.value.message
    assert caught.value.remedy == f"Set partition_strategy: {kept} again, or load into another schema."


def test_table_that_fits_no_more_is_a_way_out_for_its_load(aws: StrictAws) -> None:
    control = Control(Memory(World(), lambda: None, random.Random(0), 0), ControlKeys("", "p"), "nyc.flights")
    own = attempt("a")
    began = register(control, own, Clients)
    assert began is not None
    # Made by somebody else after the load has looked, with a column of a type that the load's does not go into.
    publish(GlueTables(Clients(ACCESS)), action("HOUR", ("id", "date")))
    bind(control, own, intent(own, action()), began, Clients)
    for stuck in (lambda: settle(control, own, Clients), lambda: register(control, attempt("b"), Clients)):
        with pytest.raises(PendingUnrecoverableError) as caught:
            stuck()
        assert "load 'a' of nyc.flights is pending (uploaded) and cannot go on" in caught.value.message
        assert "columns:" not in str(caught.value)
        assert caught.value.remedy.endswith("give the load up: lakewriter abandon LAKE a --reason TEXT")
    abandon({"nyc.flights": control}, "a", "the table is another one now", Clients(ACCESS))
    assert register(control, attempt("b"), Clients) is not None


def test_a_partition_at_another_place_is_not_waited_for(aws: StrictAws, tables: GlueTables) -> None:
    """No retry moves it: it was told as if the next try could find it elsewhere."""
    publish(tables, action())
    glue, where = aws.client("glue"), {"DatabaseName": "nyc", "TableName": "flights"}
    storage = glue.get_partition(**where, PartitionValues=[PLACES["HOUR"]])["Partition"]["StorageDescriptor"]

    def move(location: str) -> None:
        moved = {"Values": [PLACES["HOUR"]], "StorageDescriptor": storage | {"Location": location}}
        glue.update_partition(**where, PartitionValueList=[PLACES["HOUR"]], PartitionInput=moved)

    move("s3://acme-lake/elsewhere")
    with pytest.raises(SchemaIncompatibleError) as caught:
        publish(tables, action())
    assert (caught.value.transient, caught.value.exit_code) == (False, 1)
    assert f"lies at 's3://acme-lake/elsewhere', expected '{ROOT}/flights/{PLACES['HOUR']}'" in caught.value.message
    assert caught.value.remedy == "Set the partition's location back, or drop the partition: the load then adds it."
    move(f"{ROOT}/flights/{PLACES['HOUR']}/")
    publish(tables, action())


def test_rows_are_not_merged(aws: StrictAws, tables: GlueTables):
    loaded = intent(attempt("a"), action())
    merge = MergeIntent(keys=("id",), order_by=("at",))
    with pytest.raises(TypeError, match="has no way to publish the work MergeIntent"):
        tables.publish(intents.recast(loaded, "merge", merge=merge), 1)
    assert aws.client("glue").get_databases()["DatabaseList"] == []


def projected(day: str, *, adds: bool = True) -> GlueAction:
    """A load of one day into a table whose partitions Athena computes, as ``projection: true`` and ``only`` have it."""
    folder = f"{ROOT}/flights/load_date={day}"
    projection = Projection(
        value=day, format="yyyy-MM-dd", unit="DAYS", template=f"{ROOT}/flights/load_date=${{load_date}}/"
    )
    entry = {"partition": day if adds else None, "partition_location": folder if adds else None}
    return action("").model_copy(update={"partition_key": "load_date", "projection": projection, **entry})


# https://docs.aws.amazon.com/athena/latest/ug/partition-projection-supported-types.html
PROJECTION = {
    "projection.enabled": "true", "projection.load_date.type": "date", "projection.load_date.format": "yyyy-MM-dd",
    "projection.load_date.range": "2027-01-04,NOW", "projection.load_date.interval": "1",
    "projection.load_date.interval.unit": "DAYS",
    "storage.location.template": "s3://acme-lake/data/nyc/flights/load_date=${load_date}/",
}  # fmt: skip


def list_projection(aws: StrictAws) -> dict[str, str]:
    parameters = glue_table(aws)["Parameters"]
    return {name: text for name, text in parameters.items() if name.startswith(("projection", "storage"))}


DAYS = [
    # days that are loaded, the first that Athena computes, and how often the table is changed
    (["2027-01-04"], "2027-01-04", 0),
    (["2027-01-04", "2027-01-05", "2027-01-04"], "2027-01-04", 0),
    # a load that began before, and was finished after
    (["2027-01-05", "2027-01-04"], "2027-01-04", 1),
]


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize(("days", "first", "changes"), DAYS)
def test_athena_computes_every_partition(aws, tables, days, first, changes, adds):
    for day in days:
        publish(tables, projected(day, adds=adds))
    assert list_projection(aws) == PROJECTION | {"projection.load_date.range": f"{first},NOW"}
    assert [action for action, _, _ in aws.calls].count("glue:UpdateTable") == changes
    entries = [values for values, _ in tables.list_partitions(projected("2027-01-04"))]
    assert sorted(entries) == ([(day,) for day in sorted(set(days))] if adds else [])
    for day in days:
        assert tables.compare(intent(attempt("a"), projected(day, adds=adds))).mismatches == ()


def test_a_table_of_before_is_projected_from_its_first_partition_on(aws, tables):
    """And loads of before are compared with what Athena computes now."""
    before = projected("2027-01-04").model_copy(update={"projection": None})
    publish(tables, before)
    assert list_projection(aws) == {}
    publish(tables, projected("2027-01-06"))
    assert list_projection(aws) == PROJECTION
    assert tables.compare(intent(attempt("a"), before)).mismatches == ()


CHANGED = [
    # what somebody has set, and what a query misses
    ({"projection.enabled": "false"}, "'projection.enabled' is not 'true'"),
    ({"projection.load_date.range": "2027-01-05,NOW"}, "partition '2027-01-04' at s3://acme-lake/data/nyc/flights/load_"
     "date=2027-01-04/ is none of what it computes"),
    ({"projection.load_date.range": "2027-01-04,NOW-1DAYS"}, "is none of what it computes"),
    ({"storage.location.template": "s3://acme-lake/elsewhere/${load_date}"}, "is none of what it computes"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "said"), CHANGED)
def test_a_projection_that_others_changed(aws, tables, changed, said):
    catalog = projected("2027-01-04", adds=False)
    publish(tables, catalog)
    table = glue_table(aws)
    kept = {name: table[name] for name in ("Name", "StorageDescriptor", "PartitionKeys", "TableType")}
    given = kept | {"Parameters": table["Parameters"] | changed}
    aws.client("glue").update_table(DatabaseName="nyc", TableInput=given)
    (mismatch,) = tables.compare(intent(attempt("a"), catalog)).mismatches
    assert said in mismatch.message
    with pytest.raises(CommitUnknownError, match="Glue does not show"):
        tables.read_back(intent(attempt("a"), catalog))
    # The next load sets it again.
    publish(tables, catalog)
    assert list_projection(aws) == PROJECTION
