"""Read and replace state.json of one table. It is only ever replaced by conditional writes."""

import json
import time
from collections.abc import Callable
from typing import Final, Protocol

from lakewriter.commit.backoff import write
from lakewriter.commit.store import Store, Unclear
from lakewriter.control_object import parse
from lakewriter.errors import StateLostError
from lakewriter.records.fold.steps import Step, fold, number_write
from lakewriter.records.state import Lost, TableState

REBUILD: Final = (
    "Restore the object from its bucket's versions; or conclude it from what the loads have left: "
    "lakewriter rebuild LAKE TABLE --reason WHY."
)


def is_unusable(body: bytes) -> bool:
    """Return whether a state's content is unusable: empty, not a JSON object, or without the fields that every state
    has.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return True
    return not isinstance(content, dict) or not {"version", "write", "committed"} <= content.keys()


class FindTrace(Protocol):
    """Finds a key that exists only if the table had a state."""

    def __call__(self, *, anew: bool) -> str | None: ...


class StateFile:
    """The state of one table in a store. ``pause`` is ``time.sleep``, or what a test puts in its place.

    ``find_trace`` is called where there is no state: it returns a key that exists only if the table had a state. It has
    to list ``anew`` where the state was seen before.
    """

    def __init__(
        self,
        store: Store,
        key: str,
        *,
        pause: Callable[[float], None] = time.sleep,
        find_trace: FindTrace = lambda *, anew: None,
    ) -> None:
        self._store = store
        self._key = key
        self._pause = pause
        self._find_trace = find_trace
        self._is_new = self._was_there = False
        self._seen: tuple[TableState, str | None] | None = None

    @property
    def seen(self) -> tuple[TableState, str | None] | None:
        """The state as this process last read or wrote it, with its etag; None where neither was done."""
        return self._seen

    def read(self) -> TableState:
        """Read the state from the store; the empty one for a table that was never loaded. ``STATE_LOST`` where a
        state must have been there."""
        return self._look()[0]

    def recall(self) -> TableState:
        """Return the state as this process last read or wrote it; read it where neither was done."""
        return (self._seen or self._look())[0]

    def move(self, step: Step, done: Callable[[TableState], bool] = lambda _: False) -> TableState:
        """Replace the state by the one after the ``step``, and return that; or return a state that is ``done`` already.

        ``Lost`` where the step is not valid. The first try uses the state as last seen; after
        every answer but a clear success the state is read again. ``COMMIT_UNKNOWN`` when no clear answer comes.
        """

        def try_once() -> TableState | None:
            remembered = self._seen is not None
            try:
                return self._try_move(step, done)
            except Lost:
                self._seen = None
                if not remembered:
                    raise
                return self._try_move(step, done)

        return write(self._key, try_once, self._pause)

    def _try_move(self, step: Step, done: Callable[[TableState], bool]) -> TableState | None:
        seen, etag = self._seen or self._look()
        if done(seen):
            return seen
        new = number_write(fold(seen, step), seen.write)
        return new if self._try_write(new, etag) else None

    def _look(self) -> tuple[TableState, str | None]:
        content = self._store.get(self._key) or self._confirm_absence()
        self._is_new, self._was_there = content is None, self._was_there or content is not None
        self._seen = (self._parse(content[0]), content[1]) if content else (TableState(), None)
        return self._seen

    def _confirm_absence(self) -> tuple[bytes, str] | None:
        """Raise ``STATE_LOST`` where there is no state and there must have been one; return a state created since."""
        trace = None if self._is_new else self._find_trace(anew=self._was_there)
        if trace is None:
            return None
        # Another load may have created the state, and left that trace, since the state was read.
        content = self._store.get(self._key)
        if content is None:
            raise StateLostError(
                f"{self._key} is not there, and {trace} is of a table that was loaded.", remedy=REBUILD
            )
        return content

    def _try_write(self, new: TableState, etag: str | None) -> bool:
        self._seen = None
        try:
            written = self._write(new, etag)
        except Unclear:
            return False
        if written:
            self._seen, self._is_new, self._was_there = (new, written), False, True
        return written is not None

    def _write(self, state: TableState, etag: str | None) -> str | None:
        body = state.model_dump_json(indent=1).encode()
        return self._store.create(self._key, body) if etag is None else self._store.replace(self._key, body, etag)

    def _parse(self, body: bytes) -> TableState:
        if is_unusable(body):
            raise StateLostError(f"{self._key} holds no state: {body[:80]!r}.", remedy=REBUILD)
        return parse(TableState, self._key, body)
