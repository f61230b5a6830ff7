"""What the job could not reach from where it runs: EMR Serverless without a VPC sees its region's AWS services."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from infra.pipeline.lake_file import shippable
from infra.settings import Settings
from lakewriter.spec.specification import Read, TableSpec

_MADE_UP = ("rate", "rate-micro-batch")
"""Sources whose rows Spark makes itself."""
_NEEDED = "Give deployment.network the subnets and security groups of a VPC with a way there"


def shipping(settings: Settings) -> Iterator[str]:
    """Paths, variables and secrets that mean something on this machine only, or that others could read."""
    yield from shippable(settings.lake)


def network(settings: Settings) -> Iterator[str]:
    """Sources, stores and catalogs beyond the region's AWS services, where the stack has no VPC."""
    if settings.deployment.network is not None:
        return
    endpoint = settings.spec.access.endpoint
    if endpoint:
        yield (
            f"the destination's custom endpoint {endpoint!r} is out of reach without a VPC; expected none, or a "
            f"network. {_NEEDED}."
        )
    service = settings.spec.rest_service
    if service:
        yield (
            f"the Iceberg catalog {service.uri!r} is out of reach without a VPC; expected GLUE, or a network. "
            f"{_NEEDED}."
        )
    for table in (each for each in settings.spec.tables if each.stream is None):
        for read in _reads(table.read):
            yield from (f"tables: {_source(table)} {reason}" for reason in _beyond(read))


def _beyond(read: Read) -> Iterator[str]:
    if read.format and not read.paths and read.format not in _MADE_UP:
        yield (
            f"reads format {read.format!r}, a source out of reach without a VPC; expected files in S3, or a network. "
            f"{_NEEDED}, or land the data in S3 first."
        )
    for path in read.paths:
        if _scheme(path) not in {"", "file", "s3", "s3a"}:
            yield f"reads {path!r}, out of reach without a VPC; expected s3://, or a network. {_NEEDED}."


def _reads(read: Read) -> Iterator[Read]:
    yield read
    for view in read.views.values():
        yield from _reads(view)


def _source(table: TableSpec) -> str:
    return f"table {'.'.join(part for part in (table.source_schema, table.source_table) if part)!r}"


def _scheme(path: str) -> str:
    return urlsplit(path).scheme.lower()
