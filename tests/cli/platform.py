"""Airbyte's platform as a destination sees it, on the embedded AWS."""

import io
import json
from pathlib import Path
from typing import Any

import msgspec

from lakewriter.aws import Clients
from lakewriter.cli.airbyte.writer import Step, Writer
from lakewriter.dialects.airbyte.connector import read_connection
from lakewriter.errors import LakeError
from lakewriter.run.loader import Loader
from lakewriter.run.stream_completion import InputEnd
from tests.load.syncs import BUCKET, SyncLake, catalog, record, stream

Said = list[dict[str, Any]]

CONFIG: dict[str, Any] = {
    "s3_bucket_name": BUCKET,
    "s3_bucket_path": "data",
    "s3_bucket_region": "us-east-1",
    "s3_endpoint": "",
    "format": {"format_type": "JSONL", "compression": {"compression_type": "No Compression"}},
}
USERS = stream("users", generation_id=3, minimum_generation_id=3, sync_id=7)


class Platform(SyncLake):
    """Calls the destination in this process; ``heard`` are the lines that the last sync said."""

    heard: list[bytes]

    def given(self, *streams: dict[str, Any], **config: Any) -> tuple[Path, Path]:
        """The files of its configuration and catalog."""
        (self.folder / "config.json").write_text(json.dumps(CONFIG | config), "utf-8")
        (self.folder / "catalog.json").write_text(json.dumps(catalog(*streams)), "utf-8")
        return self.folder / "config.json", self.folder / "catalog.json"

    def sync(
        self,
        *messages: dict[str, Any] | str,
        job: str = "j",
        step_bytes: int | None = None,
        streams: tuple[dict[str, Any], ...] = (USERS,),
        ended: InputEnd = "no statuses",
        **config: Any,
    ) -> tuple[Said, LakeError | None]:
        """What the destination says, and its error if it fails; a text is a line as it is.

        Few of these syncs carry statuses; tests of how a sync ends say what is known of it.
        """
        own = read_connection(*self.given(*streams, **config))
        self.heard = []
        folder = self.folder / job
        folder.mkdir()
        loader = Loader(own, job, Clients(own.access), lambda: self._spark, lambda *_: None)
        lines = "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in messages)
        writer = Writer(
            loader,
            lambda: self._spark,
            lambda message: self.heard.append(msgspec.json.encode(message)),
            folder,
            step=Step(step_bytes),
            ended=ended,
        )
        try:
            writer.write(io.BytesIO(lines.encode()))
        except LakeError as error:
            return [json.loads(line) for line in self.heard], error
        return [json.loads(line) for line in self.heard], None

    def ids(self, under: str = "data/public/users/") -> list[int]:
        """The users that lie there."""
        return sorted(row["_airbyte_data"]["user_id"] for row in self.rows(under))


def states(said: Said) -> list[tuple[Any, int]]:
    """Cursor and record count of each STATE handed back."""
    found = [message["state"] for message in said if message["type"] == "STATE"]
    return [(own["stream"]["stream_state"]["cursor"], own["destinationStats"]["recordCount"]) for own in found]


def user(number: int, stream_name: str = "users") -> dict[str, Any]:
    """A RECORD of a user."""
    return record(stream_name, {"user_id": number})
