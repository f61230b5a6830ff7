"""What befalls each call: nothing mostly, or its process's death, a lost answer, a refusal, a call that comes late."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from tests.simulation.scheduler import Killed, Scheduler

FAULTS: Final = ("kill", "killed", "lost", "unsent", "repeat", "denied", "conflict", "nonsense", "late", "stall")
"""Killed before the call, killed after it; its answer lost, itself lost; sent twice; 403; 409; a 2xx without its
fields; lost, and applied at some later time; held for a while."""

WRITES: Final = frozenset(
    {"PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "AbortMultipartUpload",
     "DeleteObject", "DeleteObjects", "CreateTable", "UpdateTable", "CreateDatabase", "BatchCreatePartition",
     "DeletePartition"}
)  # fmt: skip
CONDITIONAL: Final = frozenset({"PutObject", "CompleteMultipartUpload"})
WITHDRAWING: Final = ("HeadObject", "DeleteObject", "AbortMultipartUpload", "CompleteMultipartUpload")
UNCONDITIONAL: Final = ("BatchCreatePartition", "DeletePartition")
SORE: Final = (
    "PutObject", "GetObject", "ListObjectsV2", "ListMultipartUploads", *WITHDRAWING, *UNCONDITIONAL,
)  # fmt: skip
"""Calls of which a history may have one or two that go wrong again and again."""
MUST_CARRY: Final = {
    "CreateMultipartUpload": ("UploadId",),
    "UploadPart": ("ETag",),
    "CompleteMultipartUpload": ("Key", "ETag"),
    "PutObject": ("ETag",),
    "GetTable": ("Table",),
    "GetPartition": ("Partition",),
}
"""What an answer of 2xx must have to be one."""

Apply = Callable[[], Any]
"""Has a call's effect, and gives its answer or raises it."""


def refused(operation: str, status: int, code: str, message: str = "") -> ClientError:
    """An error answer, as the SDK raises it."""
    answer = {
        "Error": {"Code": code, "Message": message or code},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}},
    }
    return ClientError(answer, operation)  # type: ignore[arg-type]


@dataclass
class Weather:
    """Chances of each fault at each call, drawn once for a history so that some are calm and some are wild."""

    chances: dict[str, float] = field(default_factory=dict)
    stalls: tuple[float, ...] = (1.0, 3.0, 10.0, 600.0)
    outage: tuple[float, float] = (0.0, 0.0)
    """When nobody gets an answer, in seconds from the beginning."""
    sore: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """The fault of some calls, with its chance: what needs two processes at one point meets there."""

    @classmethod
    def drawn(cls, rng: random.Random, without: frozenset[str]) -> "Weather":
        """Some faults in some strength."""
        strength = rng.choice([0.003, 0.01, 0.02])
        usual = {"kill", "killed", "stall", "lost", "unsent"}
        chances = {}
        for fault in FAULTS:
            present = rng.random() < (0.7 if fault in usual else 0.2)
            chance = strength * rng.choice([0.5, 1.0, 2.0]) * (rng.choice([4, 4, 12]) if fault == "stall" else 1)
            if present and fault not in without:
                chances[fault] = chance
        # Who is held for weeks finds that the others have forgotten him.
        month = (3_000_000.0,) if rng.random() < 0.1 and "month" not in without else ()
        begin, has_outage = rng.random() * 10, rng.random() < 0.1 and "outage" not in without
        outage = (begin, begin + rng.choice([60, 150, 400])) if has_outage else cls.outage
        return cls(chances, (*cls.stalls, *month), outage, cls._sore(rng) if "sore" not in without else {})

    @staticmethod
    def sore_of(rng: random.Random) -> dict[str, tuple[str, float]]:
        """That of a load that is withdrawn: somebody waits there, while others go by."""
        return {rng.choice(WITHDRAWING): ("stall", rng.choice([0.3, 0.6]))}

    @staticmethod
    def _sore(rng: random.Random) -> dict[str, tuple[str, float]]:
        if rng.random() < 0.7:
            return {}
        names = rng.sample(SORE, rng.choice([1, 1, 2]))
        faults = ("stall", "stall", "stall", "lost", "unsent", "late")
        return {name: (rng.choice(faults), rng.choice([0.2, 0.5, 0.8])) for name in names}

    @property
    def total(self) -> float:
        """The chance that anything happens."""
        return sum(self.chances.values())


@dataclass
class Late:
    """A call that is still under way when its caller has given it up."""

    name: str
    apply: Apply


