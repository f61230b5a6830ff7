"""Materializations on the embedded AWS: a lake.yaml with bindings in a folder, and the documents they write."""

import json
from collections.abc import Iterable
from typing import Any

import yaml

from job.aws import Clients
from job.commit.control import Control
from job.commit.store import S3Store
from job.naming import ControlKeys
from tests.load.lakes import BUCKET, Lake

DESTINATION = {
    "type": "estuary-s3-parquet",
    "bucket": BUCKET,
    "region": "us-east-1",
    "uploadIntervalInSeconds": 1,
}


class Materialization(Lake):
    """One pipeline of a test; its tables lie at the root of the bucket."""

    def write(self, *tables: dict[str, Any], **top: Any) -> None:
        """The lake.yaml; ``top`` is laid over it."""
        content = {"pipeline": "wiki", "destination": DESTINATION, "tables": list(tables)}
        self.file.write_text(yaml.safe_dump(content | top), "utf-8")

    def documents(self, name: str, documents: Iterable[Any]) -> None:
        """A file of documents, one in each line, that appears whole."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_text("".join(json.dumps(each) + "\n" for each in documents), "utf-8")
        hidden.rename(path)

    def control(self, table_id: str) -> Control:
        spec = self.spec
        return Control(S3Store(Clients(spec.access)), ControlKeys("", spec.pipeline), table_id)

    def data(self) -> dict[str, bytes]:
        return {key: body for key, body in self.aws.objects(BUCKET).items() if not key.startswith("_lakewriter/")}


def binding(path: str, documents: str, **more: Any) -> dict[str, Any]:
    """A binding of JSON documents in text files."""
    read = {"format": "text", "path": documents}
    return {"source": f"acmeCo/{path}", "resource": {"pathPrefix": path}, "read": read, "documents": "value"} | more
