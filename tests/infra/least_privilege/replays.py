"""What each vendor's connector calls, in its order, and what none of them may do: tables of calls, and stacks for them.

Sources, by vendor:

* Supaflow: its set-up pages (S3, S3 Data Lake): the two policy documents, step 1 and 2, are all that is known of its
  calls; "First-run safety check", "Append-Only Write Semantics", "Reset operations" order them.
* Airbyte: airbytehq/airbyte, destination-s3 ``S3V2Checker.kt`` (upload ``_EXAMPLE`` below the directory of the stream
  ``testing.test``, list, delete, list) and the bulk CDK's ``S3Client.kt`` (ListObjectsV2, HeadObject, GetObject,
  CreateMultipartUpload, DeleteObject, CopyObject); its page's policy document for what an older release asks for.
* Hero Pixel: its page's policy document, and the older checks it shares with Airbyte's legacy ``S3BaseChecks.java``
  (``test_{millis}`` put and deleted, singly and as an upload of parts).
* Estuary: estuary/connectors, ``filesink/store_s3.go`` (CreateMultipartUpload, UploadPart, CompleteMultipartUpload).
* Snowflake: docs.snowflake.com/en/user-guide/tables-iceberg-configure-external-volume-s3, its policy document.

Which call asks for which action: https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html
and https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsglue.html
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.infra.destination.airbyte import file
from tests.infra.destination.lakes import lake
from tests.policy.estuary import content
from tests.policy.test_iceberg import OPEN_CATALOG

Call = tuple[str, str, dict[str, str]]
"""Action, resource, context."""

ACCOUNT = "123456789012"
BUCKET = "arn:aws:s3:::acme-lake"
GLUE = f"arn:aws:glue:us-east-1:{ACCOUNT}"
CREATED = {"s3:ObjectCreationOperation": "true"}
NEW = CREATED | {"s3:if-none-match": "*"}
PART = {"s3:ObjectCreationOperation": "false"}
ID = "acme-2026"

SUPAFLOW: dict[str, Any] = {"vendor": "supaflow", "external_id": ID}
ICEBERG = {"table_format": "ICEBERG", "update_aws_glue_catalog": None}


def without_none(content: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in content["destination"].items() if value is not None}
    return content | {"destination": kept, "deployment": {"account": ACCOUNT} | content["deployment"]}


LAKES: dict[str, dict[str, Any]] = {
    "supaflow": lake({"trust": [SUPAFLOW | {"tables": ["supaflow_crm.*"]}], "allow_reset": True}),
    "supaflow-paths": lake({"trust": [SUPAFLOW | {"paths": ["supaflow"], "databases": ["supaflow_*"]}]}),
    "supaflow-shared": lake({"trust": [SUPAFLOW]}),
    "supaflow-iceberg": lake({"trust": [SUPAFLOW | {"tables": ["supaflow_crm.*"]}]}, **ICEBERG),
    "airbyte": file("airbyte", trust=[{"vendor": "airbyte-cloud", "external_id": ID, "paths": ["/airbyte"]}]),
    "heropixel": file("heropixel", iam_user={"paths": ["/heropixel"]}),
    "estuary": content(top={"deployment": {"iam_user": {"paths": ["recentchanges"]}}}),
    "snowflake": lake({}, **OPEN_CATALOG),
}
ROLES = {
    "supaflow": "SupaflowConsumerRole",
    "supaflow-paths": "SupaflowConsumerRole",
    "supaflow-shared": "SupaflowConsumerRole",
    "supaflow-iceberg": "SupaflowConsumerRole",
    "airbyte": "AirbyteCloudConsumerRole",
    "heropixel": "VendorUser",
    "estuary": "VendorUser",
    "snowflake": "SnowflakeComputeConsumerRole",
    "snowflake-catalog": "SnowflakeCatalogConsumerRole",
}
"""By replay: the logical id of the role or user; the file is that before the replay's last hyphen, if it has none."""


def on(key: str, *actions: str, **context: str) -> Iterator[Call]:
    yield from ((f"s3:{action}", f"{BUCKET}/{key}", context) for action in actions)


def listing(prefix: str, **context: str) -> Call:
    return "s3:ListBucket", BUCKET, {"s3:prefix": prefix, **context}


def upload(key: str) -> Iterator[Call]:
    """CreateMultipartUpload, UploadPart and CompleteMultipartUpload: the last one alone creates an object."""
    for context in (PART, PART, CREATED):
        yield "s3:PutObject", f"{BUCKET}/{key}", context


def catalogued(action: str, database: str, table: str = "") -> Iterator[Call]:
    """Glue asks for the catalog, the database and the table of a call."""
    places = ["catalog", f"database/{database}", *([f"table/{database}/{table}"] if table else [])]
    yield from ((f"glue:{action}", f"{GLUE}:{place}", {}) for place in places)


