"""One HTTP request to the embedded AWS, read as the IAM action it needs, and the answers it can get."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl
from xml.sax.saxutils import escape

from werkzeug.wsgi import get_input_stream

ACCOUNT: Final = "123456789012"
"""The only account; moto's default."""

TABLE_BUCKET: Final = "--table-s3"
"""Ends the names of the buckets that Amazon S3 Tables makes for tables."""

BYPASS: Final = "x-test-bypass"
"""Requests with this header are the test's own: nothing is corrected, denied or recorded."""

_QUERY: Final = ("iam", "sts")
"""Services whose requests are forms and whose answers are XML."""

_JSON: Final = ("glue", "secretsmanager", "ssm")
"""Services whose requests and answers are JSON, the operation in a header."""

_S3_TABLES: Final = "s3tables"
_TABLE_PATH: Final = re.compile(
    r"/(bucket|table)s/(arn:[^/]+/[^/]+)(?:/([0-9a-z_]+)/([0-9a-z_]+))?(/maintenance)?(?:/(\w+))?"
)
"""https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_S3_Tables.html"""

# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
_BUCKET_ACTIONS: Final = {
    ("GET", "uploads"): "ListBucketMultipartUploads",
    ("GET", "location"): "GetBucketLocation",
    ("GET", "lifecycle"): "GetLifecycleConfiguration",
    ("GET", "versioning"): "GetBucketVersioning",
    ("GET", "versions"): "ListBucketVersions",
    ("GET", "policy"): "GetBucketPolicy",
    ("GET", "encryption"): "GetEncryptionConfiguration",
    ("GET", "requestPayment"): "GetBucketRequestPayment",
    ("GET", ""): "ListBucket",
    ("HEAD", ""): "ListBucket",
    ("PUT", "lifecycle"): "PutLifecycleConfiguration",
    ("DELETE", "lifecycle"): "PutLifecycleConfiguration",
    ("PUT", "versioning"): "PutBucketVersioning",
    ("PUT", "policy"): "PutBucketPolicy",
    ("PUT", ""): "CreateBucket",
    ("DELETE", ""): "DeleteBucket",
    ("POST", "delete"): "DeleteObject",
}
_OBJECT_ACTIONS: Final = {
    ("GET", "uploadId"): "ListMultipartUploadParts",
    ("GET", "versionId"): "GetObjectVersion",
    ("GET", "tagging"): "GetObjectTagging",
    ("GET", ""): "GetObject",
    ("HEAD", "versionId"): "GetObjectVersion",
    ("HEAD", ""): "GetObject",
    ("PUT", "tagging"): "PutObjectTagging",
    ("PUT", "acl"): "PutObjectAcl",
    ("PUT", ""): "PutObject",
    ("POST", ""): "PutObject",
    ("DELETE", "uploadId"): "AbortMultipartUpload",
    ("DELETE", "versionId"): "DeleteObjectVersion",
    ("DELETE", ""): "DeleteObject",
}


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, whole."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The header's value, whatever the name's case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def with_header(self, name: str, value: str) -> "Answer":
        """The same answer with the header set once."""
        kept = tuple(pair for pair in self.headers if pair[0].lower() != name.lower())
        return replace(self, headers=(*kept, (name, value)))

    def with_body(self, body: bytes) -> "Answer":
        """The same answer with another body."""
        return replace(self, body=body).with_header("Content-Length", str(len(body)))


@dataclass(frozen=True)
class Call:
    """A request; ``resources`` are the ARNs its action is checked on, the most specific first.

    ``query`` has the last value of each parameter; ``document`` is the parsed JSON or form body of Glue and STS.
    """

    service: str
    action: str
    resources: tuple[str, ...]
    method: str
    region: str
    access_key: str
    bucket: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = field(repr=False)
    document: dict[str, Any] = field(repr=False)
    also: tuple[tuple[str, str], ...] = ()
    """Further ``(action, resource)`` pairs that the request needs: the source of a copy."""

    @property
    def resource(self) -> str:
        """The most specific ARN."""
        return self.resources[0]

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """All ``(action, resource)`` pairs that must be allowed."""
        return (*((self.action, resource) for resource in self.resources), *self.also)

    @property
    def deletes_several(self) -> bool:
        """Whether it is a ``DeleteObjects``; its ``resource`` is the bucket then."""
        return self.action == "s3:DeleteObject" and not self.key

    def denied(self, message: str = "Access Denied") -> Answer:
        """The refusal of a policy."""
        if self.service in _JSON:
            return self.error(400, "AccessDeniedException", message)
        return self.error(403, "AccessDenied", message)

    def error(self, status: int, code: str, message: str) -> Answer:
        """An error as this call's service words it."""
        if self.service in (*_JSON, _S3_TABLES):
            return _json_error(status, code, message)
        if self.service in _QUERY:
            return _query_error(status, code, message)
        return _s3_error(self, status, code, message)


def read_call(environ: dict[str, Any]) -> Call:
    """The call in a WSGI request; its body is consumed."""
    headers = {k[5:].replace("_", "-").lower(): v for k, v in environ.items() if k.startswith("HTTP_")}
    body = get_input_stream(environ).read()
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    access_key, region, service = _scope(headers.get("authorization", ""))
    common: dict[str, Any] = {
        "service": service,
        "method": environ["REQUEST_METHOD"],
        "region": region,
        "access_key": access_key,
        "query": query,
        "headers": headers,
        "body": body,
    }
    if service in _JSON:
        return _json_call(common)
    if service in _QUERY:
        return _query_call(common)
    path = environ["PATH_INFO"].encode("latin-1").decode()
    return _s3_tables_call(common, path) if service == _S3_TABLES else _s3_call(common, path)


