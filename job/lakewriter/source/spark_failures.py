"""Turn a failure of Spark into an error that a user can act on, cut to the line that helps."""

import difflib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lakewriter.errors import (
    LakeError,
    NoAnswerError,
    SourceFailedError,
    SourceUnreachableError,
    ValueUnrepresentableError,
    WorkerDiedError,
    from_text,
)
from lakewriter.source.databases.servers import SERVERS
from lakewriter.spec.source_formats import EXCEL, FORMATS, find_format

SPARK_ERRORS: Final = (PySparkException, Py4JError)
"""All that a call into Spark raises."""

_CONDITION: Final = re.compile(r"\[[A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?\] [^\n]*")
_CAUSE: Final = re.compile(r"^(?:: |Caused by: )[\w.$]*?([\w$]+): (\S[^\n]*)", re.MULTILINE)
_TRACEBACK: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t]+[^\n]*\n)+(\S[^\n]*)")
_VALUE: Final = re.compile(r"\[(CAST_INVALID_INPUT|CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE|[A-Z_]*CAST_WITHOUT\w*)")
_DIED: Final = re.compile(
    r"Python worker exited unexpectedly|ExecutorLostFailure|ExecutorDeadException|FetchFailedException|TaskResultLost"
    r"|Spark cannot rollback|Master removed our application|Max number of executor failures"
)
"""Spark's messages on a lost executor, and on what is lost with it: shuffled rows, a task's result. Spark makes these
again a few times, and then fails."""
_CHECKPOINT: Final = re.compile(r"\b(?:CheckpointFileManager|HDFSMetadataLog|OffsetSeqLog|CommitLog|StreamMetadata)\b")
"""Spark's classes that read and write checkpoints, in a trace."""
_DENIED: Final = re.compile(r"AccessDenied|AccessControlException|Permission denied|Status Code: 40[13]")
_UNREACHABLE: Final = re.compile(
    r"java\.net\.(?:Connect|UnknownHost|SocketTimeout|NoRouteToHost|Socket|PortUnreachable)Exception"
    r"|java\.nio\.channels\.(?:ClosedChannel|UnresolvedAddress)Exception|java\.util\.concurrent\.TimeoutException"
    r"|org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network|BrokerNotAvailable|LeaderNotAvailable"
    r"|NotLeaderOrFollower|CoordinatorNotAvailable|CoordinatorLoadInProgress|Retriable)Exception"
    r"|No resolvable bootstrap urls|Connection (?:refused|reset|timed out)|Communications link failure"
    r"|Unable to execute HTTP request|Status Code: (?:5\d\d|429)\b|\bSlowDown\b"
)
"""Words of Java's network, Kafka's client, JDBC drivers and the AWS SDK for a service that does not answer now."""
_UNKNOWN_FORMAT: Final = re.compile(r"DATA_SOURCE_NOT_FOUND\] Failed to find the data source: (\S+)")
_EXTERNAL_FORMAT: Final = re.compile(
    rf"Failed to find data source: ({'|'.join(entry.name for entry in FORMATS.values() if entry.package)})\b"
)
_FORMATS: Final = tuple(entry.name for entry in FORMATS.values() if entry.answers_at_once)
_FULL: Final = re.compile(r"No space left on device|\bENOSPC\b")
_TAIL: Final = re.compile(r"\s*SQLSTATE: \w{5}\s*$")

