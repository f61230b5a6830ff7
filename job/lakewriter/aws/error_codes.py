"""Classify error codes of AWS and of S3-compatible stores; the table holds every code of the calls we make."""

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Final


class Meaning(Enum):
    """The class of an error response; a retry may help with ``PASSING``, ``EXPIRED`` and ``CLOCK``."""

    PASSING = auto()
    EXPIRED = auto()
    CLOCK = auto()
    WRONG_KEYS = auto()
    DENIED = auto()
    ELSEWHERE = auto()
    NO_BUCKET = auto()
    NO_CATALOG = auto()
    FINAL = auto()


_CODES: Final[Mapping[Meaning, str]] = {
    Meaning.PASSING: """
        BandwidthLimitExceeded BadDigest BusyException ConcurrentModification ConcurrentModificationException
        ConditionalRequestConflict ConflictException EC2ThrottledException FederationSourceRetryableException
        ForeignAnswer IDPCommunicationError IncompleteBody InternalError InternalFailure InternalServerError
        InternalServerErrorException InternalServiceError InternalServiceException LimitExceededException
        OperationAborted OperationTimeoutException PriorRequestNotComplete ProvisionedThroughputExceededException
        RequestLimitExceeded RequestThrottled RequestThrottledException RequestTimeout RequestTimeoutException
        ResourceNotReadyException ServerBusy ServiceFailure ServiceUnavailable ServiceUnavailableException SlowDown
        SlowDownRead SlowDownWrite Throttling ThrottlingException ThrottledException TooManyRequests
        TooManyRequestsException TransactionInProgressException XMinioServerNotInitialized
    """,
    Meaning.EXPIRED: "ExpiredToken ExpiredTokenException TokenRefreshRequired",
    Meaning.CLOCK: "RequestExpired RequestInTheFuture RequestTimeTooSkewed XAmzDateTooSkewed",
    Meaning.WRONG_KEYS: """
        AuthFailure CredentialsNotSupported IncompleteSignature IncompleteSignatureException InvalidAccessKeyId
        InvalidAccessKeyIdException InvalidClientTokenId InvalidSecurity InvalidSignatureException InvalidToken
        MissingAuthenticationToken MissingAuthenticationTokenException MissingSecurityHeader SignatureDoesNotMatch
        UnrecognizedClientException
    """,
    Meaning.DENIED: """
        403 AccessDenied AccessDeniedException AccountProblem AllAccessDisabled ForbiddenException
        GlueEncryptionException InvalidObjectState InvalidPayer NotSignedUp OptInRequired RegionDisabledException
        UnauthorizedAccess UnauthorizedAccessError UnauthorizedOperation
    """,
    Meaning.ELSEWHERE: """
        301 307 308 AuthorizationHeaderMalformed IllegalLocationConstraintException PermanentRedirect Redirect
        TemporaryRedirect
    """,
    Meaning.NO_BUCKET: "NoSuchBucket",
    Meaning.FINAL: """
        AlreadyExistsException BadRequestException DecryptionFailure EncryptionTypeMismatch EntityNotFoundException
        FederatedResourceAlreadyExistsException FederationSourceException InvalidInput InvalidInputException
        InvalidKeyId InvalidParameterException InvalidRequest InvalidRequestException InvalidStateException
        InvalidWriteOffset MalformedPolicyDocument NoSuchEntity NoSuchKey NoSuchUpload NotFoundException
        NotImplemented PackedPolicyTooLarge ParameterNotFound ParameterVersionNotFound ResourceNotFoundException
        ResourceNumberLimitExceededException TooManyParts ValidationException VersionMismatchException
    """,
}

MEANINGS: Final[Mapping[str, Meaning]] = {code: meaning for meaning, codes in _CODES.items() for code in codes.split()}

ELSEWHERE: Final = frozenset(code for code, meaning in MEANINGS.items() if meaning is Meaning.ELSEWHERE)
"""Codes that say: the bucket is in another region."""

_PASSING_STATUSES: Final = frozenset({408, 425, 429, 509})
_NEVER_STATUSES: Final = frozenset({501, 505})
"""Server errors that a retry does not cure: not implemented, HTTP version not supported."""


def classify(code: str, status: int, message: str = "") -> Meaning:
    """Classify by code, else by HTTP status; the message decides for codes with two meanings."""
    return next(_match_meanings(code, status, message.lower()))


def _match_meanings(code: str, status: int, message: str) -> Iterator[Meaning]:
    listed = MEANINGS.get(code)
    # STS and Glue answer "Signature expired: ... is now earlier than ..." under the code of a wrong signature.
    if listed is Meaning.WRONG_KEYS and ("signature expired" in message or "signature not yet current" in message):
        yield Meaning.CLOCK
    # S3 answers "the Credential is mal-formed" and "a non-empty Access Key (AKID) must be provided" under the code of
    # a wrong region.
    if (
        code == "AuthorizationHeaderMalformed"
        and "region" not in message.replace("/region/", "")
        and ("credential" in message or "access key" in message)
    ):
        yield Meaning.WRONG_KEYS
    if code == "EntityNotFoundException" and "catalog" in message.split("not found")[0] and "not found" in message:
        yield Meaning.NO_CATALOG
    if listed is not None:
        yield listed
    if status in _PASSING_STATUSES or "Throttl" in code or (status >= 500 and status not in _NEVER_STATUSES):
        yield Meaning.PASSING
    yield Meaning.DENIED if status in (401, 403) else Meaning.FINAL
