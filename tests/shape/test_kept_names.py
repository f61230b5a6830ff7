"""Names of columns: what a table has given stays with its source column, and nothing is guessed.

Expected names are those of docs/guide-supaflow.md, "Names": the first of two that collide keeps its name, the next gets
``_1``; and of docs/adr/0036-names-stay-with-their-columns.md for tables that were loaded before.
"""

import json
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.column_types import ELEMENT, VALUE, rebuild_type
from lakewriter.errors import NameCollisionError, SpecInvalidError
from lakewriter.naming import AS_IN_SOURCE, AS_TEXT, AVRO_SAFE, NORMALISED, NameRule
from lakewriter.receipt import GivenName
from lakewriter.shape.kept_names import ColumnNames, EarlierNames


def give(*pairs: tuple[str, str], within: tuple[str, ...] = ()) -> tuple[GivenName, ...]:
    return tuple(GivenName(source=source, name=name, within=within) for source, name in pairs)


def name(
    sources: list[str], rule: NameRule = NORMALISED, reserved: tuple[str, ...] = (), **earlier: Any
) -> tuple[list[str], ColumnNames]:
    """The written names of a load's columns, and what named them."""
    if isinstance(earlier.get("existing"), list):
        earlier["existing"] = dict.fromkeys(earlier["existing"], pa.string())
    names = ColumnNames(EarlierNames("s.t", **earlier), rule, reserved)
    return names([*reserved, *sources])[len(reserved) :], names


NEW = [
    # columns of a first load, their names: SEMANTICS of the vendors' documents
    (NORMALISED, ["name", "name", "name"], ["name", "name_1", "name_2"]),
    (NORMALISED, ["Name", "name"], ["Name", "name_1"]),
    (NORMALISED, ["name", "name", "name_1"], ["name", "name_1", "name_1_1"]),
    (NORMALISED, ["e", "é", "First-Name", "first name"], ["e", "e_1", "First_Name", "first_name_1"]),
    (AS_IN_SOURCE, ["Name", "name", "a b"], ["Name", "name_1", "a b"]),
    (AVRO_SAFE, ["Name", "name", "a-b", "a b"], ["Name", "name", "a_b", "a_b_1"]),
    (AS_TEXT, ["Name", "name", "a-b", "a b"], ["Name", "name", "a-b", "a b"]),
]


@pytest.mark.parametrize(("rule", "sources", "expected"), NEW)
def test_first_load(rule, sources, expected):
    assert name(sources, rule)[0] == expected


GIVEN = [
    # the columns of a first load, those of a second one, the names of these
    (NORMALISED, ["id", "name"], ["NAME", "id", "name"], ["NAME_1", "id", "name"]),
    (NORMALISED, ["id", "first name"], ["First-Name", "id", "first name"], ["First_Name_1", "id", "first_name"]),
    (NORMALISED, ["é"], ["e", "é"], ["e_1", "e"]),
    (NORMALISED, ["NAME", "name"], ["name", "NAME"], ["name_1", "NAME"]),
    (NORMALISED, ["NAME", "name"], ["name"], ["name_1"]),
    (NORMALISED, ["NAME", "name"], ["name", "Name", "id"], ["name_1", "Name_2", "id"]),
    (NORMALISED, ["name", "name"], ["x", "name", "name", "name"], ["x", "name", "name_1", "name_2"]),
    (NORMALISED, ["a b", "a-b"], ["a_b_1", "a-b", "a b", "a.b"], ["a_b_1_1", "a_b_1", "a_b", "a_b_2"]),
    # engines do not tell names by their case: a column in another case is the same one, unless both are there
    (NORMALISED, ["id", "name"], ["ID", "NAME"], ["id", "name"]),
    (AS_TEXT, ["id", "name"], ["ID", "NAME"], ["ID", "NAME"]),
    (NORMALISED, ["name"], ["Name", "NAME"], ["Name_1", "NAME_2"]),
    # a column that went and came back
    (NORMALISED, ["first name", "id"], ["id"], ["id"]),
    (AVRO_SAFE, ["a-b"], ["a b", "a-b"], ["a_b_1", "a_b"]),
    # a number behind a name that ends with _
    (NORMALISED, ["_", "/"], ["%", "/", "_"], ["__2", "__1", "_"]),
    (AS_TEXT, ["_raw_id_1"], ["_raw_id", "_raw_id_1"], ["_raw_id_2", "_raw_id_1"]),
]


@pytest.mark.parametrize(("rule", "first", "second", "expected"), GIVEN)
def test_names_stay(rule, first, second, expected):
    reserved = ("_raw_id",) if rule is AS_TEXT else ()
    _, before = name(first, rule, reserved)
    assert name(second, rule, reserved, given=before.list_given(), is_loaded=True)[0] == expected


LEFT = [
    # names that a load left in the catalog which failed, new columns, their names
    (["name", "name_1"], ["NAME", "name"], ["NAME_1", "name"]),
    (["name", "name_1", "name_2"], ["NAME", "Name", "name"], ["NAME_3", "Name_4", "name"]),
]


