"""Check that the job can reach its sources and stores: without a VPC it reaches only its region's AWS services."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from infra.pipeline.lake_file import find_unshippable
from infra.settings import Settings
from lakewriter.spec.specification import Read, TableSpec

_MADE_UP = ("rate", "rate-micro-batch")
"""Formats whose rows Spark generates itself."""
_NEEDED = "Give deployment.network the subnets and security groups of a VPC with a way there"


def check_lake_file(settings: Settings) -> Iterator[str]:
    """Refuse paths and variables that exist only on this machine, and secrets that others could read."""
    yield from find_unshippable(settings.lake)


def check_network(settings: Settings) -> Iterator[str]:
    """Refuse sources, stores and catalogs outside the region's AWS services if the stack has no VPC."""
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
    for table in (table for table in settings.spec.tables if table.stream is None):
        for read in _list_reads(table.read):
            yield from (f"tables: {_name_table(table)} {reason}" for reason in _find_unreachable(read))


def _find_unreachable(read: Read) -> Iterator[str]:
    if read.format and not read.paths and read.format not in _MADE_UP:
        yield (
            f"reads format {read.format!r}, a source out of reach without a VPC; expected files in S3, or a network. "
            f"{_NEEDED}, or land the data in S3 first."
        )
    for path in read.paths:
        if _read_scheme(path) not in {"", "file", "s3", "s3a"}:
            yield f"reads {path!r}, out of reach without a VPC; expected s3://, or a network. {_NEEDED}."


def _list_reads(read: Read) -> Iterator[Read]:
    yield read
    for view in read.views.values():
        yield from _list_reads(view)


def _name_table(table: TableSpec) -> str:
    return f"table {'.'.join(part for part in (table.source_schema, table.source_table) if part)!r}"


def _read_scheme(path: str) -> str:
    return urlsplit(path).scheme.lower()
