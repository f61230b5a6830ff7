"""Turn an error of the AWS SDK into an error that says what to do."""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConfigNotFound,
    ConfigParseError,
    CredentialRetrievalError,
    HTTPClientError,
    InfiniteLoopConfigError,
    InvalidConfigError,
    LoginError,
    MissingDependencyException,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
    UnknownCredentialError,
)
from botocore.exceptions import ConnectionError as SdkConnectionError

from lakewriter.aws.error_codes import Meaning, classify
from lakewriter.aws.request_hooks import has_never_answered
from lakewriter.errors import (
    BucketNotFoundError,
    BucketRegionMismatchError,
    CatalogNotFoundError,
    CredentialsInvalidError,
    EndpointUnreachableError,
    GlueAccessDeniedError,
    LakeError,
    NoAnswerError,
    RoleNotAssumableError,
    S3AccessDeniedError,
)
from lakewriter.spec.access import Access

S3_REMEDY: Final = (
    "Check the S3 policy of the role (bucket name and prefix in it), the bucket's own policy, its KMS key, "
    "and that the bucket is not Requester Pays."
)
CLOCK_REMEDY: Final = "Synchronise the clock (NTP), and run the same job id again."
_EXPIRED_REMEDY: Final = (
    "Renew the session (aws sso login, new temporary keys, or a role, whose sessions are renewed by themselves), and "
    "run the same job id again."
)
_CATALOG_REMEDY: Final = "Check the region and the account: Glue's catalog is that of the account that signs."
LEAST_FREE: Final = 256 * 2**20
"""Bytes that the disk of the server of ``--local`` must have free; on a fuller one it makes its volumes read-only."""
_BELOW_BUCKET: Final = re.compile(r"(?<=s3://)([^/\s]+)/\S*")
_PATH: Final = re.compile(r"(https?://[^/?]+)\S*")
_USER_INFO: Final = re.compile(r"(?<=://)[^/@\s\"']+@")


def explain(error: ClientError | BotoCoreError, *, doing: str, access: Access) -> LakeError:
    """Make the error to raise for ``error``; ``doing`` is the IAM action and the resource it was called on."""
    if doing.startswith("sts:AssumeRole"):
        doing = f"{doing} on {access.role_arn}"
    if isinstance(error, ClientError):
        return _explain_answer(error, doing, access)
    if isinstance(error, SdkConnectionError | HTTPClientError):
        return _explain_silence(error, doing, access)
    if isinstance(error, NoCredentialsError):
        return S3AccessDeniedError(
            f"no AWS credentials for {_cut_key(doing)}.",
            remedy="Configure credentials: a profile (AWS_PROFILE), environment variables, or the job's role. To try "
            "the file on this machine without AWS, add --local.",
        )
    if isinstance(error, _UNUSABLE):
        return CredentialsInvalidError(f"{doing}: {_summarise(error)}.", remedy=make_credentials_remedy(access))
    if doing.startswith("sts:AssumeRole"):
        return RoleNotAssumableError(f"{doing}: {_summarise(error)}.", remedy=make_role_remedy(access))
    return S3AccessDeniedError(f"{doing}: {_summarise(error)}.")


def describe_full_disk(folder: str | None) -> str | None:
    """Say that the disk of the folder of a server on this machine is full; None if it is not."""
    free = None if folder is None else shutil.disk_usage(folder).free
    if free is None or free >= LEAST_FREE:
        return None
    needed = f"and the local S3 server needs {LEAST_FREE // 10**6:,} MB to write"
    return f"the disk of {folder} has {free // 10**6:,} MB free, {needed}"


def make_room_remedy(folder: str | None) -> str:
    """Say what to do about a full disk."""
    return (
        f"Free some space there, or move the pipeline's folder to another disk, and run it again; {folder} has the "
        "tables' data."
    )


def _cut_key(doing: str) -> str:
    """Leave the bucket: to wrong credentials, or none, it matters not which key was asked for."""
    return _BELOW_BUCKET.sub(r"\1", doing)


_UNUSABLE: Final = (
    ConfigNotFound,
    ConfigParseError,
    CredentialRetrievalError,
    InfiniteLoopConfigError,
    InvalidConfigError,
    LoginError,
    MissingDependencyException,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
    UnknownCredentialError,
)


@contextmanager
def explain_settings() -> Iterator[None]:
    """Raise ``CREDENTIALS_INVALID`` where the SDK cannot make a session or a client from this machine's settings.

    No request is sent while they are made: each error then is one of the profile, the files of ``~/.aws`` or the
    variables ``AWS_...``.
    """
    try:
        yield
    except BotoCoreError as error:
        raise CredentialsInvalidError(
            f"the AWS settings of this machine cannot be used: {_summarise(error)}.",
            remedy="Check AWS_PROFILE, AWS_CONFIG_FILE and the other AWS_ variables, and that ~/.aws/config has what "
            "they name ('aws configure list-profiles' lists its profiles).",
        ) from error


def make_role_remedy(access: Access) -> str:
    """Say what to do when STS refuses to assume the role."""
    names = access.key_names
    return (
        f"Check that the ARN ({names.role_arn}) is complete and the role exists; that its trust policy names the "
        f"principal that assumes it; and that sts:ExternalId there equals {names.external_id} to the letter (case "
        "counts, no spaces around it)."
    )


