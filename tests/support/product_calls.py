"""What the product asks of AWS in tests, as IAM sees it, with the names of the demo's lake.yaml for each test's."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from lakewriter.naming import LATEST
from tests.support.call import TABLE_BUCKET, Call
from tests.support.denials import deleted_keys

DEMO_BUCKET: Final = "acme-lake"
REPLICA: Final = "acme-lake-west"
"""A copy of the demo's bucket, which is a destination as much as that is."""
DEMO_PREFIX: Final = "data/production"
DEMO_DATABASE: Final = "supaflow_nyc_public"
DEMO_TABLE: Final = "airlines"
DEMO_SOURCE: Final = ("acme-landing", "flights/flights")
DEMO_NAMES: Final = {
    "iam:policy": "arn:aws:iam::123456789012:policy/LakeWriter",
    "iam:role": "arn:aws:iam::123456789012:role/LakeWriter",
    "secretsmanager:secret": "arn:aws:secretsmanager:us-east-1:123456789012:secret:warehouse-AbCdEf",
    "ssm:parameter": "arn:aws:ssm:us-east-1:123456789012:parameter/lake/external-id",
    "s3tables:bucket": "arn:aws:s3tables:us-east-1:123456789012:bucket/acme-tables",
}

_PREFIXES: Final = ("data/production", "lake", "data")
"""Where tests have destinations with a prefix, all in the demo's bucket."""
_COUNTED: Final = re.compile(r"(.+/)?v\d{10}/\d{20}\.parquet")
"""An object of a destination without a prefix."""
_CONTROL_KEY: Final = re.compile(r"(?:.*/)?_lakewriter/[^/]+(/?)(.*)")

_CHOSEN: Final = "open/"
"""Where the tests' Open Catalog keeps its tables."""

_MARKS: Final = ("lakewriter", "aws-sdk-cpp")
"""The product's user agent, and pyarrow's, with which only the product reads."""

_TABLE_ID: Final = f"{DEMO_DATABASE}.{DEMO_TABLE}"
_CONTROL: Final = [
    (re.compile(pattern), name)
    for pattern, name in {
        r"tables/[^/]+/state\.json": f"tables/{_TABLE_ID}/state.json",
        r"tables/[^/]+/inputs/[^/]+\.jsonl\.gz": f"tables/{_TABLE_ID}/inputs/NAME.jsonl.gz",
        r"loads/[^/]+/[^/]+\.report\.json": f"loads/JOB/{_TABLE_ID}.report.json",
        r"loads/[^/]+/[^/]+/(begin|outcome)\.json": r"loads/JOB/ATTEMPT/\1.json",
        r"loads/[^/]+/[^/]+/run/record\.json": "loads/JOB/ATTEMPT/run/record.json",
        r"loads/[^/]+/[^/]+/sync/(decision|completion)\.json": r"loads/JOB/ATTEMPT/sync/\1.json",
        r"loads/[^/]+/report\.html": "loads/JOB/report.html",
        r"loads/[^/]+/sync\.json": "loads/JOB/sync.json",
        r"repeats/[^/]+\.json": "repeats/JOB.json",
        r"loads/[^/]+/[^/]+/begin/[^/]+\.json": f"loads/JOB/ATTEMPT/begin/{_TABLE_ID}.json",
        r"syncs/\d+\.json": "syncs/NUMBER.json",
        r"loads/[^/]+/[^/]+/(tables|failed|decided|completed)/[^/]+\.json": rf"loads/JOB/ATTEMPT/\1/{_TABLE_ID}.json",
        r"loads/[^/]+/[^/]+/receipts/[^/]+/[^/]+\.jsonl\.gz": f"loads/JOB/ATTEMPT/receipts/{_TABLE_ID}/NAME.jsonl.gz",
        r"loads/[^/]+/[^/]+/bad_rows/[^/]+/[^/]+\.jsonl\.gz": f"loads/JOB/ATTEMPT/bad_rows/{_TABLE_ID}/NAME.jsonl.gz",
        r"loads/[^/]+/[^/]+/uploads/[^/]+/[^/]+\.json": f"loads/JOB/ATTEMPT/uploads/{_TABLE_ID}/NAME.json",
        r"loads/[^/]+/[^/]+/deleted/[^/]+\.parquet": f"loads/JOB/ATTEMPT/deleted/{_TABLE_ID}.parquet",
        r"loads/[^/]+/[^/]+/messages\.jsonl": "loads/JOB/ATTEMPT/messages.jsonl",
        r"loads/[^/]+/[^/]+/uploads/[^/]+/": f"loads/JOB/ATTEMPT/uploads/{_TABLE_ID}/",
        r"loads/[^/]+/": "loads/JOB/",
        r"loads/stream-[0-9a-f-]+-": "loads/stream-QUERY-",
        r"loads/[^/]+\.s": "loads/JOB.s",
        r"(loads|tables|runs)/": r"\1/",
        r"runs/[^/]+\.json": "runs/NAME.json",
        r"check/[0-9a-f]+(-staged)?": r"check/MARK\1",
        r"canary/": "canary/",
        r"canary/.+": "canary/FILE",
        "": "",
    }.items()
]
_DATA: Final = f"{DEMO_DATABASE}/{DEMO_TABLE}"
_SHARED_RECORD: Final = re.compile(r"(?:.*/)?_lakewriter/(_writers|owners)/[0-9a-f]{32}\.json")
"""Records that pipelines share: who writes a table, beside their folders, and who a directory, within that."""
_SHARED_RECORDS: Final = {
    "_writers": f"{DEMO_PREFIX}/_lakewriter/_writers/TABLE.json",
    "owners": f"{DEMO_PREFIX}/{_DATA}/_lakewriter/owners/DIRECTORY.json",
}
_FILE: Final = "2027/01/04/06/part-JOB-00001.gzip.parquet"


