"""The maintenance of Iceberg tables: what a load sets, what it leaves alone, and what Glue is told.

Shapes of configurations: https://docs.aws.amazon.com/glue/latest/webapi/API_TableOptimizerConfiguration.html;
properties: https://iceberg.apache.org/docs/latest/configuration/#table-behavior-properties
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from lakewriter.commit.iceberg.glue_optimizers import MARK, Optimizers, find_faults
from lakewriter.commit.iceberg.s3_tables_upkeep import make_snapshot_settings
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.records.state import TableState
from lakewriter.spec.catalogs import GlueService, IcebergCatalog
from lakewriter.spec.maintenance import Maintenance
from tests.doctor.pipeline import abort_after, checked, spec
from tests.iceberg.commits import Table
from tests.infra.destination.test_table_bucket import lake as in_table_bucket
from tests.support.open_catalog import OpenCatalog
from tests.support.server import StrictAws

ROWS = pa.table({"id": [1, 2]})
ROLE = "arn:aws:iam::123456789012:role/data/nyc-optimizers"
ALL = Maintenance(
    by="glue",
    expire_snapshots_days=5,
    keep_snapshots=2,
    compact=True,
    delete_orphans_days=31,
    optimizer_role="data/nyc-optimizers",
)
RETENTION = {
    "retentionConfiguration": {
        "icebergConfiguration": {
            "snapshotRetentionPeriodInDays": 5,
            "numberOfSnapshotsToRetain": 2,
            "cleanExpiredFiles": True,
        }
    }
}
ORPHANS = {"orphanFileDeletionConfiguration": {"icebergConfiguration": {"orphanFileRetentionPeriodInDays": 31}}}
TOLD = {"roleArn": ROLE, "enabled": True}
AGE = "history.expire.max-snapshot-age-ms"
EXPIRE = {AGE: "432000000", "history.expire.min-snapshots-to-keep": "2"}

CASES = [
    # maintenance, properties of the table, optimizers by type
    (ALL, EXPIRE, {"retention": TOLD | RETENTION, "compaction": TOLD, "orphan_file_deletion": TOLD | ORPHANS}),
    (Maintenance(expire_snapshots_days=5, keep_snapshots=2), EXPIRE, {}),
    (Maintenance(expire_snapshots_days=0.25, keep_snapshots=2), EXPIRE | {AGE: "21600000"}, {}),
    (Maintenance(by="glue", compact=True, optimizer_role=ROLE), {}, {"compaction": TOLD}),
    (Maintenance(), {}, {}),
    (None, {}, {}),
]


@pytest.fixture
def table(aws: StrictAws, bucket: str) -> Table:
    return Table(aws)


def keep(table: Table, maintenance: Maintenance | None, job: str = "a") -> None:
    table.maintenance = maintenance
    table.ready(job, ROWS.schema)


def told(aws: StrictAws) -> dict[str, object]:
    return {kind: configuration for (_, kind), configuration in aws.optimizers.kept.items()}


def expire(table: Table) -> dict[str, str]:
    return {key: value for key, value in table.seen.properties.items() if key.startswith("history.")}


@pytest.mark.parametrize(("maintenance", "properties", "optimizers"), CASES)
def test_the_first_load_sets_it(table: Table, aws: StrictAws, maintenance, properties, optimizers) -> None:
    keep(table, maintenance)
    assert expire(table) == properties
    assert told(aws) == optimizers


@pytest.mark.parametrize("maintenance", [ALL, Maintenance(expire_snapshots_days=5, keep_snapshots=2)])
def test_a_table_that_is_there_gets_it_once(table: Table, aws: StrictAws, maintenance: Maintenance) -> None:
    """As after an upgrade: the next load finds nothing to do, asks Glue for nothing, and commits nothing."""
    keep(table, None)
    keep(table, maintenance)
    assert expire(table) == EXPIRE
    before, calls = table.seen.metadata_location, len(aws.calls)
    keep(table, maintenance, "b")
    assert table.seen.metadata_location == before
    assert [action for action, _, _ in aws.calls[calls:] if "Optimizer" in action or "sts" in action] == []


def test_what_changes_in_the_file_changes_in_glue(table: Table, aws: StrictAws) -> None:
    keep(table, ALL)
    less = ALL.model_copy(update={"compact": False, "delete_orphans_days": 60})
    table.maintenance = less
    assert table._before("b").describe_changes(ROWS.schema) == [
        "let Glue expire snapshots of db.t",
        "let Glue delete orphan files of db.t",
        "stop Glue's compaction of db.t",
    ]
    keep(table, less, "b")
    orphans = {"orphanFileDeletionConfiguration": {"icebergConfiguration": {"orphanFileRetentionPeriodInDays": 60}}}
    assert told(aws) == {"retention": TOLD | RETENTION, "orphan_file_deletion": TOLD | orphans}


def test_without_the_key_all_stays(table: Table, aws: StrictAws) -> None:
    """Loads may not change it then."""
    keep(table, ALL)
    before = told(aws)
    keep(table, None, "b")
    assert (told(aws), expire(table)) == (before, EXPIRE)


def test_a_new_table_is_planned_with_it(table: Table) -> None:
    table.maintenance = ALL
    assert table._before("a").describe_changes(ROWS.schema)[1:] == [
        "set history.expire.max-snapshot-age-ms=432000000 of db.t",
        "set history.expire.min-snapshots-to-keep=2 of db.t",
        "let Glue expire snapshots of db.t",
        "let Glue compact small files of db.t",
        "let Glue delete orphan files of db.t",
    ]


REFUSED = [
    # what is refused, what the report tells
    ("glue:CreateTableOptimizer", "glue:CreateTableOptimizer on db.t"),
    ("sts:GetCallerIdentity", "sts:GetCallerIdentity on db.t"),
]


@pytest.mark.parametrize(("action", "named"), REFUSED)
def test_a_refusal_stops_no_load_and_is_tried_again(table: Table, aws: StrictAws, action: str, named: str) -> None:
    aws.deny(action)
    table.maintenance = ALL
    before = table._before("a")
    before.prepare(ROWS.schema, TableState())
    (note,) = before.left
    assert note.startswith("Glue's optimizers of db.t are not as 'maintenance' has them: ")
    assert named in note
    assert (expire(table), MARK in table.seen.properties, told(aws)) == (EXPIRE, False, {})
    aws.allow_everything()
    keep(table, ALL, "b")
    assert sorted(told(aws)) == ["compaction", "orphan_file_deletion", "retention"]
    assert MARK in table.seen.properties


def test_two_loads_at_once(table: Table, aws: StrictAws) -> None:
    """The other has created the optimizers, and not said so in the table yet."""
    other = ALL.model_copy(update={"delete_orphans_days": 90})
    keep(table, other)
    aws.hide_missing = False
    with table.seen.transaction() as transaction:
        transaction.remove_properties(MARK)
    keep(table, ALL, "b")
    assert told(aws)["orphan_file_deletion"] == TOLD | ORPHANS


def test_a_mark_of_others_is_read_as_none(table: Table, aws: StrictAws) -> None:
    keep(table, None)
    aws.hide_missing = False
    for mark in ("", "[]", '{"optimizers": 3}', "{"):
        with table.seen.transaction() as transaction:
            transaction.set_properties({MARK: mark})
        aws.optimizers.kept.clear()
        keep(table, ALL, "b")
        assert len(told(aws)) == 3


def test_another_catalog_gets_the_properties(aws: StrictAws, bucket: str) -> None:
    with OpenCatalog(aws, bucket) as catalog:
        table = Table(aws, catalog)
        keep(table, Maintenance(expire_snapshots_days=5, keep_snapshots=2))
        assert expire(table) == EXPIRE


AGAIN = "Remove the table's property 'lakewriter-maintenance': the next load sets its upkeep again."
FAULTS = [
    # what Glue has, what `lakewriter check` says, what to do
    (
        lambda kept, _: kept.pop(("db.t", "compaction")),
        "Glue has no optimizer to compact small files (compaction).",
        AGAIN,
    ),
    (
        lambda kept, _: kept[("db.t", "compaction")].update(enabled=False),
        'Glue\'s optimizer compaction was changed: it is {"enabled": false, "roleArn": "' + ROLE + '"}, expected '
        '{"enabled": true, "roleArn": "' + ROLE + '"}.',
        AGAIN,
    ),
    (
        lambda _, runs: runs.update({("db.t", "retention"): {"eventType": "failed", "error": "AccessDenied"}}),
        "Glue's optimizer retention failed at None: AccessDenied.",
        "Look into CloudWatch's /aws-glue/iceberg-retention/logs. Its role needs what 'lakewriter policy LAKE --who "
        "optimizer' prints.",
    ),
    # Glue's own defaults, and a run that went well
    (
        lambda kept, _: kept[("db.t", "compaction")].update(compactionConfiguration={"icebergConfiguration": {}}),
        None,
        None,
    ),
    (lambda _, runs: runs.update({("db.t", "retention"): {"eventType": "completed"}}), None, None),
]


@pytest.mark.parametrize(("change", "said", "remedy"), FAULTS)
def test_what_is_not_as_it_should_be(table: Table, aws: StrictAws, change, said, remedy) -> None:
    keep(table, ALL)
    change(aws.optimizers.kept, aws.optimizers.last_runs)
    found = list(find_faults(Optimizers(table.clients, table.action, ALL), ALL))
    assert found == ([(said, remedy)] if said else [])


def test_check_tells_of_it(aws: StrictAws, bucket: str) -> None:
    table = Table(aws, name="flights")
    table.action = table.action.model_copy(update={"namespace": "nyc_public"})
    wanted = spec().model_copy(update={"catalog": IcebergCatalog(service=GlueService()), "maintenance": ALL})
    keep(table, ALL)
    assert checked(wanted)["maintenance of nyc_public.flights"].status == "ok"
    aws.optimizers.kept.clear()
    found = checked(wanted)["maintenance of nyc_public.flights"]
    assert (found.status, found.message.startswith("Glue has no optimizer to")) == ("warning", True)


@pytest.mark.parametrize(("days", "status"), [(30, "ok"), (31, "warning"), (60, "warning")])
def test_orphans_are_older_than_any_upload(aws: StrictAws, bucket: str, days: int, status: str) -> None:
    abort_after(aws, days)
    wanted = spec().model_copy(update={"catalog": IcebergCatalog(service=GlueService()), "maintenance": ALL})
    assert checked(wanted)["lifecycle"].status == status


OF_S3_TABLES: list[tuple[dict[str, Any], int]] = [
    # what the file says, and the days that the service is to keep snapshots
    ({}, 30),
    ({"keep_loads_days": 60}, 60),
    ({"maintenance": {"expire_snapshots_days": 7}}, 7),
    ({"maintenance": {"keep_snapshots": 3}, "keep_loads_days": 10}, 10),
]


@pytest.mark.parametrize(("top", "days"), OF_S3_TABLES)
def test_s3_tables_keeps_snapshots_as_long_as_records(tmp_path: Path, top: dict[str, Any], days: int) -> None:
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(in_table_bucket() | top), "utf-8")
    maintenance = load_spec(tmp_path / "lake.yaml").maintenance
    assert maintenance is not None
    kept = top.get("maintenance", {}).get("keep_snapshots", 1)
    wanted = {"maxSnapshotAgeHours": 24 * days, "minSnapshotsToKeep": kept}
    assert make_snapshot_settings(maintenance) == {"icebergSnapshotManagement": wanted}
