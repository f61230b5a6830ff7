"""Names of tables at the destination: numbers in the order of lake.yaml, and ``written_as``, which pins one."""

import pytest

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import LakeError
from tests.dialects import airbyte_lakes, flows
from tests.dialects.files import READ, lake

PINS = [
    # tables with what they are written as, their names and the ids of those that they collide with
    ([("a b", None), ("a-b", None), ("c", None)], [("a_b", ("a_b_1",)), ("a_b_1", ("a_b",)), ("c", ())]),
    ([("a-b", None), ("a b", "a_b")], [("a_b_1", ("a_b",)), ("a_b", ("a_b_1",))]),
    ([("a-b", "x"), ("a b", None)], [("x", ("a_b",)), ("a_b", ("x",))]),
    ([("a b", None), ("a-b", None), ("a_b_1", None)],
     [("a_b", ("a_b_1",)), ("a_b_1", ("a_b", "a_b_1_1")), ("a_b_1_1", ("a_b_1",))]),
]  # fmt: skip


def make_tables(*names):
    return [{"table": table, "read": READ} | ({"written_as": name} if name else {}) for table, name in names]


@pytest.mark.parametrize(("tables", "expected"), PINS)
def test_names_of_tables(tmp_path, tables, expected):
    spec = load_spec(lake(tmp_path, tables=make_tables(*tables)))
    assert [(table.name, table.alike) for table in spec.tables] == expected
    assert [table.path for table in spec.tables] == [name for name, _ in expected]


WRONG = [
    ([("a", "A")], "SPEC_INVALID: lake.yaml:11: tables.0.written_as: no table is written as 'A'. Give it as it is "
     "written, such as 'a'."),
    ([("a", "x"), ("b", "x")], "NAME_COLLISION: lake.yaml:12: tables.1: table 'b' would lie at 'x', where table 'a' "
     "(tables.0) lies. Give the table a schema, or another destination_prefix."),
]  # fmt: skip


@pytest.mark.parametrize(("tables", "said"), WRONG)
def test_names_that_no_table_has(tmp_path, tables, said):
    with pytest.raises(LakeError) as caught:
        load_spec(lake(tmp_path, tables=make_tables(*tables)))
    assert str(caught.value) == said


def test_destinations_whose_paths_say_it_already(tmp_path):
    tables = [airbyte_lakes.TABLE | {"written_as": "x"}]
    with pytest.raises(
        LakeError, match=r"tables\.0\.written_as: table 'users' has written_as, and here s3_path_format"
    ):
        load_spec(airbyte_lakes.lake(tmp_path, {}, tables=tables))
    for key, value in {"written_as": "x", "names": {"a": "b"}}.items():
        with pytest.raises(LakeError, match=f"has '{key}'; this destination writes documents as they are"):
            load_spec(flows.bindings(tmp_path, flows.BINDING | {key: value}))


CATALOG = {"streams": [{"stream": {"name": "users", "namespace": "public"}}]}


def test_names_of_streams(tmp_path):
    source = {"messages": "-", "catalog": CATALOG, "names": {"public.users": {"First-Name": "first"}}}
    (table,) = load_spec(airbyte_lakes.lake(tmp_path, {}, source=source)).tables
    assert table.names == {"First-Name": "first"}


WRONG_NAMES = [
    (
        {"public.user": {"a": "b"}},
        r"source\.names\.public\.user: there is no stream 'public\.user'; expected 'public\.",
    ),
    ({"public.users": {"a": "b", "c": "B"}}, r"'a' and 'c' have the name 'B'; expected one for each"),
    ({"public.users": {"a": ""}}, "'a' has no name; expected one such as 'first_name'"),
]


@pytest.mark.parametrize(("names", "said"), WRONG_NAMES)
def test_names_that_no_stream_has(tmp_path, names, said):
    with pytest.raises(LakeError, match=said):
        load_spec(airbyte_lakes.lake(tmp_path, {}, source={"messages": "-", "catalog": CATALOG, "names": names}))