class Pattern(NamedTuple):
    """One permission that a call needed, and the condition keys it came with, in their order."""

    action: str
    resource: str
    context: tuple[tuple[str, str], ...] = ()


def patterns(call: Call) -> Iterator[Pattern]:
    """None for a call that is not the product's, or not to AWS."""
    if not any(mark in call.headers.get("user-agent", "") for mark in _MARKS) or _elsewhere(call):
        return
    if call.service == "s3":
        yield from _s3_patterns(call)
    else:
        context = {"sts:ExternalId": "EXTERNAL-ID"} if "ExternalId" in call.document else {}
        if call.document.get("namespace"):
            context = {"s3tables:namespace": "shop", "s3tables:tableName": "orders"}
        for action, resource in call.needs:
            yield Pattern(action, _resource(resource), tuple(context.items()))


def _elsewhere(call: Call) -> bool:
    """What none of our policies is about.

    A table that its catalog chose the place of; what PyIceberg reads of ours for a test, by pyarrow; and a store with
    an endpoint of its own: it alone is sent no checksums.
    """
    place = call.key or call.query.get("prefix", "")
    by_pyarrow = "aws-sdk-cpp" in call.headers.get("user-agent", "") and call.bucket == DEMO_BUCKET
    is_chosen = place.startswith(_CHOSEN) or call.bucket.endswith(TABLE_BUCKET)
    if call.service == "s3" and (is_chosen or (by_pyarrow and _destination(place, certain=False))):
        return True
    writes = call.service == "s3" and bool(call.key) and call.method in {"PUT", "POST"}
    return writes and not any("checksum" in name for name in call.headers) and b"Checksum" not in call.body


def _s3_patterns(call: Call) -> Iterator[Pattern]:
    call = replace(call, bucket=DEMO_BUCKET) if call.bucket == REPLICA else call
    context = tuple(sorted(_context(call)))
    if call.deletes_several:
        for key in deleted_keys(call):
            yield Pattern(call.action, _object(call, key), context)
    elif call.key:
        yield Pattern(call.action, _object(call, call.key), context)
    else:
        yield Pattern(call.action, _bucket(call), context)


