"""Documents without a schema: a row hangs on its document alone, whatever comes with it, before it or after it."""

import os
import random
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.errors import SchemaIncompatibleError, ValueUnrepresentableError
from lakewriter.receipt import ColumnStatistics, InferredColumn
from lakewriter.run.earlier_columns import kind_of_column
from lakewriter.spec.collection import Kind
from lakewriter.spec.row_rules import Contract
from tests.shape.inferred_documents import Loaded, expected_row, random_document, shuffled_and_cut

CASES = int(os.environ.get("LAKEWRITER_DOCUMENTS", "150"))
SELECTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"separator": "_"},
    {"include": ("a",)},
    {"separator": "__", "include": ("a", "b")},
)


def test_any_order_and_any_cutting_give_the_same_rows():
    for seed in range(CASES):
        chance = random.Random(seed)
        texts = [random_document(chance, number) for number in range(chance.randint(2, 8))]
        selection = chance.choice(SELECTIONS)
        included = selection.get("include", ())
        expected = {text: expected_row(text, included) for text in texts}
        tables = [Loaded.of(shuffled_and_cut(chance, texts), **selection) for _ in range(2)]
        for table in (Loaded.of([texts], **selection), *tables):
            assert table.by_path(included) == expected, seed
            assert {len(types) for types in table.types.values()} == {1}, seed
        if "separator" not in selection:
            assert tables[0].rows == tables[1].rows, seed


BATCHES = [
    # what was another row beside other documents: the batches, their rows
    ([['{"id":1,"v":"a"}'], ['{"id":2,"v":"a"}', '{"id":3,"v":1}']],
     [{"id": "1", "v": '"a"'}, {"id": "2", "v": '"a"'}, {"id": "3", "v": "1"}]),
    ([['{"id":1}'], ['{"id":"1"}'], ['{"id":1.0}']], [{"id": "1"}, {"id": '"1"'}, {"id": "1.0"}]),
    ([['{"id":1,"n":123456789012345678}', '{"id":2,"n":0.5}'], ['{"id":3,"n":9223372036854775808}']],
     [{"id": "1", "n": "123456789012345678"}, {"id": "2", "n": "0.5"}, {"id": "3", "n": "9223372036854775808"}]),
    ([['{"id":1,"a":{"b":2}}'], ['{"id":2,"a":3}'], ['{"id":3,"a/b":4}']],
     [{"id": "1", "a/b": "2"}, {"id": "2", "a": "3"}, {"id": "3", "a~1b": "4"}]),
]  # fmt: skip


@pytest.mark.parametrize(("batches", "rows"), BATCHES)
def test_rows(batches, rows):
    for order in (batches, batches[::-1], [[text for texts in batches for text in texts]]):
        table = Loaded.of(order)
        assert sorted(table.rows.values(), key=str) == sorted(rows, key=str)


def test_colliding_names_stay_with_the_property_that_had_them_first():
    flat, nested = '{"id":1,"a_b":1}', '{"id":2,"a":{"b":2}}'
    table = Loaded.of([[nested], [flat], [flat, nested]], separator="_")
    assert table.rows == {nested: {"id": "2", "a_b": "2"}, flat: {"id": "1", "a_b_1": "1"}}


def test_columns_stay_in_their_order():
    table = Loaded.of([['{"id":1,"b":1}'], ['{"a":1,"id":2}'], ['{"id":3}']])
    assert list(table.types) == ["id", "b", "a"]
    assert [column.name for column in table.known] == ["id", "b", "a"]


def test_arrays_without_a_column_are_counted():
    table = Loaded.of([['{"id":1,"v":[1],"w":[2]}', '{"id":2,"v":"a"}'], ['{"id":3,"v":[]}']])
    assert table.undeclared == {"v": 2}
    assert table.rows['{"id":3,"v":[]}'] == {"id": "3"}


