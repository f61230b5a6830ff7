"""moto's answers of S3 and Glue with less work for each: requests take most of what a small load takes.

moto takes most of a request's time to route it through Flask and to read it, of which S3 and Glue need little. A plain
read of an object and a listing are made of moto's own objects here; everything else is moto's own, called directly.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape

from botocore.exceptions import ClientError
from moto.glue.responses import GlueResponse
from moto.moto_server.werkzeug_app import BackendRequest
from moto.s3.models import FakeKey, s3_backends
from moto.s3.responses import S3Response

from tests.support.call import Answer, Call

_CONDITIONS: Final = ("range", "origin", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
"""With one of these headers a read is not plain."""
_LISTS: Final = {
    *("list-type", "prefix", "delimiter", "max-keys", "start-after", "continuation-token", "encoding-type"),
}
_NO_CONTENT: Final = 204
_TYPELESS: Final = "text/html; charset=utf-8"
"""What Flask says of an answer whose type moto does not say."""
_XML: Final = "application/xml"


def ask_quickly(call: Call) -> Answer | None:
    """Return moto's answer to a plain read or listing; None where moto itself is to be asked."""
    if call.service != "s3" or call.method not in {"GET", "HEAD"} or call.bucket not in s3_backends.bucket_accounts:
        return None
    partition, account = s3_backends.bucket_accounts[call.bucket]
    backend = s3_backends[account][partition]
    bucket = backend.buckets.get(call.bucket)
    if bucket is None or bucket.policy is not None or bucket.is_versioned:
        return None
    if call.key:
        return None if call.query or any(name in call.headers for name in _CONDITIONS) else _read(call, backend)
    is_list = call.query.get("list-type") == "2" and call.method == "GET" and call.query.keys() <= _LISTS
    is_list = is_list and call.query.get("continuation-token") != ""
    return _list(call, backend, bucket) if is_list else None


def ask_directly(call: Call, environ: dict[str, Any]) -> Answer | None:
    """Return moto's answer without Flask; None for other services than S3 and Glue."""
    dispatch: Callable[..., Any]
    if call.service == "glue":
        dispatch = GlueResponse.dispatch
    elif call.service == "s3" and call.bucket:
        dispatch = S3Response.key_dispatch if call.key else S3Response.ambiguous_dispatch
    else:
        return None
    request = BackendRequest(environ)
    try:
        found = dispatch(request, request.raw_url, dict(request.headers))
    except ClientError as error:
        found = 400, {}, error.response["Error"]["Message"]
    status, headers, body = found if len(found) == 3 else (200, {}, found)
    return _answer(call, int(status), headers.items(), body.encode() if isinstance(body, str) else bytes(body or b""))


def _answer(call: Call, status: int, headers: Iterable[tuple[str, Any]], body: bytes) -> Answer:
    pairs = {name.lower(): (name, str(value)) for name, value in headers}
    pairs.setdefault("content-type", ("Content-Type", _TYPELESS))
    if status == _NO_CONTENT:
        pairs.pop("content-length", None)
    elif call.method != "HEAD" or "content-length" not in pairs:
        pairs["content-length"] = "Content-Length", str(len(body))
    return Answer(status, tuple(pairs.values()), b"" if call.method == "HEAD" else body)


def _read(call: Call, backend: Any) -> Answer | None:
    key = backend.get_object(call.bucket, call.key)
    if not isinstance(key, FakeKey) or key.storage_class != "STANDARD":
        return None
    headers = {**key.response_dict, **key.metadata, "Accept-Ranges": "bytes"}
    if call.headers.get("x-amz-checksum-mode") == "ENABLED" and key.checksum_algorithm:
        if key.checksum_type:
            return None
        headers[f"x-amz-checksum-{key.checksum_algorithm.lower()}"] = key.checksum_value
    body = b"" if call.method == "HEAD" else key.value
    if body and "content-type" not in headers:
        headers["content-type"] = _XML
    return _answer(call, 200, headers.items(), body)


def _list(call: Call, backend: Any, bucket: Any) -> Answer:
    query = call.query
    prefix, delimiter, token = query.get("prefix"), query.get("delimiter"), query.get("continuation-token")
    most, start = int(query.get("max-keys", 1000)), query.get("start-after")
    found, is_truncated, next_token = backend.list_objects_v2(
        bucket=bucket, prefix=prefix, delimiter=delimiter, continuation_token=token, start_after=start, max_keys=most
    )
    shown: Callable[[str], str] = quote if query.get("encoding-type") == "url" else str
    lines = [
        *_tags(Name=bucket.name, Prefix=shown(prefix or ""), MaxKeys=most, KeyCount=len(found)),
        *_tags(IsTruncated=str(is_truncated).lower(), Delimiter=delimiter, EncodingType=query.get("encoding-type")),
        *_tags(NextContinuationToken=next_token, StartAfter=None if token else start),
    ]
    for each in found:
        if isinstance(each, FakeKey):
            algorithm = each.checksum_algorithm
            own = _tags(
                Key=shown(each.name),
                LastModified=each.last_modified_ISO8601,
                ETag=each.etag,
                Size=each.size,
                StorageClass=each.storage_class,
                ChecksumAlgorithm=algorithm or None,
            )
            lines += ["<Contents>", *own, "</Contents>"]
        else:
            lines += ["<CommonPrefixes>", *_tags(Prefix=shown(each)), "</CommonPrefixes>"]
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult>{"".join(lines)}</ListBucketResult>'
    return _answer(call, 200, [("Content-Type", _XML)], body.encode())


def _tags(**values: Any) -> Iterable[str]:
    return (f"<{name}>{escape(str(value))}</{name}>" for name, value in values.items() if value is not None)