_OUT_OF_RANGE: Final = (
    "The topic has no such offset: its retention has removed it, the topic was made again, or it does not go so far "
    "yet. Set startingOffsets and endingOffsets to offsets that it has."
)
_REMEDIES: Final = (
    (
        "Parse Mode: FAILFAST",
        "A record does not fit the columns: correct it, or declare others under read.columns.",
    ),
    (
        "timestamp with local time zone",
        "Spark reads no timestamps with a time zone of ORC; the tasks do: leave out engine: spark, and read such a "
        "file of a continuous run as the table itself, not as a view of an sql: read.",
    ),
    (
        "This server does not host this topic-partition",
        "A topic of read.options 'subscribe' does not exist on these servers, or the user may not see it: make it, or "
        "correct the name.",
    ),
    ("OffsetOutOfRangeException", _OUT_OF_RANGE),
    (" is out of range for partition ", _OUT_OF_RANGE),
    ("Offsets out of range with no configured reset policy", _OUT_OF_RANGE),
    ("some data may have been missed", _OUT_OF_RANGE),
    (
        "Some data may have been lost",
        "The topics no longer have messages that come next. To go on without them, set read.options failOnDataLoss: "
        "false for one run; to load what there is again, begin a backfill (--backfill).",
    ),
    (
        "long overflow",
        "A message's time is beyond what a timestamp holds: it is read as milliseconds since 1970, and may have been "
        "sent as nanoseconds. Set startingOffsets above such messages, for a continuous run with a new checkpoint; and "
        "let the producer send milliseconds, or the topic take the broker's time (message.timestamp.type="
        "LogAppendTime).",
    ),
    (
        "offsets don't match what are assigned",
        "Give every partition of the topics an offset; -2 is its first and, where reading ends, -1 its last.",
    ),
    (
        'because the return value of "scala.Option.get()" is null',
        "Kafka's connector of Spark 4.1.0 and 4.1.1 fails so once where a run repeats the batch that it ended in "
        "(SPARK-55271), after the batch is committed: the run begins again by itself.",
    ),
    (
        "starting offset can't be latest for batch queries",
        "A single load reads what is there: leave startingOffsets out, or run --continuous for what comes next.",
    ),
)
"""Words of Spark's sources and of Kafka's client, and what to do about them."""

_DRIVERS: Final = {server.url.removeprefix("jdbc:").strip(":/"): server.package for server in SERVERS if server.package}
_PACKAGES: Final = "Set spark.jars.packages to {}, in spark-defaults.conf or with --packages of spark-submit."
_HADOOP_AWS: Final = "org.apache.hadoop:hadoop-aws:3.4.2"


def make_unreadable_error(path: str, error: Exception, table: str = "") -> SourceFailedError:
    """Return the error for a file that Arrow cannot read; ``table`` is named if it is not blank."""
    reader = f"table {table!r}: " if table else ""
    return SourceFailedError(
        f"{reader}{path!r} cannot be read: {str(error).rstrip('.')}.",
        remedy="Check that the file is there, whole, and may be read."
        if "(NoSuchBucket)" not in str(error)
        else "Check the bucket's name in path and source_root.",
    )


