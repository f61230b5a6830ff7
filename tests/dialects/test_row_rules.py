"""What a file decides of a source that changes and of bad rows: a table's own words, then the pipeline's."""

from typing import Any, cast

import jsonschema
import pytest

from lakewriter.dialects.common.row_rule_keys import BadRowEntry, ContractEntry
from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.lake_yaml import LakeFile, load_spec
from lakewriter.errors import NameCollisionError, SpecInvalidError
from lakewriter.spec.row_rules import BadRows, Contract
from tests.dialects.files import TABLE, lake
from tests.dialects.flows import BINDING, bindings
from tests.load.syncs import SyncLake, catalog, stream

RULES: list[tuple[dict[str, Any], dict[str, Any], Contract | None, BadRows | None]] = [
    # of the pipeline, of the table, what the table goes by
    ({}, {}, None, None),
    ({"contract": {"columns": "freeze"}}, {}, Contract(columns="freeze"), None),
    ({"contract": {"columns": "freeze"}}, {"contract": {"types": "freeze"}}, Contract(columns="freeze", types="freeze"),
     None),
    ({"contract": {"columns": "freeze"}}, {"contract": {"columns": "evolve"}}, Contract(), None),
    ({}, {"contract": {"columns": "discard"}}, Contract(columns="discard"), None),
    ({"on_bad_row": "quarantine"}, {}, None, BadRows(action="quarantine", at_most=0.001)),
    ({"on_bad_row": "quarantine"}, {"on_bad_row": "fail"}, None, BadRows()),
    ({"on_bad_row": "quarantine"}, {}, None, BadRows(action="quarantine", at_most=0.001)),
    ({"on_bad_row": "quarantine"}, {"on_bad_row": {"action": "quarantine", "at_most": 0.2}}, None,
     BadRows(action="quarantine", at_most=0.2)),
    ({}, {"on_bad_row": {"action": "quarantine", "at_most": 0}}, None, BadRows(action="quarantine", at_most=0)),
    ({"on_bad_row": {"action": "quarantine", "at_most": 0.5}}, {"on_bad_row": "quarantine"}, None,
     BadRows(action="quarantine", at_most=0.001)),
]  # fmt: skip


@pytest.mark.parametrize(("pipeline", "table", "contract", "bad_rows"), RULES)
def test_rules_of_a_table(pipeline, table, contract, bad_rows):
    default = ContractEntry.model_validate(pipeline.get("contract", {}))
    rows = BadRowEntry.model_validate(pipeline["on_bad_row"]) if "on_bad_row" in pipeline else None
    found = TableEntry.model_validate(TABLE | table).apply_defaults(default, rows).make_source("/")
    assert (found.contract, found.on_bad_row) == (contract, bad_rows)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"contract": {"columns": "freeze"}}, "contract.columns: freeze"),
    ({"contract": {"columns": "discard"}}, "contract.columns: discard"),
    ({"contract": {"types": "freeze"}}, "contract.types: freeze"),
]


@pytest.mark.parametrize(("rule", "shown"), REFUSED)
def test_rule_that_is_not_kept_for_a_table_is_refused(tmp_path, rule, shown):
    with pytest.raises(SpecInvalidError, match=f"'accounts' has {shown}, which cannot be kept"):
        load_spec(lake(tmp_path, tables=[TABLE | rule]))
    with pytest.raises(SpecInvalidError, match=f"'accounts' has {shown}, which cannot be kept"):
        load_spec(lake(tmp_path, top=rule))


def reads(form: str, **fields: Any) -> dict[str, Any]:
    return {"read": {"format": form, "path": "a", **fields}}


def sql(**view: Any) -> dict[str, Any]:
    return {"read": {"sql": "SELECT * FROM v", "views": {"v": view}}}


NOT_TOLD: list[tuple[dict[str, Any], str]] = [
    (reads("csv", engine="spark"), "with engine: spark, whose reader does not find bad rows"),
    (reads("xml", options={"rowTag": "r"}), "for xml files"),
    (sql(format="xml", path="a", options={"rowTag": "r"}), "for an sql: read of xml files"),
    (
        sql(format="csv", path="a", engine="spark"),
        "for an sql: read of csv files with engine: spark, whose",
    ),
    (sql(**sql(format="xml", path="a")["read"]), "for an sql: read of xml files"),
]


@pytest.mark.parametrize(("read", "why"), NOT_TOLD)
def test_rows_that_cannot_be_told_apart_are_not_set_aside(tmp_path, read, why):
    entry = TABLE | read | {"on_bad_row": "quarantine"}
    with pytest.raises(SpecInvalidError, match=f"'accounts' has on_bad_row: quarantine, which cannot be kept {why}"):
        load_spec(lake(tmp_path, tables=[entry]))


