"""A CSV file whose header is read as one column: the separator is named, in place of every column that is missing."""

import pytest

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.doctor.source_columns import list_missing_columns

LAKE = """\
pipeline: shop
destination: {type: lakewriter-s3, location: s3://acme-lake/lake, region: us-east-1}
tables:
  - {table: orders, read: {format: csv, path: a.csv, options: {header: true}}, primary_key: [id], cursor: at}
"""

HEADERS = [
    # the columns that were read, what is found
    (["id;at;name"], [("'orders': the source has one column, 'id;at;name', with ';' in its name.", '{sep: ";"}')]),
    (["id\tat"], [("'orders': the source has one column, 'id\\tat', with '\\t' in its name.", '{sep: "\\t"}')]),
    (
        ["number", "name"],
        [
            ("primary_key of 'orders': the source has no column 'id'.", ""),
            ("cursor of 'orders': the source has no column 'at'.", ""),
        ],
    ),
    (["id", "at", "a;b"], []),
]


@pytest.mark.parametrize(("present", "expected"), HEADERS, ids=["semicolon", "tab", "other names", "all there"])
def test_a_wrong_separator_is_one_finding(tmp_path, present, expected):
    (tmp_path / "lake.yaml").write_text(LAKE, "utf-8")
    (table,) = load_spec(tmp_path / "lake.yaml").tables
    findings = list_missing_columns("source orders", table, present)
    assert [finding.message for finding in findings] == [message for message, _ in expected]
    assert all(advice in finding.remedy for finding, (_, advice) in zip(findings, expected, strict=True))
