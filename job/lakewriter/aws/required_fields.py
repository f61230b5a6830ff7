"""Treat a 200 that lacks a field the service always sends as a 500.

A proxy, a captive portal or a load balancer may answer 200 in a service's place. As a 500 the SDK retries it, and in
the end the caller gets an error of unknown outcome instead of a false success.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from xml.etree import ElementTree

FOREIGN: Final = "ForeignAnswer"
"""The error code given to a response that lacks a required field."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "s3.AbortMultipartUpload": (),
    # Rule answers-have-fields
    "s3.CompleteMultipartUpload": ("Key", "ETag"),
    "s3.CreateMultipartUpload": ("UploadId",),
    "s3.DeleteObject": (),
    "s3.GetObject": ("ETag", "ContentLength"),
    "s3.HeadObject": ("ETag", "ContentLength"),
    # IsTruncated, which S3 sends too, is left out by rclone where it is false.
    "s3.ListMultipartUploads": ("Bucket", "MaxUploads", "Uploads[].Key", "Uploads[].UploadId"),
    # KeyCount, which S3 sends too, is left out by older Ceph.
    "s3.ListObjectsV2": ("Name", "IsTruncated", "Contents[].Key", "Contents[].ETag", "Contents[].LastModified"),
    "s3.PutObject": ("ETag",),
    "s3.UploadPart": ("ETag",),
    "glue.BatchCreatePartition": (),
    "glue.CreateDatabase": (),
    "glue.CreateTable": (),
    "glue.CreateTableOptimizer": (),
    "glue.GetDatabase": ("Database.Name",),
    "glue.GetPartition": ("Partition.Values",),
    "glue.GetPartitions": ("Partitions", "Partitions[].Values"),
    # Without a version id the next UpdateTable would overwrite the changes of others.
    "glue.GetTableOptimizer": ("TableOptimizer",),
    "glue.GetTable": ("Table.Name", "Table.VersionId"),
    "glue.UpdateTable": (),
    "glue.UpdateTableOptimizer": (),
    "glue.DeleteTableOptimizer": (),
    "sts.AssumeRole": (
        "Credentials.AccessKeyId",
        "Credentials.SecretAccessKey",
        "Credentials.SessionToken",
        "Credentials.Expiration",
    ),
    "sts.GetCallerIdentity": ("Arn",),
    "iam.GetPolicy": ("Policy.DefaultVersionId",),
    "iam.GetPolicyVersion": ("PolicyVersion.Document",),
    "iam.GetRole": ("Role.Arn",),
    "iam.GetRolePolicy": ("PolicyDocument",),
    "iam.ListAttachedRolePolicies": ("AttachedPolicies",),
    "iam.ListRolePolicies": ("PolicyNames",),
    "secrets-manager.GetSecretValue": ("ARN",),
    "ssm.GetParameter": ("Parameter.Value",),
}
"""Maps an operation to the fields that AWS and S3-compatible stores always send; ``x[].y`` is required of each item."""

_NEXT: Final = {
    "s3.ListObjectsV2": ("NextContinuationToken",),
    # SeaweedFS sends the second alone.
    "s3.ListMultipartUploads": ("NextKeyMarker", "NextUploadIdMarker"),
}
"""A truncated listing needs one of these: without any the SDK would take the page for the last one."""

_WITHOUT_BODY: Final = frozenset({"s3.AbortMultipartUpload", "s3.DeleteObject", "s3.PutObject", "s3.UploadPart"})


def require_fields(client: Any) -> None:
    """Make a client of the SDK treat responses without their required fields as a 500."""
    service = client.meta.service_model.service_id.hyphenize()
    client.meta.events.register_first(f"before-parse.{service}.*", _refuse_unreadable)
    # Registered per operation, so that it runs before the SDK's own retry handler, which is registered per service.
    client.meta.events.register_first(f"needs-retry.{service}.*", _refuse_incomplete)


def _refuse_unreadable(
    operation_model: Any, response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Refuse a body that is not in the service's protocol: the parser would raise, or take it for an empty response."""
    status = response_dict["status_code"]
    if status < 300 and not _is_readable(operation_model, status, response_dict["body"]):
        response_dict |= {"status_code": 500, "body": b""}
        customized_response_dict["Error"] = _make_error(status, f"a body of {operation_model.name}")


def _is_readable(operation_model: Any, status: int, body: Any) -> bool:
    protocol = operation_model.service_model.resolved_protocol
    try:
        if protocol == "json":
            return isinstance(json.loads(body), dict)
        if protocol == "query":
            return str(ElementTree.fromstring(body).tag).endswith(f"{operation_model.name}Response")
        # The SDK itself checks the body of a 200.
        if status != 200 and body and not operation_model.has_streaming_output:
            ElementTree.fromstring(body)
    except (ValueError, ElementTree.ParseError):
        return False
    return True


def _refuse_incomplete(response: Any, operation: Any, request_dict: Mapping[str, Any], **_: Any) -> None:
    if response is None or response[0].status_code >= 300:
        return
    http, parsed = response
    if "Error" not in parsed:
        name = f"{operation.service_model.service_id.hyphenize()}.{operation.name}"
        ranged = any(header.lower() == "range" for header in request_dict.get("headers", ()))
        missing = ", ".join(_find_missing(name, http, parsed, ranged=ranged))
        if not missing:
            return
        parsed["Error"] = _make_error(http.status_code, missing)
    if operation.has_streaming_output and "Body" in parsed:
        parsed["Body"].close()
    parsed.setdefault("ResponseMetadata", {})["HTTPStatusCode"] = http.status_code = 500


def _make_error(status: int, missing: str) -> dict[str, str]:
    return {"Code": FOREIGN, "Message": f"HTTP {status} without {missing}: something else answered in its place"}


def _find_missing(name: str, http: Any, parsed: Mapping[str, Any], *, ranged: bool) -> Iterator[str]:
    for path in REQUIRED.get(name, ()):
        items, _, field = path.rpartition("[].")
        if items:
            has = all(item.get(field) is not None for item in parsed.get(items) or ())
        else:
            has = _look_up(parsed, path) not in (None, "")
        if not has:
            yield path
    if parsed.get("IsTruncated") is True and name in _NEXT and not any(map(parsed.get, _NEXT[name])):
        yield _NEXT[name][0]
    if name in _WITHOUT_BODY and http.content:
        yield "an empty body"
    if name == "s3.GetObject" and ranged and not parsed.get("ContentRange"):
        yield "ContentRange"


def _look_up(parsed: Any, path: str) -> Any:
    for field in path.split("."):
        parsed = parsed.get(field) if isinstance(parsed, Mapping) else None
    return parsed
