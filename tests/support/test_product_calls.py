"""Which permissions are recorded for a call, and under which names."""

from typing import Any

import pytest

from lakewriter.naming import ControlKeys
from tests.support.call import Answer, Call
from tests.support.product_calls import Pattern, patterns
from tests.support.recording import Record, known_calls

OURS = {"user-agent": "Boto3/1.44.5 lakewriter", "x-amz-checksum-crc32": "AAAAAA=="}
BUCKET = "arn:aws:s3:::acme-lake"
SOURCE = "arn:aws:s3:::acme-landing"
CONTROL = f"{BUCKET}/data/production/_lakewriter/flights"
LOAD = f"{CONTROL}/loads/JOB"
FILE = f"{BUCKET}/data/production/supaflow_nyc_public/airlines/2027/01/04/06/part-JOB-00001.gzip.parquet"
GLUE = "arn:aws:glue:us-east-1:123456789012"


def s3(action: str, key: str = "", headers: dict[str, str] | None = None, **fields: Any) -> Call:
    bucket = fields.pop("bucket", "acme-lake")
    given: dict[str, Any] = {"method": "PUT", "query": {}, "body": b""} | fields
    return Call(
        "s3", f"s3:{action}", (f"arn:aws:s3:::{bucket}/{key}",), region="us-east-1", access_key="A", bucket=bucket,
        key=key, headers=OURS if headers is None else headers, document={}, **given,
    )  # fmt: skip


def glue(action: str, *paths: str, document: dict[str, Any] | None = None) -> Call:
    arns = tuple(path if path.startswith("arn:") or path == "*" else f"{GLUE}:{path}" for path in paths)
    service = action.partition(":")[0]
    return Call(service, action, arns, "POST", "us-east-1", "A", "", "", {}, OURS, b"", document or {})


KEYS = ControlKeys("lake", "books")
COUNTED = "changes/v0000000000/00000000000000000001.parquet"
STAGED = (("s3:ObjectCreationOperation", "false"),)
NEW = (("s3:ObjectCreationOperation", "true"), ("s3:if-none-match", "*"))
PART = {"uploadId": "u", "partNumber": "1"}
MANY = b"<Delete><Object><Key>lake/s/t/1.parquet</Key></Object></Delete>"
TABLE = f"{GLUE}:table/supaflow_nyc_public"

