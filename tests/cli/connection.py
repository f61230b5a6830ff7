"""A connection of Airbyte's platform: it calls ``airbyte write`` as the platform does, and reads what lies there."""

import io
import json
import sys
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from lakewriter.cli.airbyte import protocol_work
from lakewriter.cli.main import main
from tests.cli.platform import Platform
from tests.cli.scenarios import FORMS, SCENARIOS, WHOLE, Scenario, simplify
from tests.load.syncs import read

Message = dict[str, Any]
ID = {"id": {"type": "integer"}}


class Connection:
    """A connection of the platform: its files, and its destination's calls."""

    def __init__(self, platform: Platform, spark: SparkSession, form: str, capfd: pytest.CaptureFixture[str]) -> None:
        self.platform, self.form = platform, form
        self._spark, self._capfd = spark, capfd

    def write(self, streams: list[Message], messages: Iterable[Message]) -> tuple[int, list[Message]]:
        """The exit code, and the messages on standard output."""
        config, catalog = self.platform.given(*streams, format=FORMS[self.form])
        sent = "".join(json.dumps(message) + "\n" for message in messages).encode()
        arguments = ["airbyte", "write", "--config", str(config), "--catalog", str(catalog)]
        self._capfd.readouterr()
        with (
            patch.object(protocol_work, "open_spark_session", lambda _, **__: self._spark),
            patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(sent))),
            pytest.raises(SystemExit) as ended,
        ):
            main(arguments)
        return int(ended.value.code or 0), [json.loads(line) for line in self._capfd.readouterr().out.splitlines()]

    def read(self, folder: str) -> list[dict[str, Any]]:
        """The rows of a stream's objects, by what did not write them."""
        found = [(key, body) for key, body in self.platform.data().items() if key.startswith(folder)]
        return [row for key, body in sorted(found) for row in read(key, body)]

    def ids(self, stream: str) -> list[int]:
        """The rows of a stream with one column."""
        rows = self.read(f"data/public/{stream}/")
        return sorted(int(self.read_data(row)["id"]) for row in rows)

    def read_data(self, row: dict[str, Any]) -> dict[str, Any]:
        """The record's own columns."""
        if self.form in WHOLE:
            data: Any = row["_airbyte_data"]
            return dict(json.loads(data) if isinstance(data, str) else data)
        return {key: simplify(value) for key, value in row.items() if not key.startswith("_airbyte_")}


def describe(name: str, namespace: str | None) -> Message:
    return {"name": name} | ({} if namespace is None else {"namespace": namespace})


def configure(name: str, properties: Message = ID, namespace: str | None = "public", **settings: Any) -> Message:
    """A stream of a configured catalog, appended to unless the settings say otherwise."""
    schema = {"type": "object", "properties": properties}
    own = describe(name, namespace) | {"json_schema": schema, "supported_sync_modes": ["full_refresh", "incremental"]}
    modes = {"sync_mode": "incremental", "destination_sync_mode": "append"}
    return {"stream": own} | modes | {"generation_id": 1, "minimum_generation_id": 0, "sync_id": 1} | settings


def refresh(name: str, generation: int, sync_id: int) -> Message:
    """A full refresh as the platform asks for it."""
    return configure(name, sync_mode="full_refresh", destination_sync_mode="overwrite", generation_id=generation,
                     minimum_generation_id=generation, sync_id=sync_id)  # fmt: skip


def record(name: str, data: Message, namespace: str | None = "public") -> Message:
    own = {"stream": name, "data": data, "emitted_at": 1622135805000}
    return {"type": "RECORD", "record": own | ({} if namespace is None else {"namespace": namespace})}


def records(name: str, *ids: int) -> list[Message]:
    return [record(name, {"id": each}) for each in ids]


def status(name: str, text: str, namespace: str | None = "public") -> Message:
    own = {"stream_descriptor": describe(name, namespace), "status": text}
    return {"type": "TRACE", "trace": {"type": "STREAM_STATUS", "emitted_at": 1.0, "stream_status": own}}


def state(name: str, cursor: int) -> Message:
    own = {"stream_descriptor": describe(name, "public"), "stream_state": {"cursor": cursor}}
    return {"type": "STATE", "state": {"type": "STREAM", "stream": own}}


def send_scenarios(scenarios: Iterable[Scenario] = SCENARIOS) -> tuple[list[Message], list[Message]]:
    """The streams and the messages of one sync with every scenario in it."""
    scenarios = list(scenarios)
    streams = [configure(each.name, each.properties, each.namespace) for each in scenarios]
    messages = [record(each.name, data, each.namespace) for each in scenarios for data in each.records]
    return streams, messages + [status(each.name, "COMPLETE", each.namespace) for each in scenarios]