TOLD = [
    reads("csv", options={"header": True}),
    reads("json", options={"encoding": "UTF-8"}),
    reads("parquet"),
    reads("text"),
    sql(format="csv", path="a"),
    sql(**sql(format="json", path="a")["read"]),
    reads("jdbc", path=None, options={"url": "jdbc:x:y", "dbtable": "t"}),
]


@pytest.mark.parametrize("read", TOLD)
def test_rows_are_set_aside_of_lines_and_of_columns(tmp_path, read):
    fields = {name: value for name, value in read["read"].items() if value is not None}
    [table] = load_spec(lake(tmp_path, tables=[TABLE | {"read": fields, "on_bad_row": "quarantine"}])).tables
    assert table.sets_aside


QUARANTINE = {"on_bad_row": "quarantine"}


def test_normal_names_end_like_no_quarantine(tmp_path):
    """Runs of ``_`` in a name become one."""
    tables = [TABLE | QUARANTINE, TABLE | {"table": "accounts__quarantine"}]
    accounts, other = load_spec(lake(tmp_path, tables=tables)).tables
    assert (accounts.quarantine, other.path) == (f"{accounts.path}__quarantine", f"{accounts.path}_quarantine")


def test_streams_that_begin_alike_have_no_quarantine(tmp_path):
    """A folder that a template ends within: the files of every name that begins so are the stream's."""
    streams = [stream("users"), stream("users_old")]
    files = SyncLake(tmp_path, cast(Any, None), cast(Any, None))
    source = {"messages": "m.jsonl", "catalog": catalog(*streams)}
    kept = {"format": {"format_type": "CSV"}, "s3_path_format": "${STREAM_NAME}/${YEAR}"}
    files.write(kept, on_bad_row="quarantine", source=source)
    assert [table.quarantine for table in files.spec.tables] == ["data/users__quarantine", "data/users_old__quarantine"]
    files.write(
        kept,
        on_bad_row="quarantine",
        source=source | {"catalog": catalog(stream("users"), stream("users__quarantine"))},
    )
    with pytest.raises(
        NameCollisionError, match=r"bad rows of table 'users' .* which table 'users__quarantine' has"
    ) as caught:
        files.spec  # noqa: B018
    assert caught.value.remedy == "Give each table a folder of its own, or leave on_bad_row out."
    files.write(kept | {"s3_path_format": "${STREAM_NAME}_${YEAR}"}, on_bad_row="quarantine", source=source)
    with pytest.raises(NameCollisionError, match="bad rows of table 'users'"):
        files.spec  # noqa: B018


def test_quarantine_lies_beside_the_folder_of_a_binding(tmp_path):
    spec = load_spec(bindings(tmp_path, BINDING | {"documents": "value"} | QUARANTINE))
    [table] = spec.tables
    assert table.quarantine == f"{table.path}__quarantine"
    assert spec.prefixes == (*spec.roots, table.quarantine)


DOCUMENTS = BINDING | {
    "documents": "value",
    "contract": {"columns": "discard", "types": "freeze"},
    "on_bad_row": "fail",
}


def test_documents_without_a_schema_keep_contracts(tmp_path):
    [table] = load_spec(bindings(tmp_path, DOCUMENTS)).tables
    assert (table.contract, table.on_bad_row) == (Contract(columns="discard", types="freeze"), BadRows())
    declared = DOCUMENTS | {"collection": {"schema": {"properties": {"id": {"type": "integer"}}}}}
    with pytest.raises(SpecInvalidError, match=r"has contract\.columns: discard, which cannot be kept"):
        load_spec(bindings(tmp_path, declared))


CATALOGS = [{"update_aws_glue_catalog": True}, {"table_format": "ICEBERG"}]


@pytest.mark.parametrize("destination", CATALOGS)
def test_catalog_tells_what_a_contract_is_about(tmp_path, destination):
    rule = {"contract": {"columns": "discard", "types": "freeze"}}
    [table] = load_spec(lake(tmp_path, tables=[TABLE | rule], **destination)).tables
    assert table.contract == Contract(columns="discard", types="freeze")


def test_defaults_may_be_written_down(tmp_path):
    rules = {"contract": {"columns": "evolve", "types": "evolve"}, "on_bad_row": "fail"}
    [table] = load_spec(lake(tmp_path, tables=[TABLE | rules])).tables
    assert (table.contract, table.on_bad_row) == (Contract(), BadRows())


@pytest.mark.parametrize("value", ["fail", "quarantine", {"action": "quarantine", "at_most": 0.01}])
def test_schema_takes_the_action_alone(value):
    schema = LakeFile.model_json_schema()
    jsonschema.validate(value, schema["$defs"]["BadRowEntry"])


def test_schema_takes_no_other_action():
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate("skip", LakeFile.model_json_schema()["$defs"]["BadRowEntry"])