def make_glue_remedy(access: Access) -> str:
    """Say what to do when Glue denies a call."""
    account = access.catalog_account
    theirs = f", and that the policy of account {account}'s catalog lets the role in" if account else ""
    return (
        f"Check that the Glue policy is attached to the role, names this region and account {account or ''}".rstrip()
        + f", and that its database prefix matches {access.key_names.database_prefix}{theirs}; where Lake Formation "
        "governs the catalog, grant there too."
    )


def make_bucket_remedy(access: Access) -> str:
    """Say what to do when no bucket has the name."""
    names = access.key_names
    return (
        f"Check {names.bucket} for typing errors, and {names.endpoint} if there is one; or create the bucket: "
        "the stacks do, and no load."
    )


def make_region_remedy(access: Access, region: str | None) -> str:
    """Say what to do when the bucket is in another region."""
    return f"Set {access.key_names.region} to {region or 'the region of the bucket'}."


def make_credentials_remedy(access: Access) -> str:
    """Say what to do when AWS does not know the keys, or their signature is wrong."""
    names = access.key_names
    if access.access_key_id:
        return (
            f"Check {names.access_key_id} and {names.secret_access_key}: that they belong together, are active, and "
            "were copied whole, not as a form shows them (****)."
        )
    return "Check the credentials of the profile, the environment variables or the job's role; renew old ones."


def make_timeout_remedy(access: Access) -> str:
    """Say what to do when a service does not answer."""
    return f"Check {_find_address_key(access)} and the network path, and try again."


def _find_address_key(access: Access) -> str:
    names = access.key_names
    return names.endpoint if access.endpoint else names.region


def _explain_silence(error: BotoCoreError, doing: str, access: Access) -> LakeError:
    if not has_never_answered(error):
        return NoAnswerError(f"{doing}: no answer ({_summarise(error)}).", remedy=make_timeout_remedy(access))
    # The SDK's endpoint_url holds the bucket's name and leaves out a proxy's.
    url = _USER_INFO.sub("", str(getattr(error, "kwargs", {}).get("endpoint_url") or access.endpoint or "AWS"))
    server = _PATH.sub(r"\1", url)
    return EndpointUnreachableError(
        f"{_cut_key(doing)}: {server} has not answered once ({_summarise(error).replace(url, server)}).",
        remedy=f"Check {_find_address_key(access)}, and the network path from here: name, port, TLS, proxy, VPC "
        "endpoint.",
    )


def _explain_answer(error: ClientError, doing: str, access: Access) -> LakeError:
    details: Mapping[str, object] = error.response.get("Error", {})
    code, message = str(details.get("Code", "")), str(details.get("Message", ""))
    answer = f"{code}: {message.rstrip('.')}".strip(": ")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    meaning = classify(code, status, message)
    full = describe_full_disk(access.disk) if meaning in {Meaning.PASSING, Meaning.NO_BUCKET} else None
    if full is not None:
        return NoAnswerError(f"{_cut_key(doing)} failed ({code}): {full}.", remedy=make_room_remedy(access.disk))
    match meaning:
        case Meaning.PASSING:
            return NoAnswerError(f"{doing} failed ({answer}).", remedy=make_timeout_remedy(access))
        case Meaning.EXPIRED:
            return NoAnswerError(f"{doing}: the credentials have expired ({answer}).", remedy=_EXPIRED_REMEDY)
        case Meaning.CLOCK:
            return NoAnswerError(
                f"{doing}: the clock of this machine and the service's differ too much ({answer}).", remedy=CLOCK_REMEDY
            )
        case Meaning.WRONG_KEYS:
            return CredentialsInvalidError(
                f"{_cut_key(doing)}: the credentials are not accepted ({answer}).",
                remedy=make_credentials_remedy(access),
            )
        case Meaning.NO_CATALOG:
            return CatalogNotFoundError(f"{doing}: the catalog does not exist ({answer}).", remedy=_CATALOG_REMEDY)
        case _:
            return _explain_refusal(error, doing, access, answer, meaning)


def _explain_refusal(error: ClientError, doing: str, access: Access, answer: str, meaning: Meaning) -> LakeError:
    if doing.startswith("sts:AssumeRole"):
        return RoleNotAssumableError(f"{doing} was refused ({answer}).", remedy=make_role_remedy(access))
    if meaning is Meaning.NO_BUCKET:
        return BucketNotFoundError(
            f"bucket {access.bucket!r} does not exist ({_cut_key(doing)}).", remedy=make_bucket_remedy(access)
        )
    if meaning is Meaning.ELSEWHERE:
        return _explain_redirect(error, doing, access, answer)
    is_glue = doing.startswith("glue:")
    kind = GlueAccessDeniedError if is_glue else S3AccessDeniedError
    if meaning is Meaning.DENIED:
        return kind(f"{doing} was denied ({answer}).", remedy=make_glue_remedy(access) if is_glue else S3_REMEDY)
    return kind(f"{doing} failed ({answer}).")


def _explain_redirect(error: ClientError, doing: str, access: Access, answer: str) -> LakeError:
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    named = headers.get("x-amz-bucket-region") or error.response.get("Error", {}).get("Region")
    region = str(named) if named else None
    where = f"it is in {region!r}" if region else answer
    return BucketRegionMismatchError(
        f"bucket {access.bucket!r} is not in {access.region!r}: {where} ({doing}).",
        remedy=make_region_remedy(access, region),
    )


def _summarise(error: Exception) -> str:
    return _USER_INFO.sub("", f"{type(error).__name__}: {error}").rstrip(".")
