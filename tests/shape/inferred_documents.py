"""Random documents without a schema, a table that takes them batch by batch, and what its rows must be."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakewriter.documents.inference import collect_paths, merge_paths
from lakewriter.receipt import InferredColumn
from lakewriter.shape.flatten_plan import plan_flatten
from lakewriter.shape.flattening import Flattener
from lakewriter.spec.table_spec import TableSpec
from tests.shape.collections import collection_table

SOURCE = pa.schema([("value", pa.string())])
KEYS = ("a", "b", "a_b", "a/b", "a~1b", "A", "id_", "", "b_1", "a_b_1", "caf\u00e9", 'q"')
SCALARS = (
    "1", "-0", "0.10", "1e400", "123456789012345678", "9223372036854775808", "0.1e-7", "1" + "0" * 40, "true", "false",
    '"a"', '""', '"1"', '"null"', '"say \\"hi\\""', '"caf\u00e9"', '"\\u0063"', '"{}"', '"\\ud83d\\ude00"', '"x\\/y"',
)  # fmt: skip
IDS = ("1", "2.50", '"1"', '"m-1"', "123456789012345678", '"\u00e9"')


def random_document(chance: random.Random, number: int) -> str:
    """JSON text: every property may be of any type in any document."""
    return f'{{"id":{chance.choice(IDS)},"number":{number},{_members(chance, 3)[1:]}'


def _members(chance: random.Random, levels: int) -> str:
    names = chance.sample(KEYS, chance.randint(0, 4))
    members = ",".join(f"{json.dumps(name, ensure_ascii=False)}:{_value(chance, levels)}" for name in names)
    return "{" + (members or '"a":null') + "}"


def _value(chance: random.Random, levels: int) -> str:
    kind = chance.random()
    if levels and kind < 0.3:
        return _members(chance, levels - 1)
    if kind < 0.4:
        return "[" + ",".join(_value(chance, 0) for _ in range(chance.randint(0, 2))) + "]"
    if kind < 0.45:
        return "{}"
    return "null" if kind < 0.55 else chance.choice(SCALARS)


def expected_row(text: str, included: Sequence[str] = ()) -> dict[tuple[str, ...], str]:
    """A document's values by path, from the document alone."""
    return dict(_leaves(_exact(text), (), included))


class _Number(str):
    """A number as it is spelled."""


def _exact(text: str) -> Any:
    return json.loads(text, parse_int=_Number, parse_float=_Number)


def _leaves(value: Any, path: tuple[str, ...], included: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    if path and path[0] in included:
        if value is not None:
            yield path, _text(value)
    elif isinstance(value, dict):
        for name, own in value.items():
            yield from _leaves(own, (*path, name), included)
    elif value is not None and not isinstance(value, list):
        yield path, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(name)}:{_text(own)}" for name, own in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@dataclass
class Loaded:
    """A table and what its loads have written; ``types`` are those that a column had in any file."""

    table: TableSpec
    known: tuple[InferredColumn, ...] = ()
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    types: dict[str, set[pa.DataType]] = field(default_factory=dict)
    undeclared: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, batches: Sequence[Sequence[str]], **selection: Any) -> "Loaded":
        """One load for each batch."""
        own = cls(collection_table(keys=("/id",), column="value", **selection))
        for texts in batches:
            own.load(texts)
        return own

    def load(self, texts: Sequence[str]) -> None:
        """The documents of one load, in two partitions."""
        halves = [texts[: len(texts) // 2], texts[len(texts) // 2 :]]
        batches = [pa.record_batch([pa.array(half, pa.string())], schema=SOURCE) for half in halves]
        seen = merge_paths(
            "t", [text for number, own in enumerate(batches) for text in collect_paths(number, [own], 0)]
        )
        plan = plan_flatten(SOURCE, self.table, seen, self.known)
        assert plan.inferred is not None
        self.known = plan.inferred
        for half, own in zip(halves, batches, strict=True):
            flattener = Flattener(plan)
            shaped = flattener.shape(own).rows
            for column in shaped.schema:
                self.types.setdefault(column.name, set()).add(column.type)
            for name, count in flattener.take_findings().undeclared.items():
                self.undeclared[name] = self.undeclared.get(name, 0) + count
            for text, row in zip(half, shaped.to_pylist(), strict=True):
                self.rows[text] = {name: value for name, value in row.items() if value is not None}

    def by_path(self, included: Sequence[str] = ()) -> dict[str, dict[tuple[str, ...], Any]]:
        """The rows with the path of each column in place of its name; what is included is copied, escapes and all."""
        paths = {column.name: column.path for column in self.known}
        assert len(paths) == len(self.known)
        rows = {text: {paths[name]: value for name, value in row.items()} for text, row in self.rows.items()}
        return {
            text: {path: _text(_exact(value)) if path[0] in included else value for path, value in row.items()}
            for text, row in rows.items()
        }


def shuffled_and_cut(chance: random.Random, texts: Sequence[str]) -> list[list[str]]:
    """The documents in another order, in batches of any size."""
    order = chance.sample(texts, len(texts))
    cuts = sorted(chance.sample(range(1, len(texts)), chance.randint(0, len(texts) - 1)))
    return [order[start:end] for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True)]
