"""One event to the letter, and what it says of two runs."""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from openlineage.client.serde import Serde

import lakewriter
from lakewriter.lineage.events import make_event, make_run_id
from lakewriter.lineage.facts import Column, Dataset, Moment, Output, Run, Statistics
from lakewriter.lineage.load_follower import redact
from tests.lineage.events import require_valid

BEGUN = datetime(2027, 1, 4, 6, 0, 1, 500_000, tzinfo=UTC)
LOAD = Run(BEGUN, "shop/j1/a1", "lake-prod", "shop", "LOAD", nominal_time=datetime(2027, 1, 4, 6, tzinfo=UTC))
TABLE = replace(LOAD, identity="shop/j1/a1/crm.users", job="shop.crm.users", kind="TABLE", parent=LOAD)
USERS = Output(
    Dataset("s3://acme-lake", "data/crm/users"),
    lambda: Dataset("arn:aws:glue:us-east-1:123456789012", "table/crm/users"),
    (Column("user_id", "bigint", ("User ID",), is_identity=False), Column("_loaded_at", "timestamp")),
    is_iceberg=True,
    version="42",
)
PRODUCER = f"urn:lakewriter:{lakewriter.__version__}"


def facet(name: str, version: str, /, **fields: object) -> dict[str, object]:
    url = f"https://openlineage.io/spec/facets/{version}/{name}.json#/$defs/{name}"
    return {"_producer": PRODUCER, "_schemaURL": url, **fields}


COMPLETE = {
    "eventType": "COMPLETE",
    "eventTime": "2027-01-04T06:00:09.000+00:00",
    "producer": PRODUCER,
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    "run": {
        "runId": "RUN",
        "facets": {
            "parent": facet(
                "ParentRunFacet", "1-2-0",
                run={"runId": "LOAD", "facets": {}}, job={"namespace": "lake-prod", "name": "shop", "facets": {}},
            ),
            "nominalTime": facet("NominalTimeRunFacet", "1-0-1", nominalStartTime="2027-01-04T06:00:00.000+00:00"),
            "processing_engine": facet(
                "ProcessingEngineRunFacet", "1-1-1",
                name="spark", version="4.1.1", openlineageAdapterVersion=lakewriter.__version__,
            ),
        },
    },
    "job": {
        "namespace": "lake-prod",
        "name": "shop.crm.users",
        "facets": {
            "jobType": facet(
                "JobTypeJobFacet", "2-0-4", processingType="BATCH", integration="LAKEWRITER", jobType="TABLE"
            )
        },
    },
    "inputs": [
        {
            "namespace": "s3://acme-landing",
            "name": "users",
            "facets": {
                "schema": facet(
                    "SchemaDatasetFacet", "1-2-0", fields=[{"name": "User ID", "type": "string", "fields": []}]
                )
            },
            "inputFacets": {},
        }
    ],
    "outputs": [
        {
            "namespace": "s3://acme-lake",
            "name": "data/crm/users",
            "facets": {
                "schema": facet(
                    "SchemaDatasetFacet", "1-2-0",
                    fields=[
                        {"name": "user_id", "type": "bigint", "fields": []},
                        {"name": "_loaded_at", "type": "timestamp", "fields": []},
                    ],
                ),
                "columnLineage": facet(
                    "ColumnLineageDatasetFacet", "1-2-0",
                    fields={
                        "user_id": {
                            "inputFields": [
                                {
                                    "namespace": "s3://acme-landing",
                                    "name": "users",
                                    "field": "User ID",
                                    "transformations": [
                                        {"type": "DIRECT", "subtype": "TRANSFORMATION", "masking": False}
                                    ],
                                }
                            ]
                        }
                    },
                    dataset=[],
                ),
                "symlinks": facet(
                    "SymlinksDatasetFacet", "1-0-1",
                    identifiers=[
                        {
                            "namespace": "arn:aws:glue:us-east-1:123456789012",
                            "name": "table/crm/users",
                            "type": "TABLE",
                        }
                    ],
                ),
                "storage": facet("StorageDatasetFacet", "1-0-1", storageLayer="iceberg", fileFormat="parquet"),
                "version": facet("DatasetVersionDatasetFacet", "1-0-1", datasetVersion="42"),
            },
            "outputFacets": {
                "outputStatistics": facet(
                    "OutputStatisticsOutputDatasetFacet", "1-0-2", rowCount=7, size=1024, fileCount=1
                )
            },
        }
    ],
}  # fmt: skip


def test_event_of_a_table(monkeypatch):
    pyspark = type(sys)("pyspark")
    pyspark.__dict__["__version__"] = "4.1.1"
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    moment = Moment(
        "COMPLETE", BEGUN + timedelta(seconds=7.5), TABLE, (Dataset("s3://acme-landing", "users"),),
        (Column("User ID", "string"),), USERS, Statistics(7, 1024, 1),
    )  # fmt: skip
    event = json.loads(Serde.to_json(make_event(moment)))
    require_valid(event)
    ids = {"RUN": make_run_id(TABLE), "LOAD": make_run_id(LOAD)}
    text = json.dumps(COMPLETE)
    for name, run_id in ids.items():
        text = text.replace(f'"runId": "{name}"', f'"runId": "{run_id}"')
    assert event == json.loads(text)


def test_run_ids():
    assert make_run_id(TABLE) == make_run_id(replace(TABLE, nominal_time=None))
    others = [LOAD, replace(TABLE, identity="shop/j1/a2/crm.users"), replace(TABLE, identity="shop/j2/a1/crm.users")]
    assert len({make_run_id(run) for run in (TABLE, *others)}) == 4


MESSAGES = [
    ("cannot reach 'jdbc:mysql://me:hush@db/shop'", "cannot reach 'jdbc:mysql://***@db/shop'"),
    ("https://hush:@host and ftp://a:b@c", "https://***@host and ftp://***@c"),
    ("at 10:30 ask me@example.com", "at 10:30 ask me@example.com"),
    ("", "ValueError"),
]


@pytest.mark.parametrize(("message", "sent"), MESSAGES)
def test_message_without_passwords(message, sent):
    assert redact(ValueError(message)) == sent
