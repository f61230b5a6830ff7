"""Which settings, modes, feeds and destinations stand together in which load: every pair of them, in few loads.

All of these are derived from the product: the keys of an entry, ``Mode``, the destinations of all dialects. A new
one without a line in ``VALUES`` or ``DESTINATIONS`` fails a test.
"""

from collections.abc import Collection, Iterator
from functools import cache
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any, Final

from pydantic import TypeAdapter

from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.registry import find_dialect, make_destination_type
from lakewriter.spec.pairs import CONTINUOUS, NEEDS, NEW_FILES, Refusal, find_refusals, has, name_mode
from lakewriter.spec.table_spec import Mode

BUCKET: Final = "acme-lake"
_LAKEWRITER: Final = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/data", "region": "us-east-1"}
_TRACKED: Final = {"tracking": ["loaded_at", "load_id", "row_number", "row_id", "deleted"]}
_SUPAFLOW: Final = {"s3_bucket_name": BUCKET, "bucket_region": "us-east-1", "s3_path_prefix": "data"}
_AIRBYTE: Final = {"s3_bucket_name": BUCKET, "s3_bucket_path": "data", "s3_bucket_region": "us-east-1"}
DESTINATIONS: Final[dict[str, dict[str, Any]]] = {
    "lakewriter-s3": _LAKEWRITER | _TRACKED,
    "lakewriter-s3, glue": _LAKEWRITER | _TRACKED | {"catalog": "glue"},
    "lakewriter-s3, iceberg": _LAKEWRITER | _TRACKED | {"catalog": "iceberg"},
    "lakewriter-s3, jsonl": _LAKEWRITER | {"format": "jsonl"},
    "supaflow-s3": _SUPAFLOW | {"type": "supaflow-s3"},
    "supaflow-s3-data-lake": _SUPAFLOW | {"type": "supaflow-s3-data-lake", "update_aws_glue_catalog": True},
    "supaflow-s3-data-lake, ICEBERG": _SUPAFLOW
    | {"type": "supaflow-s3-data-lake", "table_format": "ICEBERG", "glue_database_prefix": "g"},
    "airbyte-s3": _AIRBYTE | {"type": "airbyte-s3", "format": {"format_type": "Parquet"}},
    "heropixel-s3": _AIRBYTE | {"type": "heropixel-s3", "format": {"format_type": "Parquet"}},
    "estuary-s3-parquet": {
        "type": "estuary-s3-parquet", "bucket": BUCKET, "region": "us-east-1", "uploadIntervalInSeconds": 1,
    },
}  # fmt: skip
"""A destination of each type, and of each catalog and format by which refusals differ."""

VALUES: Final[dict[str, Any]] = {
    "written_as": "people",
    "primary_key": ["id"],
    "unique_key": ["id"],
    "cursor": "at",
    "cursor_lag": 1,
    "deleted": "op = 'D'",
    "order_by": ["at"],
    "keep_deleted": True,
    "history": True,
    "deleted_for": "1 day",
    "columns": {"n": "decimal(10,2)"},
    "nanoseconds": "truncate",
    "names": {"v": "text_of_v"},
    "index": "sparse",
    "partition_by": ["p"],
    "sort_by": ["v"],
    "contract": {"columns": "discard"},
    "on_bad_row": {"action": "quarantine", "at_most": 1},
    "expect": [{"not_null": "id"}],
    "on_violation": "warn",
    "repeated": "allow",
    "mode": None,
}
"""A value of each key of an entry."""
NOT_PAIRED: Final = {
    "table": "its name",
    "schema_": "its name",
    "read": "the feeds stand for it",
    "envelope": "its source has events, which tests/load/test_change_events.py loads",
}
MODES: Final = tuple(name_mode(mode) for mode in Mode)
FEEDS: Final = ("feed: files", "feed: sql", "feed: program", "feed: continuous")
KEYS: Final = tuple(key for key in VALUES if key != "mode")
SETTINGS: Final = (*KEYS, NEW_FILES)
CHOICES: Final = (*DESTINATIONS, *MODES, *FEEDS, *SETTINGS)
AXES: Final = (tuple(DESTINATIONS), MODES, FEEDS)

