"""What becomes of staged uploads: nobody aborts another's, nor what is bound, and what is withdrawn leaves none."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.simulation.books import LOAD, Book, Place, parsed, pending_of, receipts_of
from tests.simulation.bucket import Bucket, Change, Upload


class UploadAuditor:
    """Told of every abort and of every change, as they are made; ``find`` takes what is not as it should be."""

    def __init__(self, bucket: Bucket, places: Sequence[Place], find: Callable[[str], None]) -> None:
        self._bucket, self._places, self._find = bucket, places, find

    def aborted(self, name: str, upload: Upload, pipeline: str) -> None:
        """By a process of the pipeline."""
        load = upload.metadata.get(LOAD, "//")
        owner, job, attempt = load.split("/")
        if pipeline != owner:
            self._find(f"{pipeline} aborts an upload of {load}: {upload.key}")
        for place in self._places:
            pending = pending_of(self._bucket.objects, place)
            is_bound = (place.pipeline, pending.get("job_id"), pending.get("attempt")) == (owner, job, attempt)
            if is_bound and pending["phase"] == "intended" and name in self._staged(place, pending):
                self._find(f"an upload of {load}, which is bound, is aborted: {upload.key}")

    def changed(self, change: Change) -> None:
        """A load that was withdrawn leaves no upload that a slow process could complete."""
        place = next((place for place in self._places if place.state == change.key), None)
        if place is None or change.before is None or change.after is None:
            return
        before, after = parsed(change.before)["pending"] or {}, parsed(change.after)["pending"]
        if before.get("phase") != "aborting" or after is not None:
            return
        left = [name for name in self._staged(place, before) if name in self._bucket.uploads]
        if left:
            self._find(f"{place.pipeline}/{place.table}: load {before['job_id']} was withdrawn and left {left}")

    def _staged(self, place: Place, pending: Mapping[str, Any]) -> list[str]:
        """Ids of the intent's uploads; none where the intent is gone."""
        return [receipt["upload_id"] for receipt in receipts_of(self._bucket.objects, place, pending) or ()]


def list_uploads_left(bucket: Bucket, places: Sequence[Place], books: Mapping[str, Book]) -> Iterator[str]:
    """Yield uploads of loads that are done, whose last attempt began after the upload did."""
    for name, upload in bucket.uploads.items():
        pipeline, job, attempt = upload.metadata.get(LOAD, "//").split("/")
        for place in places:
            registered = books[place.state].registered
            later = [own for own, began in registered.items() if own[0] == job and began >= upload.began]
            if place.pipeline == pipeline and later and all(own[1] != attempt for own in later):
                yield f"{name} {upload.key} of {job}/{attempt}"
