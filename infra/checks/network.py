"""Check that the job can reach its sources and stores: without a VPC it reaches only its region's AWS services."""

from collections.abc import Iterator
from pathlib import Path

from infra.checks.calls import REACHED, list_calls, list_reads
from infra.pipeline.lake_file import find_unshippable
from infra.settings import Settings

_NEEDED = "Give deployment.network the subnets and security groups of a VPC with a way there"


def check_lake_file(settings: Settings) -> Iterator[str]:
    """Refuse paths and variables that exist only on this machine, and secrets that others could read."""
    yield from find_unshippable(settings.lake)


def check_jars(settings: Settings) -> Iterator[str]:
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


def check_network(settings: Settings) -> Iterator[str]:
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
