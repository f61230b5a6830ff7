"""From what AWS answered to an error a user can act on."""

from collections.abc import Mapping
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
)
from botocore.exceptions import ConnectionError as SdkConnectionError

from lakewriter.errors import (
    BucketNotFoundError,
    BucketRegionMismatchError,
    GlueAccessDeniedError,
    LakeError,
    NoAnswerError,
    RoleNotAssumableError,
    S3AccessDeniedError,
)
from lakewriter.spec.access import Access

_DENIED: Final = {
    "AccessDenied",
    "AccessDeniedException",
    "AllAccessDisabled",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidToken",
    "SignatureDoesNotMatch",
    "UnauthorizedOperation",
    "UnrecognizedClientException",
    "403",
}
_PASSING: Final = {
    "ConcurrentModificationException",
    "ConditionalRequestConflict",
    "OperationAborted",
    "OperationTimeoutException",
    "RequestLimitExceeded",
    "RequestTimeout",
    "ResourceNotReadyException",
    "SlowDown",
}
ELSEWHERE: Final = {
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "TemporaryRedirect",
    "301",
    "307",
}

ROLE_REMEDY: Final = (
    "Check that the ARN is complete and the role exists; that its trust policy names the principal that assumes it; "
    "and that sts:ExternalId there equals external_id to the letter (case counts, no spaces around it)."
)
S3_REMEDY: Final = (
    "Check the S3 policy of the role (bucket name and prefix in it), the bucket's own policy, its KMS key, "
    "and that the bucket is not Requester Pays."
)
GLUE_REMEDY: Final = (
    "Check that the Glue policy is attached to the role, names this region and account, and that its database "
    "prefix matches glue_database_prefix; where Lake Formation governs the catalog, grant there too."
)
TIME_OUT_REMEDY: Final = "Check bucket_region and the network path, and try again."


def explain(error: ClientError | BotoCoreError, *, doing: str, access: Access) -> LakeError:
    """The error to raise for ``error``; ``doing`` is the call, as IAM names it, with what it was called on."""
    if isinstance(error, ClientError):
        return _explain_answer(error, doing, access)
    if isinstance(error, NoCredentialsError):
        return S3AccessDeniedError(
            f"no AWS credentials for {doing}.",
            remedy="Configure credentials: a profile, environment variables, or the job's role.",
        )
    if isinstance(error, SdkConnectionError | HTTPClientError):
        return NoAnswerError(f"{doing}: no answer ({_brief(error)}).", remedy=TIME_OUT_REMEDY)
    if doing.startswith("sts:AssumeRole"):
        return RoleNotAssumableError(f"{doing} on {access.role_arn}: {_brief(error)}.", remedy=ROLE_REMEDY)
    return S3AccessDeniedError(f"{doing}: {_brief(error)}.")


def _explain_answer(error: ClientError, doing: str, access: Access) -> LakeError:
    details: Mapping[str, object] = error.response.get("Error", {})
    code = str(details.get("Code", ""))
    said = f"{code}: {str(details.get('Message', '')).rstrip('.')}".strip(": ")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if doing.startswith("sts:AssumeRole"):
        if _passing(code, status):
            return NoAnswerError(f"{doing} on {access.role_arn}: {said}.", remedy=TIME_OUT_REMEDY)
        return RoleNotAssumableError(f"{doing} on {access.role_arn} was refused ({said}).", remedy=ROLE_REMEDY)
    if code == "NoSuchBucket":
        return BucketNotFoundError(
            f"bucket {access.bucket!r} does not exist ({doing}).",
            remedy="Check s3_bucket_name for typing errors, and custom_s3_endpoint if there is one.",
        )
    if code in ELSEWHERE:
        return _elsewhere(error, doing, access, said)
    if code in _DENIED or status == 403:
        if doing.startswith("glue:"):
            return GlueAccessDeniedError(f"{doing} was denied ({said}).", remedy=GLUE_REMEDY)
        return S3AccessDeniedError(f"{doing} was denied ({said}).", remedy=S3_REMEDY)
    if _passing(code, status):
        return NoAnswerError(f"{doing} failed ({said}).", remedy=TIME_OUT_REMEDY)
    kind = GlueAccessDeniedError if doing.startswith("glue:") else S3AccessDeniedError
    return kind(f"{doing} failed ({said}).")


def _passing(code: str, status: int) -> bool:
    """Whether the answer may be another one a moment later."""
    return status >= 500 or "Throttl" in code or code in _PASSING


def _elsewhere(error: ClientError, doing: str, access: Access, said: str) -> LakeError:
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = headers.get("x-amz-bucket-region") or error.response.get("Error", {}).get("Region")
    where = f"it is in {region!r}" if region else said
    return BucketRegionMismatchError(
        f"bucket {access.bucket!r} is not in {access.region!r}: {where} ({doing}).",
        remedy=f"Set bucket_region to {region or 'the region of the bucket'}.",
    )


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".")
