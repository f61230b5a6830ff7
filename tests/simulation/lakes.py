"""The pipelines that are simulated: each a lake.yaml as a user would write it, read by the product itself."""

import json
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import LakeError
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec
from tests.simulation.books import GRADE
from tests.simulation.kinds import WEIGHTS

BUCKET: Final = "lake"
PROPERTIES: Final = {"id": {"type": "integer"}, "nonce": {"type": "integer"}}
HOSTILE: Final = (
    *(
        "..",
        ".",
        "a/../b",
        "../../x",
        "\uff0e\uff0e",
        "a\uff0fb",
        "_lakewriter",
        "_LAKEWRITER",
        "a\x00b",
        "a\nb",
        "a b",
        " a ",
    ),
    *(
        "",
        "/",
        "a/b",
        "a//b",
        "a.b",
        "\u00e9",
        "e",
        "E",
        "_x",
        "a%2fb",
        "a\\b",
        "a" * 300,
        "\u202e",
        "con",
        "a.parquet",
        "public",
    ),
)
"""Names of schemas and tables that a source may give."""
COLUMNS: Final = "id BIGINT, nonce BIGINT, name STRING"
EVENTS: Final = f"{COLUMNS}, key BIGINT, at BIGINT, region BIGINT"
ORDERED_BY: Final = {
    "arrival": (),
    "cursor": ("at",),
    "lsn": ("_ab_cdc_lsn",),
    "log": ("_ab_cdc_log_file", "_ab_cdc_log_pos"),
    "own cursor": ("_ab_cdc_cursor", "_ab_cdc_lsn"),
}
"""The properties by which records of a key are newer than others, by what gives their order."""
DELETED_AT: Final = "_ab_cdc_deleted_at"
STREAMED: Final[dict[str, dict[str, Any]]] = {
    "key": {"type": "integer"},
    "who": {"type": "object", "properties": {"id": {"type": "integer"}}},
    "at": {"type": "integer"},
    "_ab_cdc_lsn": {"type": "string"},
    "_ab_cdc_log_file": {"type": "string"},
    "_ab_cdc_log_pos": {"type": "number"},
    "_ab_cdc_cursor": {"type": "integer"},
    DELETED_AT: {"type": "string"},
}
"""The types of a merged stream's properties."""
_IMAGE: Final = f"STRUCT<{EVENTS.replace(' ', ': ').replace(',: ', ', ')}>"
CHANGES: Final = (
    f"op STRING, before {_IMAGE}, after {_IMAGE}, source STRUCT<connector: STRING, table: STRING, "
    "snapshot: STRING, lsn: BIGINT, ts_ms: BIGINT>"
)
GRADED: Final = f"{COLUMNS}, {GRADE} BIGINT"


@dataclass(frozen=True)
class Lake:
    """A pipeline, by the ``text`` of its file; where it ``is_shared`` another one writes to the same place."""

    kind: str
    spec: Spec
    text: str
    is_shared: bool = False

    @property
    def pipeline(self) -> str:
        """Its name."""
        return self.spec.pipeline

    @property
    def is_streamed(self) -> bool:
        """Whether a continuous run loads its tables."""
        return self.kind == "batches" or (self.kind in {"merged", "history"} and self.spec.checkpoint is not None)

    @property
    def is_merged(self) -> bool:
        """Whether its tables are merged by key."""
        return self.kind in {"merged", "deduped", "history"}

    def put_on(self, endpoint: str) -> "Lake":
        """The pipeline in a store that is not Amazon's."""
        access = self.spec.access.model_copy(update={"endpoint": endpoint})
        return replace(self, spec=self.spec.model_copy(update={"access": access}))

    def narrow(self, table: TableSpec) -> "Lake":
        """The pipeline with one table alone, and its history."""
        return replace(self, spec=self.spec.keep_tables({table.id}))