def test_texts_that_are_no_documents_tell_nothing():
    """They are bad rows when they are shaped, in the second reading."""
    for text in ("[]", "{", '{"a":' * 2000):
        with pytest.raises(ValueUnrepresentableError, match=r"row 1: expected a JSON object, got"):
            Loaded.of([['{"id":0}', text, '{"id":1}', text]])


CONTRACTS = [("evolve", {"a": "1", "b": '"x"'}, {}), ("discard", {"a": "1"}, {"b": 1, "c/d": 2})]


@pytest.mark.parametrize(("columns", "row", "undeclared"), CONTRACTS)
def test_contract_of_new_properties(columns, row, undeclared):
    table = Loaded.of([['{"id":1,"a":1}']])
    table.table = table.table.model_copy(update={"contract": Contract(columns=columns)})
    table.load(['{"id":2,"a":1,"b":"x","c":{"d":[]}}', '{"id":3,"b":null,"c":{"d":0}}'])
    assert row.items() <= table.rows['{"id":2,"a":1,"b":"x","c":{"d":[]}}'].items()
    assert table.undeclared == (undeclared or {"c/d": 1})


def test_frozen_contract():
    table = Loaded.of([['{"id":1,"a":1}']])
    table.table = table.table.model_copy(update={"contract": Contract(columns="freeze")})
    table.load(['{"id":2,"a":"x"}', '{"id":3,"b":null,"c":[]}'])
    with pytest.raises(SchemaIncompatibleError, match="have 'b', which the table has no column for"):
        table.load(['{"id":2,"b":"x"}'])


EARLIER = [
    # the kind that an earlier file's column had, a value, how it is written; None where it does not fit
    ("integer", "5", 5), ("integer", "9223372036854775808", None), ("integer", "2.5", None), ("integer", '"5"', None),
    ("number", "5", 5.0), ("number", "2.5", 2.5), ("number", "123456789012345678", None),
    ("string", '"a"', "a"), ("string", "5", None), ("boolean", "true", True), ("boolean", "1", None),
    ("json", '"a"', '"a"'), ("json", '{"b":[1]}', '{"b":[1]}'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "value"), EARLIER)
def test_columns_of_earlier_files_keep_their_types(kind, text, value):
    """A table that was loaded before its state kept columns; what it has not yet is as in any table."""
    table = Loaded.of([])
    table.known = (InferredColumn(name="a/v", kind=kind), InferredColumn(name="gone", kind="integer"))
    document = f'{{"id":1,"a":{{"v":{text},"w":1}}}}'
    if value is None:
        with pytest.raises(
            ValueUnrepresentableError, match=f"field 'a/v', row 1: value .* cannot be written as {kind}"
        ):
            table.load(['{"id":0}', '{"id":0}', '{"id":0}', document])
        return
    table.load([document, '{"id":2}'])
    assert table.rows[document] == {"id": "1", "a/v": value, "a/w": "1"}
    assert table.types["a/w"] == {pa.string()}
    assert "gone" not in table.types
    kept = [(column.name, column.kind, column.path) for column in table.known]
    assert kept[:2] == [("a/v", kind, ("a", "v")), ("gone", "integer", ())]


KINDS = [
    # a column of a file, its least text; the kind
    (pa.int64(), "1", Kind.INTEGER), (pa.float64(), "1", Kind.NUMBER), (pa.bool_(), None, Kind.BOOLEAN),
    (pa.date32(), str(date(2024, 1, 1)), Kind.DATE), (pa.string(), "a", Kind.STRING), (pa.string(), None, Kind.STRING),
    (pa.string(), '"a"', Kind.JSON), (pa.string(), '"a', Kind.STRING), (pa.string(), "1", Kind.STRING),
]  # fmt: skip


@pytest.mark.parametrize(("t", "lower", "kind"), KINDS)
def test_kind_of_a_file_column(t, lower, kind):
    statistics = None if lower is None else ColumnStatistics(1, 0, 1, lower, lower)
    assert kind_of_column(t, statistics) is kind