@pytest.mark.parametrize(("existing", "sources", "expected"), LEFT)
def test_names_that_a_failed_load_left_in_the_catalog(existing, sources, expected):
    assert name(sources, existing=existing, given=give(("name", "name")), is_loaded=True)[0] == expected


def test_a_column_comes_back():
    _, first = name(["First-Name", "first name"])
    _, second = name(["id", "first name"], given=first.list_given())
    given = (*first.list_given(), *second.list_given())
    third, _ = name(["firstname", "First-Name", "first_name", "first name"], given=given)
    assert third == ["firstname", "First_Name", "first_name_2", "first_name_1"]


def test_a_name_that_two_columns_had_is_pinned():
    given = give(("name", "name"), ("NAME", "name"))
    with pytest.raises(NameCollisionError, match=r"columns 'name' and 'NAME' would both be written as 'name'"):
        name(["NAME", "name"], given=given)
    pinned = {"name": "name_1", "NAME": "name"}
    assert name(["NAME", "name"], given=given, pinned=pinned)[0] == ["name", "name_1"]


RENAMED = [
    # the names that columns had, those of the source now, lake.yaml's names; what they are written as
    ((("mail", "mail"),), ["id", "email"], {"email": "mail"}, ["id", "mail"]),
    ((("mail", "mail"), ("phone", "phone")), ["phone", "email"], {"email": "mail"}, ["phone", "mail"]),
    # Then the record has both, and needs no more of lake.yaml.
    ((("mail", "mail"), ("email", "mail")), ["id", "email"], {}, ["id", "mail"]),
    # The old one comes back: lake.yaml says what each is.
    ((("mail", "mail"), ("email", "mail")), ["mail", "email"], {"email": "mail", "mail": "mail_1"}, ["mail_1", "mail"]),
    # Engines do not tell them apart, so the column is there.
    ((("Mail", "Mail"),), ["MAIL", "email"], {"email": "Mail"}, None),
    ((("mail", "mail"),), ["mail", "email"], {"email": "mail"}, None),
    ((("mail", "mail"), ("email", "mail")), ["mail", "email"], {"email": "mail"}, None),
]


@pytest.mark.parametrize(("before", "sources", "pinned", "expected"), RENAMED)
def test_column_that_was_renamed_in_the_source(before, sources, pinned, expected):
    if expected is None:
        with pytest.raises(NameCollisionError):
            name(sources, given=give(*before), pinned=pinned, is_loaded=True)
        return
    assert name(sources, given=give(*before), pinned=pinned, is_loaded=True)[0] == expected


UNTOLD = [
    # columns of the catalog whose source no record tells, the load's columns, their names
    (["id", "name"], ["id", "name"], ["id", "name"]),
    (["id", "first_name"], ["First Name", "id"], ["First_Name", "id"]),
    (["id"], ["NAME", "id", "name"], ["NAME", "id", "name_1"]),
    (["address", "address_1"], ["address_1", "address"], ["address_1", "address"]),
    (["name", "name_1"], ["name", "name"], ["name", "name_1"]),
    (["_at_1"], ["_at"], ["_at_1"]),
    (["a_1"], ["a", "A"], ["a", "A_2"]),
]


@pytest.mark.parametrize(("existing", "sources", "expected"), UNTOLD)
def test_names_of_which_no_record_tells(existing, sources, expected):
    assert name(sources, reserved=("_at",), existing=existing, is_loaded=True)[0] == expected


AMBIGUOUS = [
    # what is known of a table that was loaded, the load's columns, the line that pins them
    ({"existing": ["id", "name"]}, ["NAME", "id", "name"], '{"NAME": "NAME", "name": "name_1"}'),
    ({"existing": ["name", "name_1"]}, ["name", "NAME"], '{"name": "name", "NAME": "NAME_1"}'),
    ({"existing": ["first_name"]}, ["First-Name", "first name"],
     '{"First-Name": "First_Name", "first name": "first_name_1"}'),
    ({"existing": None}, ["e", "é"], '{"e": "e", "é": "e_1"}'),
    # its first load may have written _at as _at_1, and _at_1 as _at_1_1
    ({"existing": None}, ["_at", "_at_1"], '{"_at": "_at_1", "_at_1": "_at_1_1"}'),
    ({"existing": None}, ["id", "e", "é", "E"], '{"e": "e", "é": "e_1", "E": "E_2"}'),
]  # fmt: skip


@pytest.mark.parametrize(("earlier", "sources", "line"), AMBIGUOUS)
def test_nothing_is_guessed(earlier, sources, line):
    with pytest.raises(NameCollisionError) as caught:
        name(sources, reserved=("_at",), is_loaded=True, **earlier)
    assert caught.value.remedy == f"Say which has which: names: {line}"


@pytest.mark.parametrize(("earlier", "sources", "line"), AMBIGUOUS)
def test_the_line_of_the_message_pins(earlier, sources, line):
    pinned = json.loads(line)
    names, used = name(sources, reserved=("_at",), is_loaded=True, pinned=pinned, **earlier)
    assert {source: written for source, written in zip(sources, names, strict=True) if source in pinned} == pinned
    again, _ = name(list(reversed(sources)), reserved=("_at",), is_loaded=True, given=used.list_given())
    assert again == list(reversed(names))


