"""A pipeline for the doctor to look at."""

from typing import Any

from lakewriter.aws import Clients
from lakewriter.doctor import Finding, run_checks
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import GlueCatalog, NoCatalog
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Read, TableSpec
from tests.support.server import StrictAws

ROLE = "arn:aws:iam::123456789012:role/LakeWriter"
CONTROL = "data/production/_lakewriter/flights"


def spec(*, glue: bool = False, read: Read | None = None, **access: Any) -> Spec:
    table = TableSpec(
        source_table="flights",
        schema_name="nyc_public",
        name="flights",
        read=read or Read(format="csv", path="flights.csv"),
        layout=Layout("data", Template.parse("part-{uuid}.parquet")),
        path="data/production/nyc_public/flights",
    )
    reach = {"bucket": "acme-lake", "region": "us-east-1", "prefix": "data/production", "role_wait_seconds": 0}
    return Spec(
        pipeline="flights",
        dialect="test",
        access=Access(**(reach | access)),
        catalog=GlueCatalog(partition_key=None) if glue else NoCatalog(),
        tracking=(),
        tables=(table,),
    )


def checked(wanted: Spec, **options: Any) -> dict[str, Finding]:
    return {finding.probe: finding for finding in run_checks(wanted, Clients(wanted.access), **options)}


def statuses(findings: dict[str, Finding], status: str) -> list[str]:
    return [name for name, finding in findings.items() if finding.status == status]


def abort_after(aws: StrictAws, days: int, prefix: str = "") -> None:
    rule = {"ID": "abort", "Status": "Enabled", "Filter": {"Prefix": prefix}}
    rule["AbortIncompleteMultipartUpload"] = {"DaysAfterInitiation": days}
    aws.client("s3").put_bucket_lifecycle_configuration(Bucket="acme-lake", LifecycleConfiguration={"Rules": [rule]})
