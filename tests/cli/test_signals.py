"""Signals to a process that handles them as a command does, without Spark."""

import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from lakewriter.cli.signals import Signals
from lakewriter.run.stop import Stopped

PROGRAM = """
import sys, threading, time
from lakewriter.cli.signals import Signals, handle_signals
from lakewriter.run.stop import Stopped, exit_code_of

def tell(text):
    print(text, file=sys.stderr, flush=True)

signals = Signals(tell, first="it stops.", go_on="Go on.", cancels=False)
try:
    with handle_signals(signals) as stop:
        print("ready", flush=True)
        {body}
    print("over", flush=True)
except Stopped as stopped:
    print(stopped, flush=True)
    sys.exit(exit_code_of(stopped.reason))
sys.exit(exit_code_of(stop.reason) if stop.is_asked else 0)
"""
WAITS = "stop.event.wait()"
READS = "\n        with stop.waiting():\n            sys.stdin.buffer.read()"
STARTS = "signals.after(sys.stdin.buffer.read)()"
"""Spark starts: the main thread waits for Java."""
IS_DEAF = "\n        lock = threading.Lock()\n        lock.acquire()\n        lock.acquire()"


def started(body: str, **how: object) -> subprocess.Popen[str]:
    program = PROGRAM.format(body=body)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Tests that run below nohup have the signal ignored, and so have the processes that they start.
    heard = {"preexec_fn": partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)}
    command = [sys.executable, "-c", program]
    process: subprocess.Popen[str] = subprocess.Popen(command, **pipes | heard | how)  # type: ignore[call-overload]
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


ONE = [
    # What the main thread does, the signal; what is printed, the exit code.
    (WAITS, signal.SIGINT, "over\n", 130),
    (WAITS, signal.SIGTERM, "over\n", 143),
    (WAITS, signal.SIGHUP, "over\n", 129),
    (READS, signal.SIGINT, "stopped by SIGINT\n", 130),
    (READS, signal.SIGTERM, "stopped by SIGTERM\n", 143),
    (STARTS, signal.SIGINT, "stopped by SIGINT\n", 130),
    (STARTS, signal.SIGHUP, "stopped by SIGHUP\n", 129),
]


@pytest.mark.parametrize(("body", "number", "printed", "code"), ONE)
def test_the_first_signal_asks_to_stop(body, number, printed, code):
    with started(body) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == (printed, code)
    assert err == f"{number.name}: it stops. A second signal ends it at once.\n"


def test_a_signal_that_a_start_takes_for_a_failure():
    """Py4J does so with what a handler raises in one of its calls."""
    signals = Signals(print, first="", go_on="", cancels=False)

    def start():
        signals.stop.reason = "SIGTERM"
        raise ConnectionError("while sending or receiving")

    with pytest.raises(Stopped, match="stopped by SIGTERM"):
        signals.after(start)()


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_it_at_once(second):
    """The main thread holds a lock and waits for it, so that no handler of Python's is called."""
    with started(IS_DEAF) as process:
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(second)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + second
    assert f"{second.name}: ended at once. Go on." in err


@pytest.mark.parametrize(("body", "signals"), [(WAITS, 1), (IS_DEAF, 2)])
def test_nobody_hears_what_it_says(body, signals):
    """A terminal that closes sends SIGHUP, and what is written to it fails."""
    with started(body) as process:
        assert process.stderr is not None
        process.stderr.close()
        for _ in range(signals):
            process.send_signal(signal.SIGHUP)
            time.sleep(1)
        assert process.wait(60) == 129


def test_signals_that_come_together_are_one():
    """A terminal signals each process of a group, and a launcher among them passes its own on."""
    with started(IS_DEAF) as process:
        for _ in range(3):
            process.send_signal(signal.SIGINT)
        time.sleep(1.5)
        assert process.poll() is None
        process.kill()


def test_a_signal_that_is_ignored_stays_so():
    """As nohup and a shell's background jobs are started."""
    with started("time.sleep(2)", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("over\n", "", 0)
