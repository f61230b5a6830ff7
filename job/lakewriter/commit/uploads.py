"""Complete a load's staged uploads into objects, or withdraw them: decide by S3's answer and, if need be, by HEAD."""

from collections.abc import Callable, Iterable
from typing import Final

from lakewriter.commit.at_once import call_all
from lakewriter.commit.backoff import Backoff
from lakewriter.commit.store import Completion, Store, StoredObject, Unclear, Upload
from lakewriter.commit.table_objects import GO_ON
from lakewriter.errors import CommitUnknownError, ConcurrentLoadError, KeyExistsError, StagedLostError
from lakewriter.receipt import Receipt
from lakewriter.records.changes import Intent
from lakewriter.records.state import Failure

COMPLETE_SECONDS: Final = 30.0
"""For how long a completion is tried again after a conflict, or without a clear answer of S3."""


def complete_all(store: Store, intent: Intent, pause: Callable[[float], None]) -> Failure | None:
    """Complete every staged upload; return why one can never be completed, else None. ``COMMIT_UNKNOWN`` without an
    answer."""
    intent.files.require_parts()
    answers = call_all(lambda receipt: _complete(store, receipt, intent, pause), intent.files.without_statistics())
    return next((failure for failure in answers if failure), None)


def _complete(store: Store, receipt: Receipt, intent: Intent, pause: Callable[[float], None]) -> Failure | None:
    unclear: Unclear | None = None
    backoff = Backoff(COMPLETE_SECONDS, pause=pause)
    while True:
        try:
            answer, unclear = store.complete(receipt), None
        except Unclear as error:
            # Rule unclear-is-no-answer
            answer, unclear = Completion.CONFLICT, error
        settled, failure = _judge_answer(store, receipt, intent, answer)
        if settled:
            return failure
        if not backoff.wait():
            break
    if unclear is not None:
        raise CommitUnknownError(
            f"s3://{receipt.bucket}/{receipt.key}: its completion had no clear answer for {COMPLETE_SECONDS:.0f} s: "
            f"{unclear}.",
            remedy="Run the same job id again.",
        ) from unclear
    return _to_failure(
        _make_staged_lost_error(receipt, f"S3 answered its completion with a conflict for {COMPLETE_SECONDS:.0f} s")
    )


def _judge_answer(store: Store, receipt: Receipt, intent: Intent, answer: Completion) -> tuple[bool, Failure | None]:
    """Return whether the answer is final, and the failure if it is one.

    S3 answers 412 also when an earlier try of the same call succeeded, and some stores answer 200 when it is another's
    object that has the key, so HEAD the object before deciding.
    """
    if answer is Completion.DONE:
        return True, None
    if answer is Completion.CONFLICT:
        return False, None
    # Rule gone-is-looked-at
    stored = store.find(receipt.key)
    if stored is None:
        lost = _make_staged_lost_error(receipt, "the upload and its object are both gone")
        return answer in (Completion.GONE, Completion.CLAIMED), _to_failure(lost)
    is_own = stored.load == intent.load or not store.abilities.keeps_metadata
    # Rule refused-is-looked-at, refused-is-another's
    if is_own and stored.size == receipt.size:
        return True, None
    return True, _to_failure(_make_occupied_error(receipt, intent, stored))


def _make_occupied_error(
    receipt: Receipt, intent: Intent, stored: StoredObject
) -> ConcurrentLoadError | KeyExistsError:
    """Make the error for a key that another's object has; a retry helps where its files will have other names."""
    if stored.is_of_another(intent.pipeline):
        if intent.is_numbered:
            return _make_key_exists_error(receipt, stored.load, "Give each pipeline a path of its own.")
        return _make_taken_error(receipt, stored.load, "another", "its files are then numbered after that load's.")
    if stored.load and stored.load.split("/")[1] != intent.job_id:
        return _make_taken_error(receipt, stored.load, "this", "its files are then named by another time.")
    if intent.is_numbered:
        # The key has the table's counter, which another job id does not change.
        return _make_key_exists_error(receipt, stored.load, GO_ON)
    key = intent.access.key_names.file_name
    pattern = f"a {key} with a unique token, " if key else ""
    return _make_key_exists_error(receipt, stored.load, f"Choose {pattern}another job id, or move the object away.")


def withdraw(store: Store, intent: Intent) -> None:
    """Abort the intent's uploads, then delete the objects that its attempt wrote.

    In this order, since an upload that is gone cannot be completed any more. Each object is deleted by its etag: since
    HEAD, another process may have deleted it and a later attempt written its own under the key.
    """
    intent.files.require_parts()
    # Rule abort-before-delete
    abort_all(store, (Upload(receipt.key, receipt.upload_id) for receipt in intent.files.without_statistics()))
    delete_own(store, intent)


def delete_own(store: Store, intent: Intent) -> None:
    """Delete the intent's files, where they are still those that its attempt wrote."""
    if not store.abilities.deletes:
        return

    def delete(key: str) -> None:
        stored = store.head(key)
        # Rule own-objects-only
        if stored is not None and stored.load == intent.load:
            # Rule delete-by-etag
            store.delete(key, stored.etag)

    call_all(delete, intent.files.list_keys())


def abort_all(store: Store, uploads: Iterable[Upload | Receipt]) -> None:
    """Abort each upload; those of receipts are in the buckets that they name."""
    call_all(lambda upload: store.abort(upload.key, upload.upload_id, upload.bucket), uploads)


def _to_failure(error: ConcurrentLoadError | KeyExistsError | StagedLostError) -> Failure:
    return Failure(code=error.code, message=error.message, remedy=error.remedy)


def _make_key_exists_error(receipt: Receipt, load: str, remedy: str) -> KeyExistsError:
    whose = f"load {load!r}" if load else "another writer"
    return KeyExistsError(
        f"s3://{receipt.bucket}/{receipt.key} exists already, written by {whose}; it was left as it is.",
        remedy=remedy,
    )


def _make_taken_error(receipt: Receipt, load: str, whose: str, then: str) -> ConcurrentLoadError:
    return ConcurrentLoadError(
        f"s3://{receipt.bucket}/{receipt.key} was written by load {load!r} of {whose} pipeline at the same time.",
        remedy=f"Run the same job id again: {then}",
    )


def _make_staged_lost_error(receipt: Receipt, why: str) -> StagedLostError:
    return StagedLostError(
        f"s3://{receipt.bucket}/{receipt.key}: {why}.",
        remedy="Run the same job id again; let the bucket's lifecycle rule abort incomplete uploads later.",
    )
