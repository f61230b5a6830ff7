"""Check that the job can reach its sources and stores: without a VPC it reaches only its region's AWS services.

What a load calls is listed once: every check of network and grants uses this list.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from lakewriter.deployable.lake_file import find_unshippable
from lakewriter.deployable.staged_lake import StagedLake
from lakewriter.policy.checkpoint import S3
from lakewriter.policy.secrets import list_references
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Read

REACHED: Final = frozenset({"s3", "glue", "lakeformation", "logs", "kms", "sts", "dynamodb", "secretsmanager"})
"""The services whose endpoints, in its own region, a job without a VPC reaches.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/considerations.html
"""
ELSEWHERE: Final = ""
"""The service of what is none of AWS's."""

_NEEDED: Final = "Give deployment.network the subnets and security groups of a VPC with a way there"
_MADE_UP: Final = ("rate", "rate-micro-batch")
"""Formats whose rows Spark generates itself."""
_LOCAL: Final = ("", "file")


@dataclass(frozen=True)
class Call:
    """One thing that a load calls: a ``service`` of AWS in a ``region``, blank for the bucket's, or something else.

    ``what`` begins a message, ``expected`` is what would need no network.
    """

    service: str
    what: str
    expected: str
    region: str = ""


def list_calls(settings: StagedLake) -> Iterator[Call]:
    """List what a load calls beside the logs, which EMR Serverless writes: destination, catalog, sources, secrets."""
    spec = settings.spec
    endpoint, rest = spec.access.endpoint, spec.rest_service
    if endpoint:
        yield Call(ELSEWHERE, f"the destination's custom endpoint {endpoint!r} is", "none")
    else:
        yield Call("s3", f"the bucket {spec.access.bucket!r} is", "")
    if rest:
        yield Call(
            rest.aws_service or ELSEWHERE,
            f"the Iceberg catalog {rest.uri!r} is",
            spec.access.key_names.name_catalog("glue"),
        )
    elif spec.in_glue:
        yield Call("glue", "the Glue Data Catalog is", "")
    if spec.access.role_arn:
        yield Call("sts", f"the role {spec.access.role_arn!r} is taken from STS, which is", "")
    yield from _list_secrets(spec)
    if spec.put_metrics:
        yield Call("monitoring", "put_metrics: CloudWatch's metrics are", "put_metrics: false")
    if spec.lineage is not None and spec.lineage.is_remote:
        yield Call(ELSEWHERE, f"lineage.to: the server {spec.lineage.to!r} is", "lineage.to: log")
    yield from _list_sources(spec)


def _list_secrets(spec: Spec) -> Iterator[Call]:
    for kind, name in list_references(spec):
        region = name.split(":")[3] if name.startswith("arn:") else ""
        if kind == "ssm":
            yield Call("ssm", f"${{ssm:{name}}} is in Parameter Store, which is", "${secret:ARN}, in Secrets Manager")
        elif kind == "secret":
            yield Call(
                "secretsmanager", f"${{secret:{name}}} is in {region or 'the same region'}, which is",
                "a secret in the bucket's region", region,
            )  # fmt: skip


def _list_sources(spec: Spec) -> Iterator[Call]:
    for table in (table for table in spec.tables if table.stream is None):
        source = ".".join(part for part in (table.source_schema, table.source_table) if part)
        for read in list_reads(table.read):
            named = f"tables: table {source!r} reads"
            if read.format and not read.paths and read.format not in _MADE_UP:
                yield Call(ELSEWHERE, f"{named} format {read.format!r}, a source", "files in S3")
            for path in read.paths:
                scheme = urlsplit(path).scheme.lower()
                if scheme not in _LOCAL:
                    yield Call("s3" if scheme in S3 else ELSEWHERE, f"{named} {path!r},", "s3://")


def list_reads(read: Read) -> Iterator[Read]:
    """List a read and those of its views."""
    yield read
    for view in read.views.values():
        yield from list_reads(view)


def check_lake_file(settings: StagedLake) -> Iterator[str]:
    """Refuse paths and variables that exist only on this machine, and secrets that others could read."""
    yield from find_unshippable(settings.lake)


def check_jars(settings: StagedLake) -> Iterator[str]:
    """Refuse a database's table without a jar that may be its driver, and jars that are no files."""
    deployment, conf = settings.deployment, settings.deployment.spark.conf
    for number, jar in enumerate(deployment.jars):
        if "://" not in jar and not Path(jar).is_file():
            yield f"deployment.jars.{number}: there is no file {jar!r}; expected one beside lake.yaml, or s3://..."
    if deployment.jars or {"spark.jars", "spark.jars.packages"} & set(conf):
        return
    for table in settings.spec.tables:
        if any(read.kind.name == "jdbc" for read in list_reads(table.read)):
            source = ".".join(part for part in (table.source_schema, table.source_table) if part)
            yield (
                f"tables: table {source!r} reads a database by JDBC, and no driver goes with the job; expected its "
                "jar. Give deployment.jars the driver's jar, as s3://... or as a file beside lake.yaml."
            )


def check_network(settings: StagedLake) -> Iterator[str]:
    """Refuse whatever a load calls beside its region's AWS services if the stack has no VPC."""
    if settings.deployment.network is not None:
        return
    home = settings.spec.access.region
    for call in list_calls(settings):
        if call.service not in REACHED or call.region not in {"", home}:
            landed = ", or land the data in S3 first" if call.expected == "files in S3" else ""
            yield (
                f"{call.what} out of reach without a VPC; expected {call.expected}, or a network. {_NEEDED}{landed}."
            )