def find_useful_line(text: str) -> str:
    """Return the line of a Spark error that gives the reason: its condition, a task's error, or the deepest cause."""
    condition, traceback, causes = _CONDITION.search(text), _TRACEBACK.search(text), _CAUSE.findall(text)
    deepest = causes[-1][1] if causes else ""
    if condition and condition[0].startswith("[FAILED_READ_FILE"):
        return f"{_TAIL.sub('', condition[0])} {deepest if deepest not in condition[0] else ''}".strip()
    if condition:
        return _TAIL.sub("", condition[0])
    if traceback:
        return traceback[1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return deepest or (lines[0] if lines else "no reason given")


@dataclass(frozen=True)
class Origin:
    """A table and its source, for messages, from which ``secrets`` are removed."""

    table: str
    what: str
    secrets: tuple[str, ...] = field(default=(), repr=False)
    checkpoint: str = ""
    """The checkpoint of a continuous run, which records what was read; blank for a single load."""
    reasons: tuple[Callable[[str], LakeError | None], ...] = field(default=(), repr=False, compare=False)
    """Functions from Spark's text, which may be blank, to the error of what failed beside the tasks, or None."""

    def require(self) -> None:
        """Raise the error of what has failed beside the tasks, even if the tasks have not failed."""
        for reason in self.reasons:
            if (failure := reason("")) is not None:
                raise failure

    @contextmanager
    def explain_errors(self) -> Iterator[None]:
        """Raise the error for an exception of calls into Spark."""
        try:
            yield
        except SPARK_ERRORS as error:
            raise self.make_error(error) from error

    def make_error(self, error: Exception) -> LakeError:
        """Return the error for an exception of a call into Spark."""
        return self.explain(str(error))

    def explain(self, message: str) -> LakeError:
        """Return the error for Spark's text, which includes Java's trace if there is one."""
        text = self.redact(message)
        cause = next(filter(None, (reason(text) for reason in self.reasons)), None) or from_text(text)
        if cause is not None:
            return cause
        line = find_useful_line(text)
        if _VALUE.match(line):
            return ValueUnrepresentableError(
                f"table {self.table!r}: {line}", remedy="Correct the value, or declare another type under columns:."
            )
        if _DIED.search(text):
            return WorkerDiedError(
                f"table {self.table!r}: an executor or its Python worker died ({line}).",
                remedy="Run the same job id again; if it dies again, give the executors more memory.",
            )
        if self.checkpoint and _CHECKPOINT.search(text):
            return self.explain_checkpoint(text)
        message = f"table {self.table!r} cannot be read from {self.what}: {line}"
        if _UNREACHABLE.search(text) and not _DENIED.search(text):
            return SourceUnreachableError(message, remedy="Check that the source is up and the network path to it.")
        return SourceFailedError(message, remedy=find_remedy(text) or self._point_at_keys(line))

    def _point_at_keys(self, line: str) -> str:
        """Return where the file says what Spark cannot find; blank for other failures."""
        if "[TABLE_OR_VIEW_NOT_FOUND]" in line:
            return "A statement reads the views beside it, by their names: read: {sql: ..., views: {orders: {...}}}."
        return "Check 'url', and 'dbtable' or 'query', in read.options." if self.what.startswith("jdbc") else ""

    def explain_checkpoint(self, message: str) -> LakeError:
        """Return the error for Spark's text on the checkpoint."""
        text = self.redact(message)
        line = find_useful_line(text)
        failed = f"table {self.table!r}: the checkpoint {self.checkpoint!r} cannot be read or written: {line}"
        if _DENIED.search(text):
            return SourceFailedError(failed, remedy="Let the job read, write and delete its objects.")
        return NoAnswerError(failed, remedy="Check that its place is there and has room.")

    def redact(self, text: str) -> str:
        """Return the text with every secret's value replaced."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def find_remedy(text: str) -> str:
    """Return the remedy for a Spark error; blank if the error says all itself."""
    if _FULL.search(text):
        return (
            "The disk for Spark's scratch files is full: give them another folder (SPARK_LOCAL_DIRS, or "
            "spark.local.dir), more disk (deployment.spark.executor.disk), or sort, join and group fewer rows in sql:."
        )
    if "S3AFileSystem" in text or re.search(r'No FileSystem for scheme "?s3', text):
        return f"Outside EMR Spark reads S3 with a package only. {_PACKAGES.format(_HADOOP_AWS)}"
    if "No suitable driver" in text or re.search(r"ClassNotFoundException: [\w.]*([Dd]river|jdbc)", text):
        return f"The JDBC driver is not on Spark's class path. {_PACKAGES.format(_find_driver(text))}"
    if remedy := next((remedy for words, remedy in _REMEDIES if words in text), None):
        return remedy
    if external := _EXTERNAL_FORMAT.search(text):
        return f"Spark has {external[1]} in a package of its own. {_PACKAGES.format(find_format(external[1]).package)}"
    if unknown := _UNKNOWN_FORMAT.search(text):
        return _suggest_format(unknown[1].rstrip("."))
    return ""


def _suggest_format(name: str) -> str:
    if difflib.get_close_matches(name.lower(), ("excel", *EXCEL), 1, 0.7):
        return (
            "Spark reads no Excel files: save each sheet as CSV or Parquet, or set spark.jars.packages to a package "
            "that reads them."
        )
    near = difflib.get_close_matches(name.lower(), _FORMATS, 1, 0.6)
    if near and near[0] != name.lower():
        return f"Did you mean format: {near[0]}?"
    return f"Formats that are read: {', '.join(_FORMATS)}; others need spark.jars.packages."


def _find_driver(text: str) -> str:
    for database, package in _DRIVERS.items():
        if re.search(rf"\b{database}\b", text, re.IGNORECASE):
            return package
    return f"the driver's Maven coordinates (PostgreSQL: {_DRIVERS['postgresql']})"