class Network:
    """The way of every call from a process to a service."""

    def __init__(self, scheduler: Scheduler, weather: Weather) -> None:
        self.scheduler, self.weather = scheduler, weather
        self.rng = scheduler.rng
        self.late: list[Late] = []
        self.met: Counter[str] = Counter()
        self.calls = 0
        self.story: list[str] | None = None
        self.accept: Callable[[dict[str, Any], str], Any] = lambda answer, _: answer
        self._digest = hashlib.sha256()

    @property
    def is_answered(self) -> bool:
        """Whether every call that was made by somebody who lived on had its answer at once or later."""
        return not set(self.met) - {"kill", "killed", "stall"}

    @property
    def digest(self) -> str:
        """Of all calls so far with what became of them."""
        return self._digest.hexdigest()[:16]

    @property
    def caller(self) -> str:
        """The process whose turn it is, ``{pipeline}#{number}``."""
        fiber = self.scheduler.current
        return fiber.process.name if fiber else ""

    def note(self, text: str) -> None:
        """One more line of the history."""
        self._digest.update(text.encode())
        if self.story is not None:
            self.story.append(f"{self.scheduler.now_us / 1e6:>14.3f} {text}")

    def call(self, operation: str, what: str, apply: Callable[[], Any], count: Callable[[str], None]) -> Any:
        """The answer to a call, or what the caller meets instead; ``count`` is told of each request sent."""
        scheduler = self.scheduler
        scheduler.check()
        self.calls += 1
        scheduler.now_us += 5_000 + int(self.rng.random() * 40_000)
        scheduler.pass_on()
        count(operation)
        fault = self._fault(operation)
        process = scheduler.current.process if scheduler.current else None
        try:
            answer = self._answer(fault, operation, apply, count)
        except BaseException as error:
            self.note(f"{process} {operation} {what} {fault or ''} -> {_told(error)}")
            raise
        self.note(f"{process} {operation} {what} {fault or ''} -> {_said(answer)}")
        scheduler.pass_on()
        return answer

    def _fault(self, operation: str) -> str | None:
        begin, end = self.weather.outage
        if begin <= self.scheduler.now_us / 1e6 < end:
            self.met["outage"] += 1
            return self.rng.choice(["lost", "unsent", "late"] if operation in WRITES else ["unsent"])
        fault = self._drawn(operation)
        if fault is None:
            return None
        fits = {"repeat": WRITES, "late": WRITES, "conflict": CONDITIONAL, "nonsense": frozenset(MUST_CARRY)}
        if operation not in fits.get(fault, {operation}):
            return None
        self.met[fault] += 1
        return fault

    def _drawn(self, operation: str) -> str | None:
        fault, chance = self.weather.sore.get(operation, ("", 0.0))
        if self.rng.random() < chance:
            self.met["sore"] += 1
            return fault
        if self.rng.random() >= self.weather.total:
            return None
        names = list(self.weather.chances)
        return self.rng.choices(names, [self.weather.chances[name] for name in names])[0]

    def _answer(self, fault: str | None, operation: str, apply: Apply, count: Callable[[str], None]) -> Any:
        match fault:
            case None:
                return apply()
            case "repeat":
                _tried(apply)
                count(operation)
                return apply()
            case "nonsense":
                answer = apply() if self.rng.random() < 0.5 else {}
                return self.accept({k: v for k, v in answer.items() if k not in MUST_CARRY[operation]}, operation)
            case "stall":
                early = apply() if self.rng.random() < 0.5 else None
                self.scheduler.sleep(self.rng.choice(self.weather.stalls) * self.rng.random())
                return apply() if early is None else early
            case _:
                raise self._failure(fault, operation, apply)

    def _failure(self, fault: str, operation: str, apply: Apply) -> BaseException:
        """What the caller meets where there is no answer for it; the call may be applied all the same."""
        if fault in {"killed", "lost"}:
            _tried(apply)
        if fault == "late":
            self.late.append(Late(operation, apply))
        if fault in {"kill", "killed"}:
            return self._die()
        if fault == "denied":
            return refused(operation, 403, "AccessDenied")
        if fault == "conflict":
            return refused(operation, 409, "ConditionalRequestConflict")
        return self._no_answer(operation)

    def _die(self) -> Killed:
        fiber = self.scheduler.current
        assert fiber is not None
        fiber.process.killed = True
        return Killed()

    def _no_answer(self, operation: str) -> Exception:
        kind = self.rng.randrange(4)
        if kind == 0:
            return ReadTimeoutError(endpoint_url="https://simulated")
        if kind == 1:
            return ConnectTimeoutError(endpoint_url="https://simulated")
        code, status = [("InternalError", 500), ("SlowDown", 503)][kind - 2]
        return refused(operation, status, code)

    def arrive(self) -> None:
        """One of the calls that were late is applied now."""
        if self.late:
            late = self.late.pop(self.rng.randrange(len(self.late)))
            self.note(f"late {late.name} -> {_tried(late.apply)}")


def _tried(apply: Callable[[], Any]) -> str:
    """What nobody hears the answer to."""
    try:
        return _said(apply())
    except ClientError as error:
        return _told(error)


def _told(error: BaseException) -> str:
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return type(error).__name__


def _said(answer: Any) -> str:
    if not isinstance(answer, dict):
        return "ok"
    shown = (answer.get(name) for name in ("ETag", "UploadId"))
    keys = [entry["Key"].rpartition("/")[2] for entry in [*answer.get("Contents", ()), *answer.get("Uploads", ())]]
    return " ".join([*(str(value) for value in shown if value), *keys]) or "ok"