WITHOUT_CATALOG: Final = (
    *("lakewriter-s3", "lakewriter-s3, jsonl", "supaflow-s3", "airbyte-s3", "heropixel-s3", "estuary-s3-parquet"),
)
NO_COLUMNS_KNOWN: Final = {(destination, "contract"): "no catalog has its columns" for destination in WITHOUT_CATALOG}
"""The pairs that the rules of rows refuse, by the value of the key and with the pipeline's own rule."""
CANNOT_MEET: Final = {
    ("feed: program", NEW_FILES): "a program has no files",
    ("feed: program", "repeated"): "a program has no files that could be read again",
}
"""The pairs of a setting and a feed that no file can have; the values of one axis exclude each other."""


def make_entry(choices: frozenset[str]) -> dict[str, Any]:
    """The table's entry, without what it reads from."""
    entry: dict[str, Any] = {key: VALUES[key] for key in KEYS if key in choices}
    mode = find_on_axis(choices, MODES).partition(": ")[2]
    return entry | ({"mode": mode} if mode != "append" else {})


def find_on_axis(choices: frozenset[str], axis: tuple[str, ...]) -> str:
    return next(choice for choice in choices if choice in axis)


@cache
def find_refusals_of(destination: str) -> dict[str, Refusal]:
    form = TypeAdapter(make_destination_type()).validate_python(DESTINATIONS[destination])
    return find_dialect(form).find_refused(form)


@cache
def find_refused(choices: frozenset[str]) -> frozenset[str]:
    """The settings among the choices that the product's tables refuse."""
    given = dict.fromkeys(TableEntry.model_fields) | {"mode": Mode.APPEND} | make_entry(choices)
    del given["read"]
    # tests/load/test_renamed.py loads it beside other settings.
    entry = SimpleNamespace(**given, renamed_from={}, read=SimpleNamespace(new_files=NEW_FILES in choices))
    refused = set(find_refusals(entry, find_refusals_of(find_on_axis(choices, tuple(DESTINATIONS)))))
    if "feed: continuous" in choices:
        refused |= {setting for setting in CONTINUOUS if has(entry, setting)}
    return frozenset(refused)


NEEDED_TO_SHOW: Final = {"nanoseconds": "columns", "on_bad_row": "columns", "on_violation": "expect"}
"""What must be beside a key for its effect to be seen."""


def close(choices: frozenset[str]) -> frozenset[str] | None:
    """The choices with what they need; None where that is another value of an axis."""
    needs = [*NEEDS, *NEEDED_TO_SHOW.items()]
    while missing := {needed for setting, needed in needs if setting in choices and needed not in choices}:
        choices |= missing
    on_axes = [[choice for choice in choices if choice in axis] for axis in AXES]
    return choices if all(len(found) < 2 for found in on_axes) else None


def is_possible(choices: frozenset[str]) -> bool:
    """Return whether a load can have all of these, with one value of each axis."""
    return not find_refused(choices) and not any(choices.issuperset(pair) for pair in (*CANNOT_MEET, *NO_COLUMNS_KNOWN))


def complete(choices: frozenset[str]) -> Iterator[frozenset[str]]:
    """Yield the possible loads that have these choices and a value of each axis."""
    closed = close(choices)
    if closed is None:
        return
    axes = [[choice for choice in axis if choice in closed] or list(axis) for axis in AXES]
    for values in product(*axes):
        load = close(closed.union(values))
        if load is not None and is_possible(load):
            yield load


def list_pairs() -> list[tuple[str, str]]:
    """All pairs of choices that are not values of one axis."""
    axis_of = {choice: number for number, axis in enumerate(AXES) for choice in axis}
    return [
        (one, other) for one, other in combinations(CHOICES, 2) if axis_of.get(one, one) != axis_of.get(other, other)
    ]


def list_loads() -> list[frozenset[str]]:
    """Loads that have each pair which a load can have; a load has as many as go together."""
    left = {frozenset(pair): None for pair in list_pairs() if any(complete(frozenset(pair)))}
    loads = []
    while left:
        pair = next(iter(left))
        load = max(complete(pair), key=lambda each: (_count(each, left), sorted(each)))
        for setting in SETTINGS:
            wider = close(load | {setting})
            if wider is not None and is_possible(wider) and _count(wider, left) > _count(load, left):
                load = wider
        loads.append(load)
        for covered in [each for each in left if each <= load]:
            del left[covered]
    return loads


def _count(load: frozenset[str], left: Collection[frozenset[str]]) -> int:
    return sum(frozenset(pair) in left for pair in combinations(load, 2))
