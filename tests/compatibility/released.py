"""What earlier releases left behind, put back into the embedded AWS: see the README beside this file."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog
from pyiceberg.table.metadata import TableMetadataUtil
from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import LakeError
from lakewriter.naming import ControlKeys
from lakewriter.operate.repair import abandon
from lakewriter.operate.verification import verify
from lakewriter.report import RunReport
from lakewriter.run.loader import load
from lakewriter.spec.specification import Spec
from tests.compatibility.later import grow_body
from tests.iceberg.commits import rest_options, stores
from tests.load.syncs import read
from tests.support.open_catalog import Entry, OpenCatalog
from tests.support.server import StrictAws

FOLDER = Path(__file__).parent
BUCKET = "acme-lake"
SAMPLE = (
    "files-staging", "glue-published", "iceberg-rest-aborting", "airbyte-overwrite-intended", "estuary-uploaded",
)  # fmt: skip
"""The sets that CI takes: every vendor's layout and catalog, and every point in one of them."""
STRANGER = b"a stranger's"
"""The content of objects that no load has written."""
AT_RELEASE = b"/lake"
"""What stands in checkpoints for the folder of lake.yaml."""


class Released:
    """One set: a pipeline of one table as a release left it, put back under ``folder`` and into the bucket."""

    def __init__(
        self,
        name: str,
        folder: Path,
        aws: StrictAws,
        spark: SparkSession,
        catalog: OpenCatalog | None = None,
        *,
        grown: bool = False,
    ) -> None:
        self.folder, self.aws, self.catalog, self._spark, self._grown = folder, aws, catalog, spark, grown
        self._set = FOLDER / name
        self._record = json.loads((self._set / "case.json").read_text("utf-8"))
        self._texts: dict[bytes, bytes] = {}
        self._put_back()

    def _put_back(self) -> None:
        if self.catalog is not None:
            self._texts[self._record["open_catalog"]["url"].encode()] = self.catalog.url.encode()
        for upload in self._record.get("uploads", ()):
            parts = [(self._set / "parts" / part["file"]).read_bytes() for part in upload["parts"]]
            made, etags = self._upload(upload["key"], upload["metadata"], parts)
            assert etags == [part["etag"] for part in upload["parts"]]
            self._texts[upload["id"].encode()] = made.encode()
        self._put_objects()
        self._put_glue()
        if self.catalog is not None:
            self._put_open_catalog(self.catalog)
        self._put_input()

    def _upload(self, key: str, metadata: Mapping[str, str], parts: list[bytes]) -> tuple[str, list[str]]:
        s3 = self.aws.client("s3")
        begun = s3.create_multipart_upload(Bucket=BUCKET, Key=key, Metadata=metadata, ChecksumAlgorithm="CRC32")
        where = {"Bucket": BUCKET, "Key": key, "UploadId": begun["UploadId"]}
        answers = [s3.upload_part(**where, PartNumber=number, Body=part) for number, part in enumerate(parts, 1)]
        return begun["UploadId"], [answer["ETag"].strip('"') for answer in answers]

    def _put_objects(self) -> None:
        """Control objects byte by byte, but for ids of uploads and addresses of servers, which are new ones."""
        s3, root = self.aws.client("s3"), self._set / "objects"
        noted = {each["key"]: each for each in self._record["objects"]}
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            key, body = path.relative_to(root).as_posix(), path.read_bytes()
            metadata, etag = noted.get(key, {}).get("metadata", {}), noted.get(key, {}).get("etag")
            if etag is None:
                if "/_lakewriter/" in f"/{key}":
                    body = grow_body(self._replaced(body)) if self._grown else self._replaced(body)
                s3.put_object(Bucket=BUCKET, Key=key, Body=body, Metadata=metadata)
                continue
            # The etag of an object that was uploaded in parts, which an intent may name, is not that of its bytes.
            upload, (part,) = self._upload(key, metadata, [body])
            parts = {"Parts": [{"ETag": part, "PartNumber": 1}]}
            answer = s3.complete_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload, MultipartUpload=parts)
            assert answer["ETag"].strip('"') == etag

    def _put_glue(self) -> None:
        glue = self.aws.client("glue")
        for database in self._record.get("databases", ()):
            glue.create_database(DatabaseInput=database)
        for table in self._record.get("tables", ()):
            glue.create_table(DatabaseName=table["database"], TableInput=table["input"])
        for partition in self._record.get("partitions", ()):
            where = {"DatabaseName": partition["database"], "TableName": partition["table"]}
            glue.create_partition(**where, PartitionInput=partition["input"])

    def _put_open_catalog(self, catalog: OpenCatalog) -> None:
        catalog.namespaces.update(self._record["open_catalog"]["namespaces"])
        for table in self._record["open_catalog"]["tables"]:
            text = (self._set / "objects" / table["location"].removeprefix(f"s3://{BUCKET}/")).read_text("utf-8")
            entry = Entry(TableMetadataUtil.parse_raw(text), table["location"])
            catalog.tables[table["namespace"], table["name"]] = entry

    def _put_input(self) -> None:
        root = self._set / "input"
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            target = self.folder / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            body = self._replaced(path.read_bytes())
            target.write_bytes(body.replace(AT_RELEASE + b"/", str(self.folder).encode() + b"/"))

    def _replaced(self, body: bytes) -> bytes:
        for before, now in self._texts.items():
            body = body.replace(before, now)
        return body

    @property
    def spec(self) -> Spec:
        spec = load_spec(self.folder / "lake.yaml")
        if spec.source is None:
            return spec
        # The messages carry no statuses; release 0.1.0 took the end of such an input for the end of every stream.
        return spec.model_copy(update={"source": spec.source.model_copy(update={"statuses": "none"})})

    @property
    def control(self) -> Control:
        """That of its only table."""
        spec = self.spec
        (table,) = spec.tables
        return Control(S3Store(Clients(spec.access)), ControlKeys(spec.access.prefix, spec.pipeline), table.id)

    def load(self, job_id: str) -> RunReport:
        """One load in this process."""
        spec = self.spec
        return load(spec, job_id=job_id, clients=Clients(spec.access), spark=lambda: self._spark)

    def abandon(self, job_id: str) -> str:
        """What ``abandon`` says, or why it is refused."""
        control = self.control
        try:
            return abandon({control.table_id: control}, job_id, "a test", Clients(self.spec.access))[control.table_id]
        except LakeError as error:
            return error.code

    def differences(self, job_id: str) -> list[str]:
        """What ``verify`` finds, by code."""
        control = self.control
        found = verify({control.table_id: control}, job_id, Clients(self.spec.access))
        return [difference.code for difference in found.differences]

    def more(self, number: int) -> None:
        """One more row in the source."""
        if (csv := self.folder / "events.csv").exists():
            csv.write_text(f"{csv.read_text('utf-8')}{number},{number + 10}\n", "utf-8")
        elif (documents := self.folder / "changes.jsonl").exists():
            documents.write_text(json.dumps({"id": number}) + "\n", "utf-8")
        else:
            own = {"stream": "users", "namespace": "public", "data": {"user_id": number}, "emitted_at": 1622135805000}
            (self.folder / "1.jsonl").write_text(json.dumps({"type": "RECORD", "record": own}) + "\n", "utf-8")
            (self.folder / "2.jsonl").write_text("", "utf-8")

    def remove_strangers(self) -> None:
        """What a message about KEY_EXISTS tells to do."""
        for key, body in self.aws.objects(BUCKET).items():
            if body == STRANGER:
                self.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)

    def ids(self) -> list[int]:
        """The ids that readers see, in order."""
        if self.spec.iceberg:
            (table,) = self.spec.tables
            options = rest_options(self.catalog) if self.catalog else {"type": "glue"}
            found = load_catalog("own", **options, **stores(self.aws)).load_table((table.schema_name, table.name))
            return sorted(found.scan().to_arrow()["id"].to_pylist())
        objects = [(key, body) for key, body in self.objects().items() if body != STRANGER]
        return sorted(_id(row) for key, body in objects for row in read(key, body))

    def objects(self) -> dict[str, bytes]:
        """All but the control objects."""
        return {key: body for key, body in self.aws.objects(BUCKET).items() if "_lakewriter/" not in key}

    def partitions(self) -> list[str]:
        """The values of the partitions in Glue."""
        (table,) = self.spec.tables
        found = self.aws.client("glue").get_partitions(DatabaseName=table.schema_name, TableName=table.name)
        return sorted(each["Values"][0] for each in found["Partitions"])


def _id(row: Mapping[str, Any]) -> int:
    found = row["id"] if "id" in row else row.get("user_id", row.get("_airbyte_data", {}).get("user_id"))
    return int(found)


@contextmanager
def released(name: str, folder: Path, aws: StrictAws, spark: SparkSession, *, grown: bool) -> Iterator[Released]:
    """The set of this name, with the catalog that it needs; the secret is to be in the environment.

    ``grown`` control objects have a field at each level that nobody knows.
    """
    if "iceberg-rest" not in name:
        yield Released(name, folder, aws, spark, grown=grown)
        return
    with OpenCatalog(aws, BUCKET) as catalog:
        yield Released(name, folder, aws, spark, catalog, grown=grown)
