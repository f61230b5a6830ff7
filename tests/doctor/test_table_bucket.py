"""What Amazon S3 Tables does by itself, held to what loads and undos need of it.

By default it takes files that no snapshot names after 3 days, and expires snapshots after 120 hours:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-considerations.html
"""

import pytest

from lakewriter import aws as sdk
from lakewriter.commit.iceberg.s3_tables_upkeep import TableService, make_snapshot_settings
from lakewriter.doctor.iceberg_access import IcebergProbes
from lakewriter.errors import LakeError
from lakewriter.records.actions import IcebergAction
from lakewriter.spec.catalogs import IcebergCatalog, S3TablesService
from lakewriter.spec.maintenance import Maintenance
from tests.doctor.pipeline import spec
from tests.support.server import StrictAws
from tests.support.table_upkeep import SNAPSHOTS, make_value

ARN = "arn:aws:s3tables:us-east-1:123456789012:bucket/acme-tables"
SERVICE = S3TablesService(uri="https://s3tables.us-east-1.amazonaws.com/iceberg", warehouse=ARN)
ACTION = IcebergAction(service=SERVICE, namespace="nyc_public", table="flights", location="")


def probes() -> IcebergProbes:
    wanted = spec().model_copy(update={"catalog": IcebergCatalog(service=SERVICE)})
    return IcebergProbes(wanted, sdk.Clients(wanted.access), "gate")


SET = "unreferencedDays of icebergUnreferencedFileRemoval to 31 or more"
BUCKETS = [
    # what the service does with files that no snapshot names; status, what is said, and what is to be done
    ({ARN: None}, "ok", "keeps files that no snapshot names.", ""),
    ({ARN: {"unreferencedDays": 31, "nonCurrentDays": 30}}, "ok", "for 31 days, and out of sight for 30 days.", ""),
    ({ARN: {"unreferencedDays": 30, "nonCurrentDays": 90}}, "failed", "after 30 days, and a load may wait for 30", SET),
    ({ARN: {"unreferencedDays": 3, "nonCurrentDays": 10}}, "failed", "it would lose its files.", SET),
    ({}, "failed", f"there is no table bucket {ARN}.", "Check table_bucket_arn"),
]


@pytest.mark.parametrize(("buckets", "status", "said", "remedy"), BUCKETS)
def test_files_are_kept_while_a_load_may_wait(aws: StrictAws, buckets, status: str, said: str, remedy: str) -> None:
    aws.table_upkeep.buckets = buckets
    (found,) = probes().check_table_bucket(ARN)
    assert (found.status, said in found.message, remedy in found.remedy) == (status, True, True), found
    assert found.code == (None if status == "ok" else "STAGED_LOST" if buckets else "BUCKET_NOT_FOUND")


def test_who_may_not_look_is_told(aws: StrictAws) -> None:
    aws.deny("s3tables:GetTableBucket")
    with pytest.raises(LakeError, match=r"s3tables:GetTableBucket on arn:aws:s3tables:.* was denied"):
        list(probes().check_table_bucket(ARN))


HOURS = [
    # the table's configuration, the days that the file promises, status
    (None, 5, "ok"),
    (None, 6, "failed"),
    (make_value(SNAPSHOTS, {"maxSnapshotAgeHours": 720, "minSnapshotsToKeep": 1}), 30, "ok"),
    (make_value(SNAPSHOTS, {"maxSnapshotAgeHours": 719, "minSnapshotsToKeep": 9}), 30, "failed"),
    (make_value(SNAPSHOTS) | {"status": "disabled"}, 300, "ok"),
]


@pytest.mark.parametrize(("configuration", "days", "status"), HOURS)
def test_snapshots_are_kept_as_long_as_undos_need_them(aws: StrictAws, configuration, days: int, status: str) -> None:
    if configuration:
        aws.table_upkeep.tables["nyc_public", "flights"] = {SNAPSHOTS: configuration}
    found, maintenance = probes(), Maintenance(expire_snapshots_days=days)
    (finding,) = found._check_upkeep(ACTION, found.spec.tables[0], maintenance)
    assert (finding.status, finding.code) == (status, None if status == "ok" else "LOAD_GONE"), finding.message
    # What the file asks for, once it is set, is enough.
    service = TableService(found.clients, ACTION, maintenance)
    for kind, wanted in make_snapshot_settings(maintenance).items():
        service.put(kind, wanted)
    assert service.find_snapshot_hours() == 24 * days
    (finding,) = found._check_upkeep(ACTION, found.spec.tables[0], maintenance)
    assert finding.message == f"Amazon S3 Tables keeps snapshots for {days} days of nyc_public.flights."
