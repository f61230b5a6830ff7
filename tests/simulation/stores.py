"""How stores answer where they differ, as they were seen to: AWS, SeaweedFS 4.48 and versitygw 1.8.0."""

import random
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Store:
    """The answers of one store.

    ``missing`` is the status of what is not there: 403 is what a role that may list one prefix is told. ``unmatched``
    and ``undeleted`` are status and code of a write and of a deletion with ``If-Match`` where nothing is there;
    ``unaborted`` those of an abort of an upload that is gone. ``None`` is a success. ``repeats`` says whether a
    completion whose upload is gone is a success where its key is taken, by whatever object. ``is_tree`` is of listings
    in the order of folders: a key in ``b/`` comes before ``b-``.
    """

    name: str
    missing: int = 403
    unmatched: tuple[int, str] = (404, "NoSuchKey")
    undeleted: tuple[int, str] | None = None
    unaborted: tuple[int, str] | None = (404, "NoSuchUpload")
    repeats: bool = False
    is_tree: bool = False
    is_lenient: bool = True
    """Whether a client whose clock is days off is served."""

    def sort_key(self, key: str) -> tuple[str, ...]:
        """What orders a listing."""
        return tuple(key.split("/")) if self.is_tree else (key,)


AWS: Final = Store("aws", is_lenient=False)
SEAWEEDFS: Final = Store(
    "seaweedfs",
    missing=404,
    unmatched=(412, "PreconditionFailed"),
    undeleted=(412, "PreconditionFailed"),
    unaborted=None,
    is_tree=True,
)
VERSITYGW: Final = Store("versitygw", missing=404, repeats=True)


def draw_store(seed: int) -> Store:
    """AWS in most histories; by chance of its own, which leaves these what they were."""
    return random.Random(f"store of {seed}").choice([AWS, AWS, AWS, SEAWEEDFS, VERSITYGW])
