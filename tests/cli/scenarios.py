"""What a platform sends a destination, and what lies in its bucket afterwards in each form of the formats."""

from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, Final

PLAIN: Final = {"compression_type": "No Compression"}
ROOT: Final = "Root level flattening"
FORMS: Final[dict[str, dict[str, Any]]] = {
    "csv": {"format_type": "CSV", "flattening": "No flattening", "compression": PLAIN},
    "csv-flat": {"format_type": "CSV", "flattening": ROOT},
    "jsonl": {"format_type": "JSONL", "compression": {"compression_type": "GZIP"}},
    "jsonl-flat": {"format_type": "JSONL", "flattening": ROOT, "compression": PLAIN},
    "avro": {"format_type": "Avro", "compression_codec": {"codec": "no compression"}},
    "parquet": {"format_type": "Parquet", "compression_codec": "SNAPPY"},
}
"""CSV with root level flattening has no ``compression``: by the connector's default it is plain text."""
TYPED: Final = ("avro", "parquet")
WHOLE: Final = ("csv", "jsonl")
"""Forms with the record in one column."""


@dataclass(frozen=True)
class Scenario:
    """One stream whose records are sent once; ``typed`` are its rows in Avro and Parquet, or in each by its name.

    ``names`` are the columns of typed files where they differ from the properties.
    """

    name: str
    properties: dict[str, Any]
    records: list[dict[str, Any]]
    typed: Any
    changes: tuple[tuple[tuple[str, str], ...], ...] = ()
    namespace: str | None = "public"
    folder: str = ""

    def find_folder(self) -> str:
        """The directory of its objects."""
        return self.folder or f"data/{self.namespace}/{self.name}/"

    def list_rows(self, form: str) -> list[dict[str, Any]]:
        """The rows that are expected in files of this form."""
        if form in WHOLE:
            return self.records
        if form in TYPED:
            rows: list[dict[str, Any]] = self.typed[form] if isinstance(self.typed, dict) else self.typed
            return rows
        return [{name: record.get(name) for name in self.properties} for record in self.records]


def kind(name: str, **more: Any) -> dict[str, Any]:
    """The schema of a property that may be null, as sources give it."""
    return {"type": ["null", name], **more}


def text(form: str, airbyte_type: str | None = None) -> dict[str, Any]:
    return kind("string", format=form, **({"airbyte_type": airbyte_type} if airbyte_type else {}))


TYPES: Final = {
    "s": kind("string"), "i": kind("integer"), "n": kind("number"), "b": kind("boolean"), "d": text("date"),
    "t": text("time", "time_without_timezone"), "tz": text("time", "time_with_timezone"),
    "ts": text("date-time", "timestamp_without_timezone"), "tstz": text("date-time", "timestamp_with_timezone"),
}  # fmt: skip
CONTAINERS: Final = {
    "o": kind("object", properties={"x": kind("integer"), "y": kind("array", items=kind("string"))}),
    "l": kind("array", items=kind("object", properties={"k": kind("string")})),
    "any": kind("object"), "list": kind("array"),
}  # fmt: skip
UNIONS: Final = {
    "u": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    "m": {"type": ["object", "integer"], "properties": {"k": {"type": "string"}}},
}
NO_FIT: Final = "DESTINATION_SERIALIZATION_ERROR"
NO_TYPES, NO_UNIONS = dict.fromkeys(TYPES), dict.fromkeys(UNIONS)

ROWS: Final[list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]]] = [
    # a record, its types and containers in Avro and Parquet, its unions in Avro, in Parquet
    ({"s": 'a"b,\n€', "i": 9007199254740993, "n": 1.5, "b": True, "d": "2021-01-23", "t": "12:34:56.789",
      "tz": "01:00:00+02:00", "ts": "2021-01-23T01:23:45.678901", "tstz": "2021-01-23T01:23:45+01:00", "more": 1,
      "o": {"x": 1, "y": ["a", None]}, "l": [{"k": "v"}, {}], "any": {"z": [1, {"q": None}]}, "list": [1, "x"],
      "u": "x", "m": {"k": "v"}},
     {"s": 'a"b,\n€', "i": 9007199254740993, "n": 1.5, "b": True, "d": "2021-01-23", "t": "12:34:56.789000",
      "tz": "23:00:00", "ts": "2021-01-23T01:23:45.678901+00:00", "tstz": "2021-01-23T00:23:45+00:00",
      "o": {"x": 1, "y": ["a", None]}, "l": [{"k": "v"}, {"k": None}], "any": '{"z":[1,{"q":null}]}',
      "list": '[1,"x"]'},
     {"u": "x", "m": {"k": "v"}},
     {"u": {"type": "string", "string": "x", "integer": None},
      "m": {"type": "object", "object": {"k": "v"}, "integer": None}}),
    ({"s": "", "d": "0001-01-01", "o": {}, "l": [], "any": {}, "list": [], "u": 5, "m": 3},
     NO_TYPES | {"s": "", "d": "0001-01-01", "o": {"x": None, "y": None}, "l": [], "any": "{}", "list": "[]"},
     {"u": 5, "m": 3},
     {"u": {"type": "integer", "string": None, "integer": 5}, "m": {"type": "integer", "object": None, "integer": 3}}),
    ({"i": 9223372036854775808, "n": -0.0, "d": "never", "ts": "2021-13-01T00:00:00", "o": None},
     NO_TYPES | {"n": -0.0, "o": None, "l": None, "any": None, "list": None}, NO_UNIONS, NO_UNIONS),
]  # fmt: skip

SCENARIOS: Final = [
    Scenario(
        "values", TYPES | CONTAINERS | UNIONS, [record for record, _, _, _ in ROWS],
        {"avro": [types | unions for _, types, unions, _ in ROWS],
         "parquet": [types | unions for _, types, _, unions in ROWS]},
        changes=((), (), (("i", "DESTINATION_FIELD_SIZE_LIMITATION"), ("d", NO_FIT), ("ts", NO_FIT))),
    ),
    Scenario("no_columns", {}, [{}, {"x": 1}], [{}, {}]),
    Scenario("no_data", {"id": kind("integer")}, [], []),
    Scenario(
        "Ünlucky stream %", {"1st col": kind("string"), "a-b": kind("integer"), "a_b": kind("integer"),
                             "ÄÖ": kind("string"), "with.dot": kind("string"), "class": kind("string")},
        [{"1st col": "1", "a-b": 2, "a_b": 3, "ÄÖ": "4", "with.dot": "5", "class": "6"}],
        [{"_1st_col": "1", "a_b": 2, "a_b_1": 3, "AO": "4", "with_dot": "5", "class": "6"}],
        namespace="näme space", folder="data/name_space/Unlucky_stream__/",
    ),
    # one name in a namespace and without one
    Scenario("same", {"id": kind("integer")}, [{"id": 1}], [{"id": 1}], namespace="two"),
    Scenario("same", {"id": kind("integer")}, [{"id": 2}], [{"id": 2}], namespace=None, folder="data/same/"),
]  # fmt: skip


def simplify(value: Any) -> Any:
    """A value of a typed file in the text that the table has for it."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: simplify(each) for key, each in value.items()}
    return [simplify(each) for each in value] if isinstance(value, list) else value
