"""Send events from a thread of their own, so that no load waits for a server: what cannot be sent is logged once."""

import importlib.util
import logging
import queue
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from lakewriter.errors import LakeError
from lakewriter.lineage.facts import Moment
from lakewriter.spec.installing import describe_install
from lakewriter.spec.lineage import Lineage

LOG: Final = logging.getLogger(__name__)

MOST_WAITING: Final = 20_000
"""Events that wait to be sent, about 20 MB. A load of thousands of tables has two for each."""
MOST_FAILURES: Final = 3
"""Failures in a row after which no event is sent for a while."""
PAUSE_SECONDS: Final = 600.0
"""A pause is so long that a single load ends before, and a continuous run tries again."""

Send = Callable[[Moment], None]


class Sender:
    """One target of events; ``open_send`` makes what sends to it, in the thread that does."""

    def __init__(
        self, settings: Lineage, open_send: Callable[[Lineage], Send], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._open_send, self._clock = settings, open_send, clock
        self._waiting: queue.Queue[Moment] = queue.Queue(MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._send: Send | None = None
        self._failures = 0
        self._paused_until = 0.0
        self._problem = ""
        self._lost = 0
        self._is_sending = self._is_given_up = False

    @property
    def problems(self) -> tuple[str, ...]:
        """Return the events that could not be sent since the process began, in words for a user."""
        if not self._lost:
            return ()
        events = "1 OpenLineage event was" if self._lost == 1 else f"{self._lost:,} OpenLineage events were"
        return (f"lineage.to: {events} not sent to {self._settings.to!r}: {self._problem}. The load is not affected.",)

    def put(self, moment: Moment) -> None:
        """Queue an event: the thread sends events in the order in which they come."""
        try:
            self._waiting.put_nowait(moment)
        except queue.Full:
            self._lose(f"more than {MOST_WAITING:,} were waiting")
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lineage", daemon=True)
                self._thread.start()

    def drain(self) -> None:
        """Wait until all events are sent, and no longer than an event may take; what is left then is given up."""
        end = self._clock() + self._settings.timeout_seconds
        with self._waiting.all_tasks_done:
            while self._waiting.unfinished_tasks and (left := end - self._clock()) > 0:
                self._waiting.all_tasks_done.wait(left)
        late = f"they were not answered {self._settings.timeout_seconds:g} s after the end of the load"
        while True:
            try:
                self._waiting.get_nowait()
            except queue.Empty:
                break
            self._waiting.task_done()
            self._lose(late)
        with self._lock:
            is_late, self._is_given_up = self._is_sending and not self._is_given_up, self._is_sending
        if is_late:
            self._lose(late)

    def _run(self) -> None:
        while True:
            moment = self._waiting.get()
            with self._lock:
                self._is_sending, self._is_given_up = True, False
            try:
                self._try_to_send(moment)
            finally:
                with self._lock:
                    self._is_sending = False
                self._waiting.task_done()

    def _try_to_send(self, moment: Moment) -> None:
        if self._clock() < self._paused_until:
            self._lose(self._problem)
            return
        try:
            if self._send is None:
                self._send = self._open_send(self._settings)
            self._send(moment)
        except Exception as error:
            LOG.debug("An OpenLineage event was not sent.", exc_info=True)
            reason = self._explain(error)
            if not self._is_given_up:
                self._lose(reason)
            self._failures += 1
            if self._failures >= MOST_FAILURES:
                self._paused_until = self._clock() + PAUSE_SECONDS
        else:
            self._failures = 0

    def _explain(self, error: Exception) -> str:
        if isinstance(error, LakeError):
            return str(error).rstrip(".")
        if isinstance(error, ModuleNotFoundError) and not is_installed():
            return f"the package openlineage-python is not installed; {INSTALL}"
        from lakewriter.lineage.transports import explain

        return explain(error, self._settings)

    def _lose(self, problem: str) -> None:
        with self._lock:
            self._lost += 1
            # The first reason is the one to mend: the others may follow from it.
            self._problem = self._problem or problem


INSTALL: Final = f"install it with {describe_install('lineage')}"


def is_installed() -> bool:
    """Return whether OpenLineage's client is installed, which only pipelines with ``lineage`` need."""
    return importlib.util.find_spec("openlineage") is not None


def open_send(settings: Lineage) -> Send:
    """Return the function that makes and sends an event. The client takes a second to import: it is imported here."""
    from lakewriter.lineage.events import make_event
    from lakewriter.lineage.transports import open_transport

    transport: Any = open_transport(settings)

    def send(moment: Moment) -> None:
        transport.emit(make_event(moment))

    return send


@lru_cache(maxsize=16)
def get_sender(settings: Lineage) -> Sender:
    """Return this process's sender to a target, whatever loads send to it."""
    return Sender(settings, open_send)