def supaflow(root: str, *, iceberg: bool = False, reset: bool = False) -> list[Call]:
    """Its pages' documents but for what is withheld, in the order of a first run."""
    key = f"{root}supaflow_crm/contact/2027/01/04/06/part-1.gzip.parquet"
    calls: list[Call] = [("s3:GetBucketLocation", BUCKET, {}), ("s3:ListBucketMultipartUploads", BUCKET, {})]
    if iceberg:
        calls += [(f"glue:{action}", f"{GLUE}:catalog", {}) for action in ("GetCatalog", "GetCatalogs")]
    calls += [
        ("glue:GetCatalogImportStatus", f"{GLUE}:catalog", {}),
        # the first run's check that the table's path is empty
        listing(f"{root}supaflow_crm/contact/"),
        *upload(key),
        *on(key, "ListMultipartUploadParts", "AbortMultipartUpload", "GetObject", "GetObjectAcl", "PutObjectAcl"),
        *on(key, "PutObjectTagging", "DeleteObjectTagging", "DeleteObject"),
    ]
    for action in ("GetDatabases", "GetDatabase", "CreateDatabase", "UpdateDatabase"):
        calls += catalogued(action, "supaflow_crm")
    for action in ("GetTables", "GetTable", "CreateTable", "UpdateTable"):
        calls += catalogued(action, "supaflow_crm", "contact")
    if not iceberg:
        for action in ("GetPartition", "GetPartitions", "CreatePartition", "BatchCreatePartition"):
            calls += catalogued(action, "supaflow_crm", "contact")
    if reset:
        calls += catalogued("DeleteTable", "supaflow_crm", "contact")
        calls += [
            *catalogued("BatchDeleteTable", "supaflow_crm", "contact"),
            *catalogued("DeleteDatabase", "supaflow_crm"),
        ]
    return calls


def airbyte(root: str) -> list[Call]:
    check, key = f"{root}testing/test/2027_01_04_1798754400000_", f"{root}crm/users/2027_01_04_1798754400000_0.parquet"
    return [
        # check
        *upload(f"{check}/_EXAMPLE"), listing(check), *on(f"{check}/_EXAMPLE", "DeleteObject"), listing(check),
        # sync: what is there, its generation from its metadata, the new files, then the old generation goes
        listing(f"{root}crm/users/"), *on(key, "GetObject"), *upload(key), *on(key, "AbortMultipartUpload"),
        *on(key, "DeleteObject"),
        # its page's document
        *on(key, "PutObjectAcl"), ("s3:ListBucketMultipartUploads", BUCKET, {}), ("s3:GetBucketLocation", BUCKET, {}),
    ]  # fmt: skip


def heropixel(root: str) -> list[Call]:
    test, key = f"{root}test_1798754400000", f"{root}crm/users/2027_01_04_1798754400000_0.csv.gz"
    return [
        # check, single and in parts
        *on(test, "PutObject", **CREATED), *on(test, "DeleteObject"), *upload(test), *on(test, "DeleteObject"),
        *on(test, "AbortMultipartUpload"), ("s3:GetBucketLocation", BUCKET, {}), listing(root),
        # a full refresh: old files are purged first
        listing(f"{root}crm/users/"), *on(key, "DeleteObject"), *upload(key), *on(key, "PutObjectAcl", "GetObject"),
        ("s3:ListBucketMultipartUploads", BUCKET, {}),
    ]  # fmt: skip


def snowflake(root: str, *, writes: bool) -> list[Call]:
    key = f"{root}postgres_public/events/metadata/00001-a.metadata.json"
    reads = [*on(key, "GetObject", "GetObjectVersion")]
    base: list[Call] = [("s3:GetBucketLocation", BUCKET, {}), listing(root), listing(f"{root}postgres_public/"), *reads]
    return [*base, *on(key, "PutObject", **CREATED), *on(key, "DeleteObject")] if writes else base


REPLAYS: Mapping[str, list[Call]] = {
    "supaflow": supaflow("data/production/", reset=True),
    "supaflow-paths": supaflow("data/production/supaflow/"),
    "supaflow-shared": supaflow("data/production/"),
    "supaflow-iceberg": supaflow("data/production/", iceberg=True),
    "airbyte": airbyte("airbyte/"),
    "heropixel": heropixel("heropixel/"),
    "estuary": [*upload("recentchanges/v0000000000/00000000000000000001.parquet")],
    "snowflake": snowflake("data/production/", writes=False),
    "snowflake-catalog": snowflake("data/production/", writes=True),
}

