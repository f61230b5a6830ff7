"""The keys that release 0.1.0 knows in each control object: it refuses an object that has another one.

It stands for that release and is never changed: while it holds, a bundle of 0.1.0 can be deployed again after ours.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

LEAF: Final = None
"""A value, or a list of them."""


class Map(dict[str, Any]):
    """Any keys, and the shape of each value under ``each``."""


CURSOR: Final = dict.fromkeys(("type", "text"))
BATCH: Final = dict.fromkeys(("query", "number", "offsets"))
SOURCE: Final = dict.fromkeys(("kind", "text", "digest", "job_id", "place"))
FAILURE: Final = dict.fromkeys(("code", "message", "remedy"))
ACCESS: Final = dict.fromkeys((
    "bucket", "region", "prefix", "endpoint", "role_arn", "external_id", "access_key_id", "secret_access_key",
    "single_writer", "role_wait_seconds",
))  # fmt: skip
SERVICE: Final = dict.fromkeys(("kind", "uri", "warehouse", "client_id", "client_secret", "scope"))
CATALOG: Final = dict.fromkeys((
    "kind", "database", "database_location", "table", "location", "columns", "partition_key", "strategy", "partition",
    "partition_location", "namespace", "uuid", "schema_id", "spec_id",
)) | {"service": SERVICE}  # fmt: skip
RECEIPT: Final = dict.fromkeys((
    "version", "bucket", "key", "upload_id", "checksum_algorithm", "size", "rows", "partition", "seq", "first_index",
    "engine", "row_groups", "requests", "cursor_nulls", "changes", "change_samples", "undeclared", "task_attempt",
    "partition_values",
)) | {
    "requests": Map(each=LEAF),
    "undeclared": Map(each=LEAF),
    "parts": dict.fromkeys(("number", "etag", "checksum")),
    "cursor": CURSOR,
    "columns": Map(each=dict.fromkeys(("values", "nulls", "compressed_bytes", "lower", "upper"))),
}  # fmt: skip

STATE: Final = dict.fromkeys((
    "version", "write", "committed", "last_commit", "last_job", "counter", "backfill", "swept",
)) | {
    "cursor": CURSOR,
    "running": Map(each=dict.fromkeys(("attempt", "since", "first"))),
    "pending": dict.fromkeys(("job_id", "attempt", "phase", "since")) | {"failure": FAILURE},
    "batch": BATCH,
    "resets": dict.fromkeys(("at", "what", "reason")),
    "sync": dict.fromkeys(("sync_id", "generation_id", "unfinished"))
    | {"live": dict.fromkeys(("job_id", "generation_id")), "source": SOURCE},
}  # fmt: skip
INTENT: Final = dict.fromkeys((
    "version", "pipeline", "job_id", "attempt", "table_id", "schema_name", "table", "started", "feed",
    "staged_seconds", "counter_after", "notes",
)) | {
    "access": ACCESS,
    "catalog": CATALOG,
    "receipts": RECEIPT,
    "cursor_before": CURSOR,
    "cursor_after": CURSOR,
    "batch": BATCH,
    "sync": dict.fromkeys((
        "sync_id", "generation_id", "minimum_generation_id", "retire", "unfinished", "exclusive",
    )) | {"source": SOURCE},
}  # fmt: skip
REPORT: Final = dict.fromkeys((
    "version", "pipeline", "job_id", "attempt", "schema_name", "table", "started", "rows", "files", "bytes", "keys",
    "feed", "engine", "cursor_nulls", "staged_seconds", "small_files", "notes", "sync_id", "generation_id", "retired",
    "changes", "change_samples",
)) | {
    "undeclared": Map(each=LEAF),
    "cursor_before": CURSOR,
    "cursor_after": CURSOR,
    "health": dict.fromkeys(("snapshots", "files", "small_files")),
}  # fmt: skip
BEGIN: Final = dict.fromkeys(("version", "attempt", "started")) | {
    "tables": Map(each=dict.fromkeys(("location", "pattern", "shared")))
}


def unknown_keys(objects: Mapping[str, bytes], table_id: str) -> list[str]:
    """What 0.1.0 would not know in the objects that it reads, as ``object: path``."""
    known = {
        f"/tables/{table_id}/state.json": STATE,
        f"/{table_id}.report.json": REPORT,
        f"/{table_id}.failed.json": FAILURE,
        f"/failed/{table_id}.json": FAILURE,
        # What an undo sets back is in the intent since: 0.1.0 was never released, and need not take it up.
        f"/{table_id}.json": INTENT | {"before": LEAF},
        "/begin.json": BEGIN,
    }
    found = []
    for key, body in objects.items():
        shape = next((shape for ending, shape in known.items() if key.endswith(ending)), LEAF)
        # Records of 0.1.0 lie in the folder of an attempt; it does not look further down.
        if "_lakewriter/" in key and shape is not LEAF and "/begin/" not in key:
            found += [f"{key}: {path}" for path in _unknown(json.loads(body), shape, "")]
    return found


def _unknown(value: Any, shape: Any, path: str) -> Iterator[str]:
    if shape is LEAF:
        return
    if isinstance(value, list):
        for each in value:
            yield from _unknown(each, shape, path)
    elif isinstance(value, dict):
        for name, each in value.items():
            if isinstance(shape, Map):
                yield from _unknown(each, shape["each"], f"{path}.*")
            elif name not in shape:
                yield f"{path}.{name}"
            else:
                yield from _unknown(each, shape[name], f"{path}.{name}")