def test_columns_of_one_name_have_names_by_their_order():
    assert name(["id", "name", "name"], is_loaded=True)[0] == ["id", "name", "name_1"]


FIELDS = [
    # what documents' fields ask for
    [("/a#a", "a"), ("/b/c#b/c", "b/c")],
    [("/a/b_c#a_b_c", "a_b_c"), ("/a_b/c#a_b_c", "a_b_c")],
]


@pytest.mark.parametrize("fields", FIELDS)
def test_names_that_documents_ask_for(fields):
    names = ColumnNames(EarlierNames("t"), AS_TEXT)
    names.name_fields(fields)
    again = ColumnNames(EarlierNames("t", names.list_given(), is_loaded=True), AS_TEXT)
    assert again.name_fields(fields[::-1]) == names.name_fields(fields)[::-1]


def test_no_line_of_a_connection_without_a_file():
    with pytest.raises(NameCollisionError) as caught:
        name(["e", "é"], AVRO_SAFE, is_loaded=True, pin=None)
    assert caught.value.remedy.startswith("Load it under another path; or replace it by a full refresh")


WRONG_PINS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"pinned": {"name": "a b"}}, SpecInvalidError, "give column 'name' the name 'a b', expected one that its files"),
    ({"pinned": {"name": "other"}, "given": give(("name", "name"))}, NameCollisionError,
     "give column 'name' the name 'other', and its values are in the table as 'name'"),
    ({"pinned": {"name": "ID"}, "given": give(("id", "id"))}, NameCollisionError,
     "give column 'name' the name 'ID', which another column has"),
    ({"pinned": {"name": "_at"}}, NameCollisionError, "give column 'name' the name '_at', which another column has"),
]  # fmt: skip


@pytest.mark.parametrize(("earlier", "kind", "said"), WRONG_PINS)
def test_pins_that_move_values(earlier, kind, said):
    with pytest.raises(kind, match=said):
        name(["name", "id"], reserved=("_at",), **earlier)


def test_pin_of_a_new_table():
    names, used = name(["name", "NAME"], pinned={"NAME": "shouted", "gone": "x"})
    assert names == ["name", "shouted"]
    assert used.list_idle_pins() == ["gone"]


def test_tracking_column_with_the_name_of_a_column():
    with pytest.raises(
        NameCollisionError, match="'synced_at' is the name of a column that the load adds, and the table"
    ):
        name(["id"], reserved=("synced_at",), given=give(("synced_at", "synced_at"), ("id", "id")))


def test_a_format_with_other_names():
    given = give(("a b", "a b"), ("a", "a"))
    assert name(["a b", "a"], AVRO_SAFE, given=given, is_loaded=True)[0] == ["a_b", "a"]


def test_discarded_columns_are_given_no_name():
    _, used = name(["id", "new"])
    assert used.list_given(["new"]) == give(("id", "id"))


T = pa.string()
FIRST = pa.struct(
    [("first name", T), ("tags", pa.list_(pa.struct([("a b", T)]))), ("by", pa.map_(T, pa.struct([("é", T)])))]
)
SECOND = pa.struct([
    ("First-Name", T), ("first name", T), ("tags", pa.list_(pa.struct([("a-b", T), ("a b", T)]))),
    ("by", pa.map_(T, pa.struct([("e", T), ("é", T)]))),
])  # fmt: skip
NAMED = pa.struct([
    ("First_Name_1", T), ("first_name", T), ("tags", pa.list_(pa.struct([("a_b_1", T), ("a_b", T)]))),
    ("by", pa.map_(T, pa.struct([("e_1", T), ("e", T)]))),
])  # fmt: skip


def test_names_inside_structs_stay():
    _, first = name(["s"])
    rebuild_type(FIRST, first.inside("s"))
    given = first.list_given()
    assert set(given[4:]) == {
        *give(("a b", "a_b"), within=("s", "tags", ELEMENT)),
        *give(("é", "e"), within=("s", "by", VALUE)),
    }
    _, second = name(["s"], given=given, is_loaded=True)
    assert rebuild_type(SECOND, second.inside("s")) == rebuild_type(NAMED, lambda names: list(names))


def test_untold_names_inside_structs():
    there = {"s": pa.struct([("first_name", T)])}
    _, names = name(["s"], existing=there, is_loaded=True)
    with pytest.raises(NameCollisionError, match=r"columns 's\.First-Name' and 's\.first name' would both be written"):
        rebuild_type(SECOND, names.inside("s"))
    pinned = {"s.First-Name": "first_name_1", "s.first name": "first_name"}
    _, names = name(["s"], existing=there, pinned=pinned, is_loaded=True)
    written = rebuild_type(SECOND, names.inside("s"))
    assert [field.name for field in written][:2] == ["first_name_1", "first_name"]


def test_columns_of_one_name_may_have_different_structs():
    _, names = name(["s", "s"])
    inner = names.inside("s")
    assert [inner(["a b"]), inner(["c", "a b"])] == [["a_b"], ["c", "a_b"]]
