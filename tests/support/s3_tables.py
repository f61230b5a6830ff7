"""Amazon S3 Tables: its REST endpoint, a bucket for each table that lacks what the service's lack, and its upkeep.

https://docs.aws.amazon.com/AmazonS3/latest/API/developing-s3-tables-APIs.html has the calls that its buckets take,
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-maintenance.html what becomes of files and snapshots.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, ClassVar, Final
from urllib.parse import quote

from pyiceberg.io import FileIO, load_file_io
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.metadata import TableMetadata
from werkzeug.wrappers import Request, Response

from lakewriter.spec.catalogs import AnyRestService, S3TablesService
from tests.support.call import ACCOUNT, TABLE_BUCKET, Answer, Call
from tests.support.open_catalog import Refusal, _json
from tests.support.s3_rules import moto_bucket
from tests.support.signed import SignedCatalog

_TAKEN: Final = frozenset({"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"})
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9_]{0,253}[a-z0-9])?")
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-buckets-naming.html"""
UNREFERENCED: Final = timedelta(days=3)
"""After this nobody reads an object any more that no snapshot names."""
EXPIRED: Final = timedelta(hours=120)


@dataclass
class TableBuckets:
    """As a rule of the embedded AWS: what the buckets of tables lack, they refuse, and metadata they drop."""

    refused: list[Call] = field(default_factory=list)

    def __call__(self, call: Call, proceed: Callable[[Call], Answer]) -> Answer:
        """Answer, or pass the call on without its metadata."""
        if call.service != "s3" or not call.bucket.endswith(TABLE_BUCKET):
            return proceed(call)
        is_put_if_free = call.method == "PUT" and "if-none-match" in call.headers
        if call.action not in _TAKEN or is_put_if_free:
            self.refused.append(call)
            return call.error(405, "MethodNotAllowed", "The specified method is not allowed against this resource.")
        bucket = moto_bucket(call.bucket)
        if call.action == "s3:GetObject" and (bucket is None or call.key not in bucket.keys):
            return call.error(404, "NoSuchKey", "The specified key does not exist.")
        kept = {name: value for name, value in call.headers.items() if not name.startswith("x-amz-meta-")}
        return proceed(replace(call, headers=kept))


@dataclass
class S3TablesCatalog(SignedCatalog):
    """One table bucket; ``pass_time`` lets its upkeep do what is due."""

    service: ClassVar[str] = "s3tables"
    warehouse: str = f"arn:aws:s3tables:us-east-1:{ACCOUNT}:bucket/lake"
    prefix: str = f"arn:aws:s3tables:us-east-1:{ACCOUNT}:bucket/lake"
    rule: TableBuckets = field(default_factory=TableBuckets)
    buckets: dict[str, timedelta] = field(default_factory=dict)
    """The buckets of tables, with their ages."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.aws.interceptors.append(self.rule)
        self.aws.table_upkeep.buckets[self.warehouse] = {"unreferencedDays": 31, "nonCurrentDays": 30}
        self._ages: dict[tuple[str, str], timedelta] = {}

    def make_service(self, **other: str) -> AnyRestService:
        """See ``OpenCatalog``."""
        return S3TablesService.model_validate({"uri": self.url, "warehouse": self.warehouse, **other})

    def make_settings(self) -> dict[str, str]:
        """See ``OpenCatalog``."""
        return {"catalog": "s3_tables", "uri": self.url, "table_bucket_arn": self.warehouse}

    def _config(self, request: Request) -> Response:
        super()._config(request)
        return _json({"defaults": {}, "overrides": {"prefix": quote(self.prefix, safe="")}})

    def _new_namespace(self, request: Request) -> Response:
        _require_name(*request.get_json()["namespace"])
        return super()._new_namespace(request)

    def _create(self, namespace: str, request: Request) -> Response:
        wanted = request.get_json()
        _require_name(wanted["name"])
        if wanted.get("location"):
            raise Refusal(400, "BadRequestException", "The location of a table cannot be given.")
        return super()._create(namespace, request)

    def _place(self, namespace: str, name: str) -> str:
        bucket = f"{uuid.uuid4()}{TABLE_BUCKET}"
        self.aws.client("s3").create_bucket(Bucket=bucket)
        self.buckets[bucket] = timedelta(0)
        return f"s3://{bucket}"

    def pass_time(self, passed: timedelta) -> list[str]:
        """Let time pass, then expire snapshots and clear what none names; return the locations of what is cleared."""
        cleared = []
        for (namespace, name), entry in list(self.tables.items()):
            metadata = self._expire(entry.metadata, passed)
            if metadata is not entry.metadata:
                self._store(namespace, name, metadata)
            named = set(self._list_named(self.tables[namespace, name]))
            bucket = metadata.location.removeprefix("s3://")
            for key in self.aws.objects(bucket):
                self._ages[bucket, key] = self._ages.get((bucket, key), timedelta(0)) + passed
                if f"s3://{bucket}/{key}" not in named and self._ages[bucket, key] >= UNREFERENCED:
                    self.aws.client("s3").delete_object(Bucket=bucket, Key=key)
                    cleared.append(f"s3://{bucket}/{key}")
        return cleared

    def _expire(self, metadata: TableMetadata, passed: timedelta) -> TableMetadata:
        current = metadata.current_snapshot()
        if passed < EXPIRED or current is None or len(metadata.snapshots) < 2:
            return metadata
        log = [entry for entry in metadata.snapshot_log if entry.snapshot_id == current.snapshot_id]
        return metadata.model_copy(update={"snapshots": [current], "snapshot_log": log})

    def _list_named(self, entry: Any) -> Iterator[str]:
        yield entry.location
        yield from (before.metadata_file for before in entry.metadata.metadata_log)
        io: FileIO = load_file_io(
            {"s3.endpoint": self.aws.url, "s3.region": self.region, "s3.access-key-id": "testing",
             "s3.secret-access-key": "testing"}, entry.location,
        )  # fmt: skip
        for snapshot in entry.metadata.snapshots:
            yield snapshot.manifest_list
            for manifest in snapshot.manifests(io):
                yield from _list_files(manifest, io)


def _list_files(manifest: ManifestFile, io: FileIO) -> Iterator[str]:
    yield manifest.manifest_path
    yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(io))


def _require_name(*levels: str) -> None:
    if len(levels) != 1 or not _NAME.fullmatch(levels[0]):
        raise Refusal(400, "BadRequestException", f"The name {'.'.join(levels)} is not valid.")
