"""The errors a user can meet; each has a stable code, a remedy, and says whether a retry can help.

LakeError
├── SpecInvalidError                SPEC_INVALID               exit 2
├── SecretUnresolvedError           SECRET_UNRESOLVED
├── CredentialsInvalidError         CREDENTIALS_INVALID
├── RoleNotAssumableError           ROLE_NOT_ASSUMABLE
├── EndpointUnreachableError        ENDPOINT_UNREACHABLE
├── BucketNotFoundError             BUCKET_NOT_FOUND
├── BucketRegionMismatchError       BUCKET_REGION_MISMATCH
├── S3AccessDeniedError             S3_ACCESS_DENIED
├── RequesterPaysError              REQUESTER_PAYS
├── TlsRequiredError                TLS_REQUIRED
├── GlueAccessDeniedError           GLUE_ACCESS_DENIED
├── CatalogUnauthorizedError        CATALOG_UNAUTHORIZED
├── CatalogNotFoundError            CATALOG_NOT_FOUND
├── CatalogFailedError              CATALOG_FAILED             a retry can help
├── CatalogRegionMismatchError      CATALOG_REGION_MISMATCH
├── TableNotEmptyError              TABLE_NOT_EMPTY
├── NameCollisionError              NAME_COLLISION
├── SchemaIncompatibleError         SCHEMA_INCOMPATIBLE
├── ValueUnrepresentableError       VALUE_UNREPRESENTABLE
├── ExpectationFailedError          EXPECTATION_FAILED
├── SourceFailedError               SOURCE_FAILED
├── SourceDisagreesError            SOURCE_DISAGREES
├── InputRepeatedError              INPUT_REPEATED
├── SourceUnreachableError          SOURCE_UNREACHABLE         a retry can help
├── KeyExistsError                  KEY_EXISTS
├── StagedLostError                 STAGED_LOST                a retry can help
├── ConcurrentLoadError             CONCURRENT_LOAD            a retry can help
├── CheckpointLostError             CHECKPOINT_LOST
├── LoadGoneError                   LOAD_GONE
├── LoadUndoneError                 LOAD_UNDONE
├── StateLostError                  STATE_LOST
├── PendingUnrecoverableError       PENDING_UNRECOVERABLE
├── InternalError                   INTERNAL
├── CommitUnknownError              COMMIT_UNKNOWN             a retry can help
├── NoAnswerError                   TIMEOUT                    a retry can help
└── WorkerDiedError                 WORKER_DIED                a retry can help
"""

import errno
import re
import tempfile
from collections.abc import Sequence
from typing import Any, ClassVar

from lakewriter.exit_codes import EXIT_FAILED, EXIT_RETRY, EXIT_USAGE