Row = tuple[Call, list[str], tuple[tuple[str, str], ...]]
OBJECTS: list[Row] = [
    # call; the resources of its patterns; their context
    (s3("GetObject", KEYS.state("a.b")), [f"{CONTROL}/tables/supaflow_nyc_public.airlines/state.json"], ()),
    (s3("GetObject", KEYS.report("j", "a.b")), [f"{LOAD}/supaflow_nyc_public.airlines.report.json"], ()),
    (s3("GetObject", KEYS.begin("j", "0a")), [f"{LOAD}/ATTEMPT/begin.json"], ()),
    (s3("GetObject", KEYS.outcome("j", "0a")), [f"{LOAD}/ATTEMPT/outcome.json"], ()),
    (s3("GetObject", KEYS.intent("j", "0a", "a.b")), [f"{LOAD}/ATTEMPT/tables/supaflow_nyc_public.airlines.json"], ()),
    (s3("GetObject", KEYS.failure("j", "0a", "a")), [f"{LOAD}/ATTEMPT/failed/supaflow_nyc_public.airlines.json"], ()),
    (s3("GetObject", f"{KEYS.load('j')}/0a/messages.jsonl"), [f"{LOAD}/ATTEMPT/messages.jsonl"], ()),
    (s3("GetObject", KEYS.run("n")), [f"{CONTROL}/runs/NAME.json"], ()),
    (
        s3("GetObject", f"{KEYS.writers}{'0' * 32}.json"),
        [f"{BUCKET}/data/production/_lakewriter/_writers/TABLE.json"],
        (),
    ),
    (
        s3("GetObject", f"lake/s/t/_lakewriter/owners/{'0' * 32}.json"),
        [f"{BUCKET}/data/production/supaflow_nyc_public/airlines/_lakewriter/owners/DIRECTORY.json"],
        (),
    ),
    # a kind of record that nobody has told of stays as it is, and is new
    (s3("GetObject", f"{KEYS.root}/other/x"), [f"{CONTROL}/other/x"], ()),
    (s3("PutObject", "lake/s/t/1.parquet", query=PART), [FILE], STAGED),
    (s3("PutObject", "data/production/s/t/1.parquet", OURS | {"if-none-match": "*"}), [FILE], NEW),
    (s3("DeleteObject", "lake/s/t/1.parquet", OURS | {"if-match": "0a"}), [FILE], (("s3:if-match", "ETAG"),)),
    (s3("DeleteObject", body=MANY), [FILE], ()),
    # a destination at the bucket's root: what is written is its, and what is read and named by a counter
    (s3("PutObject", COUNTED, query=PART), [FILE], STAGED),
    (s3("GetObject", COUNTED), [FILE], ()),
    (s3("GetObject", ControlKeys("", "wiki").continuous), [f"{CONTROL}/continuous.json"], ()),
    # to IAM a prefix is no folder
    (s3("GetObject", "lakes/x"), [f"{SOURCE}/flights/flights/part-0.parquet"], ()),
]
LISTINGS: list[Row] = [
    (s3("ListBucket"), [BUCKET], ()),
    (s3("ListBucket", query={"prefix": "lake/"}), [BUCKET], (("s3:prefix", "data/production/"),)),
    (
        s3("ListBucket", query={"prefix": "changes/"}),
        [BUCKET],
        (("s3:prefix", "data/production/supaflow_nyc_public/airlines/"),),
    ),
    (
        s3("ListBucket", query={"prefix": f"{KEYS.root}/loads/stream-0a-1b-"}),
        [BUCKET],
        (("s3:prefix", "data/production/_lakewriter/flights/loads/stream-QUERY-"),),
    ),
    (
        s3("ListBucket", query={"prefix": KEYS.runs}),
        [BUCKET],
        (("s3:prefix", "data/production/_lakewriter/flights/runs/"),),
    ),
    (
        s3("ListBucket", query={"prefix": "in/", "delimiter": "/"}),
        [SOURCE],
        (("s3:delimiter", "/"), ("s3:prefix", "flights/flights/")),
    ),
]
OTHERS: list[Row] = [
    (
        glue("glue:UpdateTable", "table/x/t", "database/x", "catalog"),
        [f"{TABLE}/airlines", f"{GLUE}:database/supaflow_nyc_public", f"{GLUE}:catalog"],
        (),
    ),
    (glue("glue:GetTable", "table/x/lakewriter_check_0a"), [f"{TABLE}/lakewriter_check_MARK"], ()),
    (
        glue("sts:AssumeRole", "arn:aws:iam::1:role/X", document={"ExternalId": "e"}),
        ["arn:aws:iam::123456789012:role/LakeWriter"],
        (("sts:ExternalId", "EXTERNAL-ID"),),
    ),
]


@pytest.mark.parametrize(("call", "resources", "context"), [*OBJECTS, *LISTINGS, *OTHERS])
def test_recorded(call: Call, resources: list[str], context: tuple[tuple[str, str], ...]) -> None:
    assert list(patterns(call)) == [Pattern(call.action, resource, context) for resource in resources]


@pytest.mark.parametrize(
    "call",
    [
        # a test's own, one to a store with an endpoint of its own, one where a catalog keeps a table, one by PyIceberg
        s3("PutObject", "lake/s/t/1.parquet", OURS | {"user-agent": "Boto3/1.44.5"}),
        s3("PutObject", "lake/s/t/1.parquet", {"user-agent": "lakewriter"}),
        s3("PutObject", "open/s/t/metadata/1.avro"),
        s3("GetObject", "data/production/s/t/data/1.parquet", {"user-agent": "aws-sdk-cpp/1.11"}),
    ],
)
def test_not_recorded(call: Call) -> None:
    assert list(patterns(call)) == []


def test_complaints() -> None:
    record = Record()
    record.observe(glue("glue:GetCatalogs", "catalog"), Answer(200))
    new, *gone, what_to_do = record.complaints(everything=True)
    assert new.startswith(f"new: glue:GetCatalogs on {GLUE}:catalog, first in tests/support/test_product_calls.py")
    assert len(gone) == len(known_calls())
    assert record.complaints(everything=False) == [new, what_to_do]
