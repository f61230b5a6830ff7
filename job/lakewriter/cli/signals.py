"""Signals to a command that loads: the first one asks it to stop, the second one ends it at once.

Python calls a handler only between two steps of the main thread, which may be in a long call, and a handler may not
take a lock that the main thread holds. So the interpreter writes each signal's number to a pipe, and a thread reads it.
"""

import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType
from typing import Final, TypeVar

from lakewriter.run.stop import Stop, Stopped, exit_code_of
from lakewriter.source.spark_jobs import cancel_jobs

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

ONE_SIGNAL_SECONDS: Final = 0.5
"""Signals that come so soon after the first count as the same: a terminal signals each process of a group, and a
launcher that is one of them passes its own on."""

_CANCEL_SECONDS: Final = 0.5
_WAKE: Final = b"\0"
_SHOW_CURSOR: Final = b"\x1b[?25h"
"""It shows the cursor of a terminal that the progress display has hidden."""

Result = TypeVar("Result")


class Signals:
    """The signals of one command. ``cancels`` is off where the work in hand is to end first.

    ``tell`` shows a line to the user. ``go_on`` are the words on how to go on after the second signal.
    """

    def __init__(self, tell: Callable[[str], None], *, first: str, go_on: str, cancels: bool = True) -> None:
        self.stop = Stop()
        self._tell, self._first, self._go_on, self._cancels = tell, first, go_on, cancels
        self._handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._over = threading.Event()
        self._asked_at = 0.0

    def install(self) -> None:
        """Handle the signals, but for those that this process was started to ignore, as ``nohup`` does.

        To be called again once Spark runs, since PySpark replaces the handler of SIGINT. Only the main thread can.
        """
        if threading.current_thread() is threading.main_thread():
            for number in self._handled:
                signal.signal(number, self._interrupt)

    def after(self, start: Callable[[], Result]) -> Callable[[], Result]:
        """Call ``start``, which starts Spark, and install the handlers again after it. A signal ends the wait for Java,
        if the main thread waits: a load has bound nothing by then."""

        def started() -> Result:
            is_main = threading.current_thread() is threading.main_thread()
            with self.stop.waiting() if is_main else nullcontext():
                try:
                    session = start()
                except Exception as error:
                    # Py4J takes what a signal raises in a call for a failure of its connection.
                    self.stop.check(error)
                    raise
            self.install()
            return session

        return started

    def watch(self, reader: int) -> None:
        """Read the numbers of signals until the command is over."""
        while not self._over.is_set():
            if select.select([reader], [], [], _CANCEL_SECONDS)[0]:
                for number in os.read(reader, 16):
                    if number in SIGNALS:
                        self._take(signal.Signals(number).name)

    def end(self) -> None:
        """End the command."""
        self._over.set()

    def _interrupt(self, number: int, _: FrameType | None) -> None:
        self.stop.reason = self.stop.reason or signal.Signals(number).name
        if self.stop.may_interrupt:
            self.stop.may_interrupt = False
            raise Stopped(self.stop.reason)

    def _take(self, name: str) -> None:
        if self._asked_at:
            if time.monotonic() - self._asked_at >= ONE_SIGNAL_SECONDS:
                self._end_at_once(name)
            return
        self._asked_at = time.monotonic()
        self.stop.ask(name)
        if self._cancels:
            threading.Thread(target=self._cancel, name="cancel", daemon=True).start()
        try:
            self._tell(f"{name}: {self._first} A second signal ends it at once.")
        except OSError:
            _print_nowhere()

    def _cancel(self) -> None:
        """Cancel Spark's jobs, and those that begin after it, until the command is over."""
        while not self._over.is_set():
            cancel_jobs()
            self._over.wait(_CANCEL_SECONDS)

    def _end_at_once(self, name: str) -> None:
        """End this process; Java ends when it is gone, and Python workers end with Java."""
        show = _SHOW_CURSOR if sys.stderr.isatty() else b""
        with suppress(OSError):
            os.write(2, show + f"\n{name}: ended at once. {self._go_on}\n".encode())
        os._exit(exit_code_of(name))


def _print_nowhere() -> None:
    """Let no print fail from here on: the terminal is gone, or the reader of the pipe."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 2)
    if stat.S_ISCHR(os.fstat(1).st_mode):
        # Standard output may be a file or a pipe that somebody reads still.
        os.dup2(null, 1)
    os.close(null)


@contextmanager
def handle_signals(signals: Signals) -> Iterator[Stop]:
    """Handle the signals, and yield the ``Stop`` that they set. Outside the main thread nothing sets it."""
    if threading.current_thread() is not threading.main_thread():
        yield signals.stop
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watching = threading.Thread(target=signals.watch, args=(reader,), name="signals", daemon=True)
    watching.start()
    signals.install()
    try:
        yield signals.stop
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
        signals.end()
        os.write(writer, _WAKE)
        watching.join()
        os.close(reader)
        os.close(writer)