class LakeError(Exception):
    """A failure that a user can act on; ``str(error)`` is ``CODE: message``, on one line."""

    code: ClassVar[str]
    transient: ClassVar[bool] = False
    exit_code: ClassVar[int] = EXIT_FAILED

    def __init__(self, message: str, *, remedy: str = "") -> None:
        self.message = " ".join(message.split())
        self.remedy = " ".join(remedy.split())
        text = f"{self.message} {self.remedy}".strip()
        super().__init__(f"{self.code}: {text}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.remedy)

    @property
    def report(self) -> str:
        """The error as a person reads it, with each note on a line of its own."""
        return "\n".join([str(self), *getattr(self, "__notes__", ())])


class SpecInvalidError(LakeError):
    """The specification, or a command's argument, cannot be used as it is; ``problems`` holds one text each."""

    code = "SPEC_INVALID"
    exit_code = EXIT_USAGE

    def __init__(self, message: str, *, remedy: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(" ".join([message, *problems]), remedy=remedy)
        self.summary = message
        self.problems = tuple(problems)

    @property
    def report(self) -> str:
        """Each problem on a line of its own."""
        if not self.problems:
            return super().report
        remedy = (self.remedy,) if self.remedy else ()
        return "\n".join([f"{self.code}: {self.summary}", *(f"  {problem}" for problem in self.problems), *remedy])


class SecretUnresolvedError(LakeError):
    """A secret reference names nothing that can be read here."""

    code = "SECRET_UNRESOLVED"


class CredentialsInvalidError(LakeError):
    """A service does not know the keys, or they sign wrongly."""

    code = "CREDENTIALS_INVALID"


class EndpointUnreachableError(LakeError):
    """An endpoint has not answered anything, not once: more likely it is not there than busy."""

    code = "ENDPOINT_UNREACHABLE"


class RoleNotAssumableError(LakeError):
    """STS refuses the role: its trust policy, its ARN or the external id."""

    code = "ROLE_NOT_ASSUMABLE"


class BucketNotFoundError(LakeError):
    """No bucket of this name exists."""

    code = "BUCKET_NOT_FOUND"


class BucketRegionMismatchError(LakeError):
    """The bucket lies in another region than the one configured."""

    code = "BUCKET_REGION_MISMATCH"


class S3AccessDeniedError(LakeError):
    """S3 refuses a call."""

    code = "S3_ACCESS_DENIED"


class RequesterPaysError(LakeError):
    """The bucket makes its requesters pay."""

    code = "REQUESTER_PAYS"


class TlsRequiredError(LakeError):
    """An endpoint without TLS that is not on this machine."""

    code = "TLS_REQUIRED"


class GlueAccessDeniedError(LakeError):
    """Glue, or Lake Formation behind it, refuses a call."""

    code = "GLUE_ACCESS_DENIED"


class CatalogUnauthorizedError(LakeError):
    """A REST catalog refuses the credentials."""

    code = "CATALOG_UNAUTHORIZED"


class CatalogNotFoundError(LakeError):
    """A REST catalog knows no catalog of this name."""

    code = "CATALOG_NOT_FOUND"


class CatalogFailedError(LakeError):
    """A REST catalog fails itself (5xx), is too busy, or something else answers in its place."""

    code = "CATALOG_FAILED"
    transient = True
    exit_code = EXIT_RETRY


class CatalogRegionMismatchError(LakeError):
    """Catalog and bucket lie in different regions."""

    code = "CATALOG_REGION_MISMATCH"


class TableNotEmptyError(LakeError):
    """The first load of a table found objects under its path."""

    code = "TABLE_NOT_EMPTY"


class NameCollisionError(LakeError):
    """Two things that must differ have one name."""

    code = "NAME_COLLISION"


class SchemaIncompatibleError(LakeError):
    """The source's columns do not fit the table, or no format can store them."""

    code = "SCHEMA_INCOMPATIBLE"


class ValueUnrepresentableError(LakeError):
    """A value does not fit its column. ``column`` is its name or JSON pointer, where the value was met; ``document`` is
    the beginning of the JSON document that it is in."""

    code = "VALUE_UNREPRESENTABLE"

    def __init__(self, message: str, *, remedy: str = "", column: str | None = None, document: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.column = column
        self.document = document


class ExpectationFailedError(LakeError):
    """Staged rows break an expectation of their table; the load published none of them.

    ``verdicts`` are those on all of the table's expectations.
    """

    code = "EXPECTATION_FAILED"

    def __init__(self, message: str, *, remedy: str = "", verdicts: Sequence[Any] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.verdicts = tuple(verdicts)


class SourceFailedError(LakeError):
    """The source could not be read."""

    code = "SOURCE_FAILED"


class SourceDisagreesError(LakeError):
    """The rows that were read are not those that the database counts; nothing is published."""

    code = "SOURCE_DISAGREES"


class InputRepeatedError(LakeError):
    """A load would append rows of files again that an earlier load has read."""

    code = "INPUT_REPEATED"


class SourceUnreachableError(LakeError):
    """The source does not answer, or is not there yet: nothing is known to be wrong with it."""

    code = "SOURCE_UNREACHABLE"
    transient = True
    exit_code = EXIT_RETRY


class KeyExistsError(LakeError):
    """An object that is not this load's already has the key of a new one."""

    code = "KEY_EXISTS"


class StagedLostError(LakeError):
    """A staged upload and its object are both gone."""

    code = "STAGED_LOST"
    transient = True
    exit_code = EXIT_RETRY


class ConcurrentLoadError(LakeError):
    """Another load of the table committed first."""

    code = "CONCURRENT_LOAD"
    transient = True
    exit_code = EXIT_RETRY


class CheckpointLostError(LakeError):
    """A continuous run's checkpoint does not match what the table, or its source, has: continuing would repeat or leave
    out rows."""

    code = "CHECKPOINT_LOST"


class StateLostError(LakeError):
    """A table has been loaded, and its state is gone or says nothing."""

    code = "STATE_LOST"


class LoadGoneError(LakeError):
    """A load that is committed is not in its table any more: somebody has rolled the table back."""

    code = "LOAD_GONE"


class LoadUndoneError(LakeError):
    """A load that was taken back: its job id loads nothing again."""

    code = "LOAD_UNDONE"


class PendingUnrecoverableError(LakeError):
    """An earlier load's intent cannot be taken to its end."""

    code = "PENDING_UNRECOVERABLE"


class InternalError(LakeError):
    """A fault of the program, or a full disk, met on one table or in one check; its trace is in the log."""

    code = "INTERNAL"

    @classmethod
    def met(cls, where: str, fault: Exception, *, unharmed: str = "") -> "InternalError":
        """Return the error for ``fault``, with its notes; ``unharmed`` says what is as it was."""
        what = "This is a fault of Lakewriter itself: report it with the trace in the log."
        if isinstance(fault, OSError) and fault.errno == errno.ENOSPC:
            # A large merge is divided in temporary files, and so are the values that it fills.
            folder = tempfile.gettempdir()
            what = f"Free space in {folder} of this machine, or name another folder in TMPDIR. Then run the job again."
        error = cls(f"{where}: {type(fault).__name__}: {str(fault).rstrip('.')}.", remedy=f"{what} {unharmed}")
        for note in getattr(fault, "__notes__", ()):
            error.add_note(note)
        return error


class CommitUnknownError(LakeError):
    """The outcome of a change cannot be determined now."""

    code = "COMMIT_UNKNOWN"
    transient = True
    exit_code = EXIT_RETRY


class NoAnswerError(LakeError):
    """A service gave no answer in time."""

    code = "TIMEOUT"
    transient = True
    exit_code = EXIT_RETRY


class WorkerDiedError(LakeError):
    """An executor or its Python worker died while it wrote a table."""

    code = "WORKER_DIED"
    transient = True
    exit_code = EXIT_RETRY


def _rebuild(kind: type[LakeError], message: str, remedy: str) -> LakeError:
    return kind(message, remedy=remedy)


CODES: dict[str, type[LakeError]] = {kind.code: kind for kind in LakeError.__subclasses__()}

_RAISED_FROM = "The above exception was the direct cause of the following exception:"
_IN_TEXT = re.compile(rf"\b({'|'.join(CODES)}): ([^\n]*)")


def from_text(text: str) -> LakeError | None:
    """Return the error that a task raised, from the traceback text that Spark brings to the driver.

    The exception that it was raised from precedes it in the text.
    """
    match = _IN_TEXT.search(text.rpartition(_RAISED_FROM)[2]) or _IN_TEXT.search(text)
    return CODES[match[1]](match[2].strip()) if match else None
