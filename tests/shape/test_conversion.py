"""Arrays before and after; slices and nulls with values under them are built by hand, as readers produce them."""

from typing import Any

import pyarrow as pa
import pytest

from lakewriter.column_types import is_void, make_list, reconcile, to_stored_type
from lakewriter.shape.conversion import convert, normalise_names, plan_conversion


def written(array: pa.Array, existing: pa.DataType | None = None) -> pa.Array:
    plain = normalise_names(array.type)
    target = to_stored_type("c", plain) if existing is None else reconcile("c", plain, existing)
    result = convert(array, plan_conversion(array.type, target))
    result.validate(full=True)
    assert result.type.equals(target, check_metadata=True)
    return result


INNER = pa.struct([("a b", pa.uint8()), ("a-b", pa.large_string()), ("v", pa.null())])
DEEP = pa.struct([("x y", pa.large_list(INNER)), ("m", pa.map_(pa.string(), INNER))])
VALUE = {"a b": 1, "a-b": "s", "v": None}
ROWS: list[Any] = [
    {"x y": [VALUE, None], "m": [("k", VALUE)]},
    None,
    {"x y": None, "m": None},
    {"x y": [], "m": []},
    {"x y": [None, VALUE], "m": [("l", None), ("m", VALUE)]},
]
NAMED = {"a_b": 1, "a_b_1": "s"}
EXPECTED: list[Any] = [
    {"x_y": [NAMED, None], "m": [("k", NAMED)]},
    None,
    {"x_y": None, "m": None},
    {"x_y": [], "m": []},
    {"x_y": [None, NAMED], "m": [("l", None), ("m", NAMED)]},
]


@pytest.mark.parametrize("start", range(6))
@pytest.mark.parametrize("length", range(6))
def test_convert_renames_at_every_level_of_any_slice(start: int, length: int) -> None:
    array = pa.array(ROWS, DEEP)
    assert written(array.slice(start, length)).to_pylist() == EXPECTED[start : start + length]


# (values, source type, written values)
KINDS = [
    ([[1, 2], None, [], [3]], pa.large_list(pa.uint8()), [[1, 2], None, [], [3]]),
    ([[1, 2], None, [3, 4]], pa.list_(pa.uint8(), 2), [[1, 2], None, [3, 4]]),
    ([[1, 2], None, [3]], pa.list_view(pa.uint8()), [[1, 2], None, [3]]),
    ([[1, 2], None, [3]], pa.large_list_view(pa.uint8()), [[1, 2], None, [3]]),
    (["a", None, "a"], pa.dictionary(pa.int8(), pa.large_string()), ["a", None, "a"]),
    (["a", None], pa.string_view(), ["a", None]),
    ([b"ab", None], pa.binary(2), [b"ab", None]),
    ([1.5, None], pa.float16(), [1.5, None]),
    ([2**64 - 1, None], pa.uint64(), [2**64 - 1, None]),
]


@pytest.mark.parametrize(("values", "t", "expected"), KINDS)
def test_convert_takes_every_layout_whole_and_sliced(
    values: list[object], t: pa.DataType, expected: list[object]
) -> None:
    array = pa.array(values, t)
    assert written(array).to_pylist() == expected
    assert written(array[1:]).to_pylist() == expected[1:]


def test_convert_run_end_encoded_values() -> None:
    assert written(pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None])).to_pylist() == ["a", "a", None]


def test_convert_equal_types_share_their_buffers() -> None:
    array = pa.array([1, 2, 3])
    assert written(array).buffers()[1].address == array.buffers()[1].address


def test_convert_renamed_structs_share_their_buffers() -> None:
    array = pa.array([{"a b": 1}, {"a b": 2}])
    assert written(array).field(0).buffers()[1].address == array.field(0).buffers()[1].address


def test_convert_drops_metadata_inside_types() -> None:
    field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "7"})
    array = pa.array([{"a": 1}], pa.struct([field]))
    assert written(array).type.field(0).metadata is None


def test_convert_casts_do_not_see_values_under_null_structs() -> None:
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, 1001], pa.timestamp("ns"))], names=["t"], mask=pa.array([True, True])
    )
    assert written(hidden).to_pylist() == [None, None]


def test_convert_casts_do_not_see_values_outside_lists() -> None:
    values = pa.array([1001, 2000, 3003], pa.timestamp("ns"))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), values, mask=pa.array([True, False, True]))
    assert written(lists)[1].values.cast(pa.int64()).to_pylist() == [2]


def test_convert_struct_of_the_table_reorders_and_fills() -> None:
    array = pa.array([{"B": 1, "A": 2}, None])
    existing = pa.struct([("a", pa.int64()), ("gone", make_list(pa.string())), ("b", pa.decimal128(20, 0))])
    assert written(array, existing).to_pylist() == [{"A": 2, "gone": None, "B": 1}, None]


def test_convert_loss_is_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid, match="lose data: 1001"):
        written(pa.array([1001], pa.timestamp("ns")))


def test_normalised_void_fields_keep_their_names_taken() -> None:
    t = pa.struct([("a b", pa.null()), ("a_b", pa.int8())])
    assert to_stored_type("c", normalise_names(t)) == pa.struct([("a_b_1", pa.int8())])
    assert not is_void(t)
