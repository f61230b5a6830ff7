"""A request to end a load early, by a signal or by a caller that runs the load."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakewriter.exit_codes import EXIT_FAILED


class Stopped(Exception):  # noqa: N818 - not a failure: somebody asked for it
    """The work was asked to stop and did, before it published anything."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"stopped by {reason}")
        self.reason = reason


class Stop:
    """A request to stop, once made: ``reason`` is a signal's name, such as ``SIGTERM``, or other words.

    A signal handler may set the reason, but may not call ``ask``, which takes a lock. ``may_interrupt`` is on while the
    main thread waits for input, where nothing but an exception ends the wait.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self.reason = ""
        self.may_interrupt = False

    def ask(self, reason: str) -> None:
        """Ask for it; the first reason stays."""
        self.reason = self.reason or reason
        self.event.set()

    @property
    def is_asked(self) -> bool:
        """True if somebody has asked."""
        return bool(self.reason)

    def check(self, cause: Exception | None = None) -> None:
        """Raise ``Stopped`` where somebody has asked; ``cause`` is what the work ended with."""
        if self.is_asked:
            raise Stopped(self.reason) from cause

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a signal raise ``Stopped`` while the main thread waits for input."""
        self.may_interrupt = True
        try:
            self.check()
            yield
        finally:
            self.may_interrupt = False


def exit_code_of(reason: str) -> int:
    """Return the exit code of a process that has stopped: 128 and the signal's number."""
    return 128 + signal.Signals[reason] if reason in signal.Signals.__members__ else EXIT_FAILED
