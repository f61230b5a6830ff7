"""What a file expects of its tables: a table's own words, then the pipeline's."""

import json
from contextlib import nullcontext
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from lakewriter.dialects.common.expect_keys import ExpectEntry
from lakewriter.dialects.lake_schema import make_lake_schema
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.expectations import (
    AcceptedValues,
    Condition,
    Expectation,
    Fresh,
    NullShare,
    Range,
    Ratio,
    RowCount,
    RowsOfLastLoads,
    Unique,
)
from tests.dialects.files import TABLE, lake

ENTRIES: list[tuple[dict[str, Any], list[Expectation]]] = [
    ({"rows": {"at_least": 1}}, [RowCount(name="rows", at_least=1)]),
    ({"rows": {"at_least": 1, "at_most": 5}, "name": "n"}, [RowCount(name="n", at_least=1, at_most=5)]),
    ({"rows": {"of_last_loads": 7, "between": ["50%", 2]}},
     [RowsOfLastLoads(name="rows.of_last_loads", loads=7, least=0.5, most=2)]),
    ({"not_null": "a"}, [NullShare(name="not_null.a", column="a", at_most=0)]),
    ({"not_null": ["a", "b"]}, [NullShare(name=f"not_null.{each}", column=each, at_most=0) for each in "ab"]),
    ({"not_null": ["a", "b"], "name": "n"}, [NullShare(name=f"n.{each}", column=each, at_most=0) for each in "ab"]),
    ({"null_share": {"column": "a", "at_most": "33.3%"}}, [NullShare(name="null_share.a", column="a", at_most=0.333)]),
    ({"range": {"column": "a", "at_least": 0}, "on_violation": "warn"},
     [Range(name="range.a", column="a", at_least=0, on_violation="warn")]),
    ({"range": {"column": "a", "at_most": "2027-01-01"}}, [Range(name="range.a", column="a", at_most="2027-01-01")]),
    ({"fresh": {"column": "a", "within": "26 hours"}},
     [Fresh(name="fresh.a", column="a", within="26 hours")]),
    ({"fresh": {"column": "a", "within": "1 day"}},
     [Fresh(name="fresh.a", column="a", within="1 day")]),
    ({"accepted_values": {"column": "a", "values": ["x", 1, 0.5, True]}},
     [AcceptedValues(name="accepted_values.a", column="a", values=("x", 1, 0.5, True))]),
    ({"unique": "a"}, [Unique(name="unique.a", columns=("a",))]),
    ({"unique": ["a", "b"]}, [Unique(name="unique.a.b", columns=("a", "b"))]),
    ({"sql": "a > b", "name": "n"}, [Condition(name="n", sql="a > b")]),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "expectations"), ENTRIES)
def test_entries(entry, expectations):
    assert list(ExpectEntry.model_validate(entry).list_expectations("fail")) == expectations


def test_rows_are_kept_out_by_checks_of_rows_alone():
    """As a table's default, ``quarantine`` is for those that can keep it; the others fail the load."""
    rules = {name: [each.on_violation for each in ExpectEntry.model_validate(entry).list_expectations("quarantine")]
             for entry, _ in ENTRIES if "on_violation" not in entry for name in entry if name != "name"}  # fmt: skip
    kept_out, failed = ["quarantine"], ["fail"]
    assert rules == {
        "rows": failed, "not_null": kept_out * 2, "null_share": failed, "range": kept_out, "fresh": failed,
        "accepted_values": kept_out, "unique": failed, "sql": kept_out,
    }  # fmt: skip


@pytest.fixture(scope="module")
def schema():
    return jsonschema.Draft202012Validator(make_lake_schema())


@pytest.mark.parametrize(("entry", "_"), ENTRIES)
def test_schema_takes_the_entries(tmp_path, schema, entry, _):
    file = lake(tmp_path, tables=[TABLE | {"expect": [entry]}], top={"expect": [entry | {"tables": ["accounts"]}]})
    schema.validate(yaml.safe_load(file.read_text("utf-8")))


SHARES = [(0.5, 0.5), (1, 1.0), ("5%", 0.05), ("33.3 %", 0.333), ("200%", 2.0), ("5", None), ("-5%", None), ("%", None)]


@pytest.mark.parametrize(("text", "share"), SHARES)
def test_shares(text, share):
    with nullcontext() if share is not None else pytest.raises(ValidationError, match="percentage such as 50%"):
        assert TypeAdapter(Ratio).validate_python(text) == share


@pytest.mark.parametrize(("within", "seconds"), [("26 hours", 93_600), ("1 day", 86_400), ("2 weeks", 1_209_600)])
def test_seconds(within, seconds):
    assert Fresh(name="x", column="a", within=within).seconds == seconds


WAYS = [
    # of the pipeline, of the table, of the entry, what is done
    ({}, {}, {}, "fail"),
    ({"on_violation": "warn"}, {}, {}, "warn"),
    ({"on_violation": "warn"}, {"on_violation": "fail"}, {}, "fail"),
    ({}, {"on_violation": "warn"}, {"on_violation": "fail"}, "fail"),
]


@pytest.mark.parametrize(("pipeline", "table", "entry", "way"), WAYS)
def test_what_is_done_is_said_nearest(tmp_path, pipeline, table, entry, way):
    own = TABLE | table | {"expect": [{"not_null": "a"} | entry]}
    [found] = load_spec(lake(tmp_path, tables=[own], top=pipeline)).tables[0].expect
    assert found.on_violation == way


def test_a_table_has_its_own_and_the_pipeline_s(tmp_path):
    first, second = TABLE | {"expect": [{"not_null": "a"}]}, TABLE | {"table": "second"}
    shared = [{"rows": {"at_least": 1}}, {"not_null": "b", "tables": ["second"]}]
    tables = load_spec(lake(tmp_path, tables=[first, second], top={"expect": shared})).tables
    assert [[each.name for each in table.expect] for table in tables] == [
        ["not_null.a", "rows"],
        ["rows", "not_null.b"],
    ]


def test_dates_that_yaml_makes_are_text(tmp_path):
    file = lake(tmp_path, tables=[TABLE | {"expect": [{"range": {"column": "a", "at_least": "DAY", "at_most": "AT"}}]}])
    file.write_text(file.read_text().replace("DAY", "2027-01-01").replace("AT", "2027-01-01T06:00:00Z"), "utf-8")
    [found] = load_spec(file).tables[0].expect
    assert isinstance(found, Range)
    assert (found.at_least, found.at_most) == ("2027-01-01", "2027-01-01T06:00:00+00:00")


STREAM = {"stream": {"name": "users", "json_schema": {"properties": {"id": {"type": "integer"}}}},
          "sync_mode": "full_refresh", "destination_sync_mode": "append"}  # fmt: skip
AIRBYTE = {"type": "airbyte-s3", "s3_bucket_name": "acme-lake", "s3_bucket_path": "p", "s3_bucket_region": "us-east-1",
           "format": {"format_type": "CSV"}}  # fmt: skip


@pytest.mark.parametrize("rule", [{"unique": "id"}, {"sql": "id > 0", "name": "n"}])
def test_what_spark_looks_at_is_refused_for_messages(tmp_path, rule):
    (tmp_path / "c.json").write_text(json.dumps({"streams": [STREAM]}), "utf-8")
    source = {"messages": "m.jsonl", "catalog": "c.json"}
    content = {"pipeline": "p", "destination": AIRBYTE, "source": source, "expect": [rule]}
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")
    with pytest.raises(SpecInvalidError, match=r"expect\.0: stream 'users' has (unique|sql), which Spark looks at"):
        load_spec(tmp_path / "lake.yaml")