def make_glue_call(operation: str, document: dict[str, Any], access_key: str) -> Call:
    """Make the call of Glue that a request to its Iceberg REST endpoint stands for."""
    headers = {"x-amz-target": f"AWSGlue.{operation}", "user-agent": "lakewriter"}
    body = json.dumps(document).encode()
    common: dict[str, Any] = {"service": "glue", "method": "POST", "region": "us-east-1", "access_key": access_key}
    return _json_call(common | {"query": {}, "headers": headers, "body": body})


def glue_arn(region: str, path: str) -> str:
    """The ARN of something in the Data Catalog, such as ``table/db/t``."""
    return f"arn:aws:glue:{region}:{ACCOUNT}:{path}"


def _scope(authorization: str) -> tuple[str, str, str]:
    scope = authorization.partition("Credential=")[2].partition(",")[0].split("/")
    return (scope[0], scope[2], scope[3]) if len(scope) == 5 else ("", "", "s3")


def _s3_call(common: dict[str, Any], path: str) -> Call:
    bucket, _, key = path.lstrip("/").partition("/")
    method, query = common["method"], common["query"]
    if not bucket:
        action, resources = "ListAllMyBuckets", ("*",)
    else:
        table = _OBJECT_ACTIONS if key else _BUCKET_ACTIONS
        named = [table[method, name] for name in query if (method, name) in table]
        action = named[0] if named else table.get((method, ""), "Unknown")
        resources = (f"arn:aws:s3:::{bucket}/{key}" if key else f"arn:aws:s3:::{bucket}",)
    source = common["headers"].get("x-amz-copy-source", "").lstrip("/")
    also = (("s3:GetObject", f"arn:aws:s3:::{source}"),) if source else ()
    return Call(action=f"s3:{action}", resources=resources, bucket=bucket, key=key, document={}, also=also, **common)


def _s3_tables_call(common: dict[str, Any], path: str) -> Call:
    """Read a call on one table bucket, or on one of its tables, whose ARN has an id; others are moto's."""
    found = _TABLE_PATH.fullmatch(path)
    if found is None:
        return Call(action="s3tables:Unknown", resources=("*",), bucket="", key="", document={}, **common)
    kind, arn, namespace, name, upkeep, of = found.groups()
    of_bucket = "Bucket" if kind == "bucket" else ""
    action = f"s3tables:{common['method'].capitalize()}Table{of_bucket}{'MaintenanceConfiguration' if upkeep else ''}"
    document = {"arn": arn, "namespace": namespace, "name": name, "type": of}
    document |= json.loads(common["body"] or b"{}")
    resources = (f"{arn}/table/1a2b" if name else arn,)
    return Call(action=action, resources=resources, bucket="", key="", document=document, **common)


def _json_call(common: dict[str, Any]) -> Call:
    service, operation = common["service"], common["headers"].get("x-amz-target", "").rpartition(".")[2]
    document = json.loads(common["body"] or b"{}")
    if service == "glue":
        resources = tuple(glue_arn(common["region"], path) for path in _glue_paths(operation, document))
    else:
        resources = (_named_arn(common, document),)
    return Call(action=f"{service}:{operation}", resources=resources, bucket="", key="", document=document, **common)


def _named_arn(common: dict[str, Any], document: dict[str, Any]) -> str:
    """The ARN of a secret or parameter, from its name or from itself."""
    name = str(document.get("SecretId") or document.get("Name") or "*")
    kind = "parameter/" if common["service"] == "ssm" else "secret:"
    whole = f"arn:aws:{common['service']}:{common['region']}:{ACCOUNT}:{kind}{name.lstrip('/')}"
    return name if name.startswith("arn:") else whole


def _glue_paths(operation: str, document: dict[str, Any]) -> list[str]:
    """What a Data Catalog call is checked on: the thing itself and everything above it."""
    inner = document.get("TableInput") or document.get("DatabaseInput") or {}
    name = str(document.get("Name") or inner.get("Name") or "").lower()
    database = str(document.get("DatabaseName") or "").lower()
    if not database:
        return ["catalog"] if operation == "GetDatabases" or not name else [f"database/{name}", "catalog"]
    table = str(document.get("TableName") or "").lower() or name
    if operation == "GetTables":
        table = "*"
    return [f"table/{database}/{table}", f"database/{database}", "catalog"]


def _query_call(common: dict[str, Any]) -> Call:
    document = {name: values[-1] for name, values in parse_qs(common["body"].decode()).items()}
    role = f"arn:aws:iam::{ACCOUNT}:role/{document['RoleName']}" if "RoleName" in document else "*"
    resource = document.get("RoleArn") or document.get("PolicyArn") or role
    action = f"{common['service']}:{document.get('Action', '')}"
    return Call(action=action, resources=(resource,), bucket="", key="", document=document, **common)


def _json_error(status: int, code: str, message: str) -> Answer:
    body = json.dumps({"__type": code, "Message": message}).encode()
    return Answer(status, (("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-ErrorType", code))).with_body(body)


def _query_error(status: int, code: str, message: str) -> Answer:
    body = (
        '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>{escape(message)}</Message></Error><RequestId>0</RequestId></ErrorResponse>"
    )
    return Answer(status, (("Content-Type", "text/xml"),)).with_body(body.encode())


def _s3_error(call: Call, status: int, code: str, message: str) -> Answer:
    headers = (("Content-Type", "application/xml"), ("x-amz-request-id", "0"))
    if call.method == "HEAD":
        return Answer(status, headers)
    body = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{escape(message)}</Message>'
        f"<Resource>{escape(call.key or call.bucket)}</Resource><RequestId>0</RequestId></Error>"
    )
    return Answer(status, headers).with_body(body.encode())
