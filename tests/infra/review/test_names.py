"""Names and example keys of the review, for tables whose whole key is one template."""

from pathlib import Path

from infra.review.load import describe_names
from infra.review.page import Code
from tests.policy.airbyte import airbyte, messages, stream, table

# 4 January 2027, 6:00 UTC in milliseconds: `date -u -d '2027-01-04 06:00' +%s` is 1799042400
STARTED = "2027_01_04_1799042400000_"


def test_tables(tmp_path: Path) -> None:
    spec = airbyte(tmp_path, top={"tables": [table(), table("orders", schema="")]}).spec
    section = describe_names(spec)
    assert section.tables[0].columns[1] == "Table"
    assert section.tables[0].rows == (
        (
            ("crm.users", Code("s3://acme-landing/crm/users")),
            Code("crm.users"),
            Code(f"data/crm/users/{STARTED}1.parquet"),
        ),
        (("orders", Code("s3://acme-landing/crm/users")), Code("orders"), Code(f"data/orders/{STARTED}1.parquet")),
    )
    assert section.text.endswith("What the job records of its loads is under s3://acme-lake/data/_lakewriter/crm/")


def test_lineage(tmp_path: Path) -> None:
    for to, where in (("log", "the job's log"), ("https://marquez.example.com", "https://marquez.example.com")):
        spec = airbyte(tmp_path, top={"tables": [table()], "lineage": {"to": to}}).spec
        assert describe_names(spec).text.endswith(
            "/_lakewriter/crm/ Each load sends OpenLineage events, with the names of tables, columns and sources, to "
            f"{where}"
        )


def test_streams(tmp_path: Path) -> None:
    form = {
        "s3_path_format": "${STREAM_NAME}/${SYNC_ID}/",
        "file_name_pattern": "{date}_{part_number}{format_extension}",
    }
    spec = airbyte(tmp_path, top=messages(stream(), stream("odd name", None)), **form).spec
    rows = describe_names(spec).tables[0].rows
    assert rows == (
        (("crm.users", Code("s3://acme-landing/crm/")), Code("crm.users"), Code("data/users/1/2027_01_04_1.parquet")),
        (
            ("odd name", Code("s3://acme-landing/crm/")),
            Code("odd_name_ef5bac77"),
            Code("data/odd_name/1/2027_01_04_1.parquet"),
        ),
    )