@lru_cache(maxsize=1024)
def read_lake(text: str) -> Spec:
    """The pipeline of a file with this text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lake.yaml"
        file.write_text(text, "utf-8")
        catalog = {"streams": json.loads(text).get("source", {}).get("streams", ())}
        (Path(folder) / "catalog.json").write_text(json.dumps(catalog), "utf-8")
        if catalog["streams"]:
            command = json.loads(text)["source"].get("command")
            source = {"command": command} if command else {"messages": "m.jsonl"}
            content = json.loads(text) | {"source": source | {"catalog": "catalog.json"}}
            file.write_text(json.dumps(content), "utf-8")
        # libyaml's parser gives the same documents ten times as fast.
        with patch.object(yaml, "SafeLoader", getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            spec = load_spec(file)
    tables = tuple(_put_at(table, folder) for table in spec.tables)
    # Threads of one attempt are the simulation's; one file a task is enough.
    limits = spec.limits.model_copy(update={"upload_parallelism": 1})
    return spec.model_copy(update={"limits": limits, "tables": tables})


def _put_at(table: TableSpec, folder: str) -> TableSpec:
    """The table with its source at one place in all processes: the product notes where its files lie."""
    paths = tuple(path.replace(folder, "/source") for path in table.read.paths)
    return table.model_copy(update={"read": table.read.model_copy(update={"paths": paths})})


def make_lake(kind: str, pipeline: str, destination: dict[str, Any], tables: list[dict[str, Any]], **top: Any) -> Lake:
    content = {"pipeline": pipeline, "destination": destination} | ({"tables": tables} if tables else {}) | top
    text = json.dumps(content)
    return Lake(kind, read_lake(text), text)


def _read(name: str, columns: str = COLUMNS) -> dict[str, Any]:
    return {"format": "csv", "path": f"{name}.csv", "columns": columns}


def draw(rng: random.Random, kinds: tuple[str, ...]) -> list[Lake]:
    """One pipeline or two, of one kind, which share the bucket and perhaps their tables."""
    kind = rng.choices(kinds, [WEIGHTS[name] for name in kinds])[0]
    names = ["flights"] if rng.random() < 0.7 else ["flights", "trains"]
    make = {
        "files": _files, "glue": _glue, "iceberg": _iceberg, "airbyte": _airbyte, "estuary": _estuary,
        "batches": _batches, "messages": _messages, "refresh": _refresh, "quarantine": _quarantine,
        "connector": _connector, "merged": _merged, "deduped": _deduped, "history": _history,
    }[kind]  # fmt: skip
    state = rng.getrandbits(64)
    # Counted keys, and a table that is refreshed, are one pipeline's alone.
    apart = rng.random() < 0.5 or kind in {"estuary", "batches", "refresh", "merged", "deduped", "history"}
    # The same draw for both: they differ in their names alone, and where they lie apart, in their places.
    lakes = [make(random.Random(state), name, f"/{name}" if apart and len(names) > 1 else "") for name in names]
    naming = random.Random(f"table names of {state}")
    if naming.random() < 0.15 and kind != "connector":
        odd = [naming.choice([("public", own), (own, "orders")]) for own in naming.sample(HOSTILE, 3)]
        given = [naming.choice([own, ("public", f"t{number}")]) for number, own in enumerate(odd)]
        lakes = [rename(lake, given) for lake in lakes]
    fresh = random.Random(f"new files of {state}")
    if kind in {"files", "glue", "iceberg"} and fresh.random() < 0.3:
        lakes = [read_new_files(lake, fresh.choice(["fail", "warn"])) for lake in lakes]
    if len(lakes) < 2 or apart:
        return lakes
    return [replace(lake, is_shared=True, spec=lake.spec.model_copy(update={"shares_tables": True})) for lake in lakes]


def rename(lake: Lake, given: Sequence[tuple[str, str]]) -> Lake:
    """The pipeline with these schemas and names for its tables, in their order; as it was where the product refuses
    them."""
    content = json.loads(lake.text)
    for (schema, name), table in zip(given, content.get("tables", ()), strict=False):
        table |= {"schema": schema, "table": name}
    for (schema, name), stream in zip(given, content.get("source", {}).get("streams", ()), strict=False):
        stream["stream"] |= {"namespace": schema, "name": name}
    try:
        text = json.dumps(content)
        return replace(lake, spec=read_lake(text), text=text)
    except LakeError:
        return lake


def read_new_files(lake: Lake, repeated: str) -> Lake:
    """The pipeline with a folder of files in the place of a cursor."""
    content = json.loads(lake.text)
    for table in content["tables"]:
        if table.pop("cursor", None) is not None:
            table |= {"read": table["read"] | {"files": "new"}, "repeated": repeated}
    text = json.dumps(content)
    return replace(lake, spec=read_lake(text), text=text)


def make_crowd(tables: int, *, glue: bool) -> Lake:
    """A pipeline of many small tables."""
    destination = {
        "type": "lakewriter-s3", "location": f"s3://{BUCKET}/data", "region": "us-east-1",
        "catalog": "glue" if glue else "none",
    }  # fmt: skip
    names = [f"t{number:05d}" for number in range(tables)]
    content = [{"table": name, "schema": "public", "read": _read(name)} for name in names]
    return make_lake("crowd", "crowd", destination, content, limits={"parallel_tables": 8})


def has_several_tables(seed: int, kinds: tuple[str, ...]) -> bool:
    """Whether the history that the seed gives has a pipeline of several tables."""
    return any(len(lake.spec.tables) > 1 for lake in draw(random.Random(seed), kinds))


def _two(rng: random.Random, *tables: dict[str, Any]) -> list[dict[str, Any]]:
    return list(tables) if rng.random() < 0.3 else [rng.choice(tables)]


def _files(rng: random.Random, pipeline: str, place: str) -> Lake:
    destination = {
        "type": "supaflow-s3-data-lake",
        "s3_bucket_name": BUCKET,
        "bucket_region": "us-east-1",
        "s3_path_prefix": f"data{place}",
        "partition_strategy": rng.choice(["NONE", "DAY", "HOUR", "SYNC_ID"]),
        "file_name_pattern": rng.choice(
            ["part-{supa_job_id}-{seq}", "{date}-{uuid}", "{supa_job_id}-{timestamp}-{seq}"]
        ),
    }
    index = rng.choice(["contiguous", "sparse"])
    orders = {"table": "orders", "schema": "public", "read": _read("orders"), "primary_key": ["id"], "index": index}
    events = {"table": "events", "schema": "public", "read": _read("events"), "cursor": "id"}
    failure = {"on_failure": rng.choice(["continue", "stop"])}
    return make_lake("files", pipeline, destination, _two(rng, orders, events), **failure)


def _glue(rng: random.Random, pipeline: str, place: str) -> Lake:
    lake = _files(rng, pipeline, place)
    destination = {
        "type": "supaflow-s3-data-lake",
        "s3_bucket_name": BUCKET,
        "bucket_region": "us-east-1",
        "s3_path_prefix": f"data{place}",
        "update_aws_glue_catalog": True,
        "destination_prefix": place.strip("/"),
        "partition_strategy": rng.choice(["NONE", "DAY", "HOUR", "SYNC_ID"]),
    }
    del lake
    orders = {"table": "orders", "schema": "public", "read": _read("orders"), "primary_key": ["id"]}
    events = {"table": "events", "schema": "public", "read": _read("events"), "cursor": "id"}
    undo = {"drop_partitions": rng.random() < 0.7, "grace_minutes": rng.choice([0, 1, 15])}
    return make_lake("glue", pipeline, destination, _two(rng, orders, events), undo=undo)


def _iceberg(rng: random.Random, pipeline: str, place: str) -> Lake:
    destination = {
        "type": "supaflow-s3-data-lake",
        "s3_bucket_name": BUCKET,
        "bucket_region": "us-east-1",
        "s3_path_prefix": f"data{place}",
        "table_format": "ICEBERG",
        "destination_prefix": place.strip("/"),
    }
    orders = {"table": "orders", "schema": "public", "read": _read("orders"), "primary_key": ["id"]}
    events = {"table": "events", "schema": "public", "read": _read("events"), "cursor": "id"}
    return make_lake("iceberg", pipeline, destination, [rng.choice([orders, events])])


def _merged(rng: random.Random, pipeline: str, place: str) -> Lake:
    destination: dict[str, Any] = {
        "type": "lakewriter-s3",
        "location": f"s3://{BUCKET}/data{place}",
        "region": "us-east-1",
        "catalog": "iceberg",
        "database": f"{place.strip('/')}_lake".strip("_"),
    }
    orders: dict[str, Any] = {"table": "orders", "schema": "public", "read": _read("orders", EVENTS), "mode": "merge"}
    orders |= {"primary_key": ["key"], "order_by": rng.choice([["at"], ["at", "id"]])}
    if rng.random() < 0.6:
        orders["cursor"] = "id"
    if rng.random() < 0.5:
        orders["partition_by"] = ["region"]
    if rng.random() < 0.7:
        destination["tracking"] = ["deleted"]
        kept: dict[str, Any] = rng.choice(
            [{"keep_deleted": True}, {}, {"deleted_for": "1 day"}, {"deleted_for": "0 days"}]
        )
        orders |= {"deleted": "op = 'D'"} | kept
    is_streamed, version = rng.random() < 0.4, _choose_version(rng)
    if is_streamed or rng.random() < 0.3:
        orders.pop("cursor", None)
    if "cursor" not in orders and rng.random() < 0.6:
        # Debezium's events say themselves which are newer, and which delete.
        destination["tracking"] = ["deleted"]
        orders = {name: value for name, value in orders.items() if name not in {"order_by", "deleted"}}
        orders |= {"envelope": "debezium", "read": {"format": "json", "path": "orders.json"}}
    if is_streamed:
        orders["read"] = orders["read"] | {"columns": CHANGES} if "envelope" in orders else orders["read"]
        return make_lake("merged", pipeline, destination, [orders], checkpoint="checkpoint", **version)
    return make_lake("merged", pipeline, destination, [orders], **version)


def _history(rng: random.Random, pipeline: str, place: str) -> Lake:
    """Make a pipeline with a merged table that has a history."""
    content = json.loads(_merged(rng, pipeline, place).text)
    (table,) = content["tables"]
    table["history"] = True
    if "envelope" in table:
        # A table that keeps what is deleted refuses truncates, and its history does not.
        table.pop("keep_deleted", None)
    text = json.dumps(content)
    return Lake("history", read_lake(text), text)


def _choose_version(rng: random.Random) -> dict[str, int]:
    """Choose the format version of Iceberg tables: deletes are files of positions, or vectors."""
    return {"format_version": 3} if rng.random() < 0.25 else {}


def _deduped(rng: random.Random, pipeline: str, place: str) -> Lake:
    streams = []
    for name in _two(rng, {"name": "orders"}, {"name": "users"}):
        is_deleted, key, order = rng.random() < 0.7, rng.choice(["key", "key", "who"]), rng.choice(sorted(ORDERED_BY))
        names = [*ORDERED_BY[order], *([DELETED_AT] if is_deleted else [])]
        properties = PROPERTIES | {"name": {"type": "string"}} | {own: STREAMED[own] for own in (key, *names)}
        mode = rng.choice(["append_dedup", "append_dedup", "overwrite_dedup"])
        settings: dict[str, Any] = {
            "destination_sync_mode": mode,
            "primary_key": [[key, "id"] if key == "who" else [key]],
        }
        settings |= {"sync_mode": "full_refresh" if mode == "overwrite_dedup" else "incremental"}
        settings |= {"cursor_field": ["at"]} if order == "cursor" else {}
        # Without generations each sync of an overwrite is one, and there is no refresh of the others.
        settings |= {"generation_id": 1, "minimum_generation_id": 0} if rng.random() < 0.7 else {}
        stream = name | {"namespace": "public", "json_schema": {"type": "object", "properties": properties}}
        streams.append({"stream": stream} | settings)
    destination = {
        "type": "lakewriter-s3",
        "location": f"s3://{BUCKET}/data{place}",
        "region": "us-east-1",
        "catalog": "iceberg",
        "database": f"{place.strip('/')}_lake".strip("_"),
        "tracking": ["deleted"],
    }
    return make_lake("deduped", pipeline, destination, [], source={"streams": streams}, **_choose_version(rng))


def _refresh(rng: random.Random, pipeline: str, place: str) -> Lake:
    destination = {
        "type": "lakewriter-s3",
        "location": f"s3://{BUCKET}/data{place}",
        "region": "us-east-1",
        "catalog": rng.choice(["none", "none", "glue", "glue", "glue", "iceberg"]),
    }
    destination |= {"database": place.strip("/")} if destination["catalog"] != "none" else {}
    users = {"table": "users", "schema": "public", "read": _read("users"), "mode": "refresh"}
    undo = {"grace_minutes": rng.choice([0, 1, 15])}
    return make_lake(
        "refresh", pipeline, destination, [users], undo=undo, refresh={"keep_days": rng.choice([0, 0, 1, 3])}
    )


def _quarantine(rng: random.Random, pipeline: str, place: str) -> Lake:
    destination: dict[str, Any] = {
        "type": "supaflow-s3-data-lake",
        "s3_bucket_name": BUCKET,
        "bucket_region": "us-east-1",
        "s3_path_prefix": f"data{place}",
    }
    form = rng.choice([*["files"] * 3, *["glue"] * 3, "iceberg"])
    if form == "iceberg":
        destination |= {"table_format": "ICEBERG"}
    else:
        destination |= {"partition_strategy": rng.choice(["NONE", "DAY", "HOUR", "SYNC_ID"])}
    if form == "glue":
        destination |= {"update_aws_glue_catalog": True}
    if form != "files":
        destination |= {"destination_prefix": place.strip("/")}
    rules = {
        "on_bad_row": {"action": "quarantine", "at_most": rng.choice([0.4, 0.8, 1.0])},
        "expect": [{"range": {"column": GRADE, "at_most": 0}, "on_violation": "quarantine"}],
    }
    orders = {"table": "orders", "schema": "public", "read": _read("orders", GRADED), "primary_key": ["id"]}
    orders |= {"index": rng.choice(["contiguous", "sparse"])}
    events = {"table": "events", "schema": "public", "read": _read("events", GRADED), "cursor": "id"}
    undo = {"drop_partitions": rng.random() < 0.7, "grace_minutes": rng.choice([0, 1, 15])}
    tables = [rng.choice([orders, events])] if form == "iceberg" else _two(rng, orders, events)
    return make_lake("quarantine", pipeline, destination, [own | rules for own in tables], undo=undo)


def _airbyte(rng: random.Random, pipeline: str, place: str) -> Lake:
    path = rng.choice(["${NAMESPACE}/${STREAM_NAME}/${YEAR}_${MONTH}_${DAY}_${EPOCH}_", "${NAMESPACE}/${STREAM_NAME}/"])
    destination = {
        "type": "airbyte-s3",
        "s3_bucket_name": BUCKET,
        "s3_bucket_path": f"data{place}",
        "s3_bucket_region": "us-east-1",
        "s3_path_format": path,
        "format": {"format_type": "Parquet"},
    }
    users = {"table": "users", "schema": "public", "read": _read("users"), "mode": "overwrite"}
    orders = {"table": "orders", "schema": "public", "read": _read("orders"), "mode": "append"}
    events = {"table": "events", "schema": "public", "read": _read("events"), "mode": "append", "cursor": "id"}
    tables = [rng.choice([orders, events])] if rng.random() < 0.4 else _two(rng, users, orders)
    return make_lake("airbyte", pipeline, destination, tables)


def _messages(rng: random.Random, pipeline: str, place: str) -> Lake:
    schema = {"type": "object", "properties": PROPERTIES}
    streams = [
        {"stream": {"name": name, "namespace": "public", "json_schema": schema}, "destination_sync_mode": mode}
        | {"sync_mode": "full_refresh" if mode == "overwrite" else "incremental"}
        for name, mode in (("users", "overwrite"), ("orders", "append"))
    ]
    destination = {
        "type": "airbyte-s3",
        "s3_bucket_name": BUCKET,
        "s3_bucket_path": f"data{place}",
        "s3_bucket_region": "us-east-1",
        "format": {"format_type": "Parquet"},
    }
    return make_lake("messages", pipeline, destination, [], source={"streams": _two(rng, *streams)})


def _connector(rng: random.Random, pipeline: str, place: str) -> Lake:
    schema = {"type": "object", "properties": PROPERTIES}
    names = ["orders", "events", "users"][: rng.choice([1, 2, 2, 3, 3])]
    streams = [
        {"stream": {"name": name, "namespace": "public", "json_schema": schema}}
        | {"destination_sync_mode": "overwrite" if name == "users" else "append"}
        | {"sync_mode": "full_refresh" if name == "users" else "incremental"}
        for name in names
    ]
    destination = {
        "type": "airbyte-s3",
        "s3_bucket_name": BUCKET,
        "s3_bucket_path": f"data{place}",
        "s3_bucket_region": "us-east-1",
        "format": {"format_type": "Parquet"},
    }
    command = ["source-simulated", pipeline, ",".join(names)]
    return make_lake("connector", pipeline, destination, [], source={"streams": streams, "command": command})


def _estuary(rng: random.Random, pipeline: str, place: str, kind: str = "estuary") -> Lake:
    destination = {
        "type": "estuary-s3-parquet",
        "bucket": BUCKET,
        "region": "us-east-1",
        "uploadIntervalInSeconds": 300,
    }
    binding: dict[str, Any] = {
        "table": "orders",
        "source": "acme/orders",
        "resource": {"pathPrefix": f"data{place}/orders"},
        "read": {"format": "json", "path": "orders", "columns": COLUMNS},
        "primary_key": ["id"],
    }
    if kind == "batches":
        events = binding | {"table": "events", "source": "acme/events"}
        events["resource"] = {"pathPrefix": f"data{place}/events"}
        return make_lake(kind, pipeline, destination, _two(rng, binding, events), checkpoint="checkpoint")
    if rng.random() < 0.5:
        binding["cursor"] = "id"
    return make_lake(kind, pipeline, destination, [binding], checkpoint="checkpoint")


def _batches(rng: random.Random, pipeline: str, place: str) -> Lake:
    if rng.random() < 0.6:
        return _estuary(rng, pipeline, place, "batches")
    destination = {
        "type": "supaflow-s3-data-lake",
        "s3_bucket_name": BUCKET,
        "bucket_region": "us-east-1",
        "s3_path_prefix": f"data{place}",
        "update_aws_glue_catalog": rng.random() < 0.6,
        "partition_strategy": rng.choice(["NONE", "DAY", "SYNC_ID"]),
    }
    destination |= {"destination_prefix": place.strip("/")} if destination["update_aws_glue_catalog"] else {}
    tables = [{"table": name, "schema": "public", "read": _read(name)} for name in ("orders", "events")]
    return make_lake("batches", pipeline, destination, _two(rng, *tables), checkpoint="checkpoint")