def _context(call: Call) -> Iterable[tuple[str, str]]:
    """https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html"""
    if call.action == "s3:ListBucket" and "prefix" in call.query:
        prefix = call.query["prefix"]
        at_source = f"{DEMO_SOURCE[1]}{'/' if prefix.endswith('/') else ''}"
        yield "s3:prefix", _destination(prefix, certain=_at_destination(call)) or at_source
    if call.action == "s3:ListBucket" and "delimiter" in call.query:
        yield "s3:delimiter", call.query["delimiter"]
    if call.action == "s3:PutObject":
        staged = "uploads" in call.query or "partNumber" in call.query
        yield "s3:ObjectCreationOperation", "false" if staged else "true"
    for header in ("if-match", "if-none-match"):
        if header in call.headers:
            yield f"s3:{header}", "*" if call.headers[header] == "*" else "ETAG"


def _object(call: Call, key: str) -> str:
    there = _destination(key, certain=_at_destination(call)) if call.bucket == DEMO_BUCKET else None
    source = f"{DEMO_SOURCE[0]}/{DEMO_SOURCE[1]}/part-0.parquet"
    return f"arn:aws:s3:::{call.bucket}/{there}" if there else f"arn:aws:s3:::{source}"


def _bucket(call: Call) -> str:
    prefix = call.query.get("prefix", "")
    there = "prefix" not in call.query or _destination(prefix, certain=_at_destination(call)) is not None
    return f"arn:aws:s3:::{call.bucket if call.bucket == DEMO_BUCKET and there else DEMO_SOURCE[0]}"


def _at_destination(call: Call) -> bool:
    """Whether no source is asked this: they are only read, and listed folder by folder."""
    reads = call.action == "s3:GetObject" or (call.action == "s3:ListBucket" and "delimiter" in call.query)
    return call.bucket == DEMO_BUCKET and not reads


def _destination(key: str, *, certain: bool) -> str | None:
    """The key, or beginning of one, as the demo would have it; None outside every destination, unless it is certain."""
    if key.endswith("_lakewriter/"):
        return f"{DEMO_PREFIX}/_lakewriter/"
    if shared := _SHARED_RECORD.fullmatch(key):
        return _SHARED_RECORDS[shared[1]]
    if control := _CONTROL_KEY.fullmatch(key):
        known = (pattern.sub(text, control[2]) for pattern, text in _CONTROL if pattern.fullmatch(control[2]))
        return f"{DEMO_PREFIX}/_lakewriter/flights{control[1]}{next(known, control[2])}"
    prefix = next((prefix for prefix in _PREFIXES if f"{key}/".startswith(f"{prefix}/")), None)
    if prefix is None and not certain and not _COUNTED.fullmatch(key):
        return None
    if key == prefix:
        return DEMO_PREFIX
    below = key if prefix is None else key.removeprefix(f"{prefix}/")
    if not below:
        return f"{DEMO_PREFIX}/"
    if below.endswith(f"/{LATEST}"):
        return f"{DEMO_PREFIX}/{_DATA}/{LATEST}"
    return f"{DEMO_PREFIX}/{_DATA}/{'' if below.endswith('/') else _FILE}"


def _resource(arn: str) -> str:
    """Of other services than S3."""
    if arn == "*":
        return arn
    service, name = arn.split(":")[2], arn.split(":", 5)[5]
    kind = re.split("[:/]", name)[0]
    if service != "glue":
        return DEMO_NAMES[f"{service}:{kind}"] + ("/table/1a2b" if "/table/" in name else "")
    return f"arn:aws:glue:us-east-1:123456789012:{_in_catalog(kind, name)}"


def _in_catalog(kind: str, path: str) -> str:
    if kind != "table":
        return f"database/{DEMO_DATABASE}" if kind == "database" else path
    table = path.rpartition("/")[2]
    if table == "*":
        # A call on all tables of a database; the simulator of IAM takes one of them.
        return f"table/{DEMO_DATABASE}/EVERY"
    checked = re.sub(r"^(lakewriter_check_).*", r"\1MARK", table)
    return f"table/{DEMO_DATABASE}/{DEMO_TABLE if checked == table else checked}"