WAYS_OUT: list[tuple[str, Call, str]] = [
    # Documented or sent by an old release, and refused: the replay, the call, the way out (docs/guide-deploy.md).
    ("supaflow", ("s3:ReplicateObject", f"{BUCKET}/data/production/supaflow_crm/x", {}), "no connector calls it"),
    ("supaflow", ("s3:DeleteObjectVersion", f"{BUCKET}/data/production/supaflow_crm/x", {}), "vendor_verbatim"),
    ("supaflow-shared", listing("data/production/"), "tables or paths"),
    ("supaflow-paths", ("glue:DeleteTable", f"{GLUE}:table/supaflow_crm/contact", {}), "allow_reset"),
    ("airbyte", ("s3:ListBucket", BUCKET, {}), "a release of 2024 or later, or vendor_verbatim"),
    ("heropixel", ("s3:ListBucket", BUCKET, {}), "vendor_verbatim"),
]

JOBS_FILES = {
    "supaflow": "data/production/supaflow_nyc_public/flights/2027/01/04/06/part-JOB-00001.gzip.parquet",
    "airbyte": "data/crm/users/2027_0.parquet",
    "heropixel": "data/visits/2027_0.parquet",
    "estuary": "changes/v0000000000/00000000000000000001.parquet",
}
PREFIXES = {
    "supaflow": "data/production/",
    "airbyte": "data/",
    "heropixel": "data/",
    "estuary": "",
    "snowflake": "data/production/",
}
CHANGES = (
    "CreateTable", "UpdateTable", "DeleteTable", "BatchDeleteTable", "CreatePartition", "BatchCreatePartition",
    "UpdatePartition", "DeletePartition", "BatchDeletePartition", "DeleteTableVersion",
)  # fmt: skip
SETTINGS = (
    "PutBucketPolicy", "DeleteBucketPolicy", "PutLifecycleConfiguration", "PutBucketVersioning", "PutBucketAcl",
    "PutEncryptionConfiguration", "DeleteBucket", "PutBucketPublicAccessBlock",
)  # fmt: skip


def list_attempts(replay: str) -> Iterator[Call]:
    """What no party of that replay may do."""
    vendor = replay.partition("-")[0]
    yield from _list_attempts_on_records(vendor)
    yield from ((f"s3:{action}", BUCKET, {}) for action in SETTINGS)
    yield "s3:GetObject", "arn:aws:s3:::acme-lake-2/x", {}
    yield "s3:PutObject", "arn:aws:s3:::acme-lake-2/x", NEW
    role = f"arn:aws:iam::{ACCOUNT}:role/JobRole"
    yield "sts:AssumeRole", role, {}
    yield "iam:PassRole", role, {"iam:PassedToService": "emr-serverless.amazonaws.com"}
    if vendor in JOBS_FILES:
        # a file of the job's, there or new, with every precondition
        job = JOBS_FILES[vendor]
        yield from on(job, "GetObject", "DeleteObject", "PutObjectAcl", "PutObjectTagging", "AbortMultipartUpload")
        yield from (call for context in (NEW, CREATED, PART) for call in on(job, "PutObject", **context))
    if vendor == "supaflow":
        yield from _list_attempts_on_tables()


def _list_attempts_on_records(vendor: str) -> Iterator[Call]:
    """This pipeline's records, and those of another pipeline of the same bucket."""
    prefix = PREFIXES[vendor]
    records = f"{prefix}_lakewriter/pipeline/"
    for key in (f"{records}tables/t/state.json", "elsewhere/_lakewriter/other/loads/J/report.json"):
        yield from on(key, "GetObject", "DeleteObject", "GetObjectVersion", "AbortMultipartUpload")
        yield from on(key, "PutObject", **NEW)
    if vendor != "snowflake":
        for listed in (records, records.rstrip("/"), f"{prefix}_lakewriter"):
            yield listing(listed)
            yield listing(listed, **{"s3:delimiter": "/"})


def _list_attempts_on_tables() -> Iterator[Call]:
    yield from ((f"glue:{action}", f"{GLUE}:table/supaflow_nyc_public/flights", {}) for action in CHANGES)
    for action in ("UpdateDatabase", "DeleteDatabase"):
        yield f"glue:{action}", f"{GLUE}:database/supaflow_nyc_public", {}
    yield "glue:CreateTable", f"{GLUE}:table/supaflowevil/t", {}
    for part in ("data/00000-0.parquet", "metadata/00001-a.metadata.json"):
        yield from on(f"data/production/supaflow_nyc_public/flights/{part}", "PutObject", **CREATED)


def find_lake(replay: str) -> str:
    return replay if replay in LAKES else replay.rpartition("-")[0]
