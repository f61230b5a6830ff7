"""Intents of loads that were staged by nobody."""

from typing import Any, Final

from lakewriter.commit.attempt import Attempt
from lakewriter.receipt import Cursor, Receipt
from lakewriter.records.actions import FilesAction
from lakewriter.records.changes import KINDS, Kind
from lakewriter.records.facets import CompactIntent, ExpireIntent, MergeIntent, Switch
from lakewriter.spec.access import Access

_OF_KIND: Final[dict[str, dict[str, Any]]] = {
    "refresh": {"switch": Switch(before=0, after=1)},
    "replace_partitions": {"switch": Switch(before=0, after=1)},
    "merge": {"merge": MergeIntent(keys=("id",), order_by=())},
    "compact": {"compact": CompactIntent(snapshot=1, sequence=1, groups=())},
    "expire": {"expire": ExpireIntent(now=2, before=1, keep=1, snapshots=())},
}


def intent(
    own: Attempt,
    receipts: tuple[Receipt, ...] = (),
    before: Cursor | None = None,
    after: Cursor | None = None,
    kind: Kind = "load",
    **fields: Any,
) -> Any:
    """The intent of an attempt at table ``s.t`` without a catalog, but for ``fields``."""
    plain = {
        "pipeline": own.pipeline,
        "job_id": own.job_id,
        "attempt": own.id,
        "started": own.started,
        "table_id": "s.t",
        "schema_name": "s",
        "table": "t",
        "access": Access(bucket="b", region="us-east-1"),
        "catalog": FilesAction(),
        "receipts": receipts,
        "cursor_before": before,
        "cursor_after": after,
        "feed": "rows",
        "staged_seconds": 0,
    }
    model = KINDS[kind]
    of_kind = {name: value for name, value in plain.items() if name in model.model_fields}
    return model(**of_kind | _OF_KIND.get(kind, {}) | fields)


def recast(of: Any, kind: Kind, **fields: Any) -> Any:
    """The same change as one of another kind."""
    model = KINDS[kind]
    same = {name: getattr(of, name) for name in model.model_fields if name != "kind" and hasattr(of, name)}
    return model(**same | fields).reading_by(of._read)
