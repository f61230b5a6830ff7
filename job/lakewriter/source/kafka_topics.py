"""Ask Kafka's brokers about the topics of a source, and compare these with what was read of them before."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewriter.errors import CheckpointLostError, LakeError, SourceFailedError, SourceUnreachableError
from lakewriter.receipt import Cursor
from lakewriter.report import format_count, join_first
from lakewriter.source.databases.cursors import Edge
from lakewriter.source.spark_failures import SPARK_ERRORS, Origin
from lakewriter.source.stream_checkpoint import TOPICS, Checkpoint, Position
from lakewriter.spec.table_spec import Read, TableSpec

_NO_ID: Final = "A" * 22
"""Kafka's zero id in text: brokers before 2.8 have no ids of topics."""
_MOST_NAMED: Final = 3
_MOST_WRITTEN: Final = 20
"""A remedy writes out the offsets of so many partitions."""
_FIRST: Final = -2
"""The first offset of a partition, in Spark's options."""
_OFFSET: Final = "offset"
_WAITS: Final = {"default.api.timeout.ms": "15000", "request.timeout.ms": "15000"}
"""Milliseconds; the client's own minute would hold up a stop, and the other tables of a continuous run."""


@dataclass(frozen=True)
class PartitionOffsets:
    """The offsets that a partition has: the first, the one after the last, and the one after the last that is read,
    which is that of an open transaction's first message."""

    first: int
    end: int
    readable: int


@dataclass(frozen=True)
class Topics:
    """The topics of a source, with the number of their partitions, and their ids if the broker has any; the offsets of
    what is read of them, by ``topic/partition``, if they were asked for."""

    sizes: Mapping[str, int]
    ids: Mapping[str, str]
    held: Mapping[str, PartitionOffsets]


def list_kafka_reads(read: Read) -> Iterator[Read]:
    """Yield what a table reads from Kafka: itself, or views of its statement."""
    if read.kind.name == "kafka":
        yield read
    for view in read.views.values():
        yield from list_kafka_reads(view)


def ask_topics(session: SparkSession, options: Mapping[str, str], table: str, *, with_offsets: bool = False) -> Topics:
    """Ask the brokers for the topics that the options name. Raise ``SOURCE_FAILED`` if ``assign`` names a partition
    that does not exist: Spark reads nothing there, and says nothing."""
    jvm: Any = session._jvm
    given = lower_names(options)
    # Each of Spark's ways to name topics opens the same client, which signs in as Spark's readers do.
    strategy = jvm.org.apache.spark.sql.kafka010.SubscribePatternStrategy(given.get("subscribepattern", ""))
    settings = {name[len("kafka.") :]: value for name, value in options.items() if name.lower().startswith("kafka.")}
    # The client refuses one of the two that does not go with the other.
    admin = strategy.createAdmin(settings if settings.keys() & _WAITS.keys() else settings | _WAITS)
    try:
        assigned = json.loads(given["assign"]) if "assign" in given else {}
        names = sorted(assigned) or _list_names(given) or _list_matching(strategy, admin)
        described = admin.describeTopics(jvm.java.util.ArrayList(names)).allTopicNames().get()
        topics = {name: described.get(name) for name in names}
        ids = {name: str(topic.topicId().toString()) for name, topic in topics.items()}
        sizes = {name: int(topic.partitions().size()) for name, topic in topics.items()}
        partitions = [(name, n) for name, size in sizes.items() for n in assigned.get(name, range(size))]
        if absent := [f"{name}/{number}" for name, number in partitions if number >= sizes[name]]:
            raise SourceFailedError(
                f"table {table!r}: read.options 'assign' names {join_first(absent, _MOST_NAMED)}, and "
                + ", ".join(f"{name!r} has {format_count(size, 'partition')}" for name, size in sizes.items())
                + ", counted from 0.",
                remedy="Name partitions that exist.",
            )
        held = {}
        if with_offsets:
            held = _ask_offsets(jvm, admin, partitions, given.get("kafka.isolation.level", ""))
        return Topics(sizes, {name: number for name, number in ids.items() if number != _NO_ID}, held)
    finally:
        admin.close()


def lower_names(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options under names as they are looked up."""
    return {name.lower(): value for name, value in options.items()}


def _list_names(given: Mapping[str, str]) -> list[str]:
    return sorted({name.strip() for name in given.get("subscribe", "").split(",")} - {""})


def _list_matching(strategy: Any, admin: Any) -> list[str]:
    partitions, names = strategy.assignedTopicPartitions(admin).iterator(), set()
    while partitions.hasNext():
        names.add(str(partitions.next().topic()))
    return sorted(names)


def _ask_offsets(
    jvm: Any, admin: Any, partitions: Sequence[tuple[str, int]], level: str
) -> dict[str, PartitionOffsets]:
    kafka = jvm.org.apache.kafka
    keys = {f"{name}/{number}": kafka.common.TopicPartition(name, number) for name, number in partitions}

    def ask(spec: Any, isolation: Any) -> dict[str, int]:
        wanted = jvm.java.util.HashMap()
        for key in keys.values():
            wanted.put(key, spec)
        answer = admin.listOffsets(wanted, kafka.clients.admin.ListOffsetsOptions(isolation)).all().get()
        return {name: int(answer.get(key).offset()) for name, key in keys.items()}

    levels, spec = kafka.common.IsolationLevel, kafka.clients.admin.OffsetSpec
    firsts, ends = ask(spec.earliest(), levels.READ_UNCOMMITTED), ask(spec.latest(), levels.READ_UNCOMMITTED)
    readable = ends if level == "read_uncommitted" else ask(spec.latest(), levels.READ_COMMITTED)
    return {name: PartitionOffsets(firsts[name], ends[name], readable[name]) for name in keys}


@dataclass(frozen=True)
class TopicEdge:
    """The topic whose offset is a table's cursor; ``topic`` is its id, blank if the broker has none."""

    topic: str
    is_text_of_value: bool = False

    def mark(self, cursor: Cursor) -> Cursor:
        """Return the cursor with the topic that has counted it."""
        return cursor.model_copy(update={"topic": self.topic})


AnyEdge = Edge | TopicEdge
"""What a source says of the cursor of the rows that a load reads."""


def look_at_topics(
    session: SparkSession, options: Mapping[str, str], table: TableSpec, since: Cursor | None
) -> tuple[TopicEdge | None, tuple[str, ...]]:
    """Raise ``SOURCE_FAILED`` for what a single load would leave out in silence: a partition or a topic that does not
    exist, and messages above the cursor, ``since``, that the topic no longer has. Return the topic that counts the
    cursor, and a note on messages that are left out because the options ask for it."""
    given = lower_names(options)
    # A cursor on offsets is refused unless each read is of one partition.
    has_cursor = (table.cursor or "").lower() == _OFFSET and len(list(list_kafka_reads(table.read))) == 1
    if not (has_cursor or given.keys() & {"assign", "subscribepattern"}):
        return None, ()
    topics = ask_topics(session, options, table.id, with_offsets=has_cursor)
    if not topics.sizes:
        raise SourceFailedError(
            f"table {table.id!r}: no topic matches read.options 'subscribePattern', {given['subscribepattern']!r}.",
            remedy="Correct the pattern: it is Java's, and has to match the whole name. Or let the user see the topic.",
        )
    if not has_cursor:
        return None, ()
    ((name, held),) = topics.held.items()
    topic = topics.ids.get(name.rpartition("/")[0], "")
    gone = None if since is None or not since.text.isdecimal() else _compare_cursor(table, name, held, topic, since)
    if gone is None:
        return TopicEdge(topic), ()
    if _takes_loss(given):
        return TopicEdge(topic), (f"messages are left out, as failOnDataLoss asks: {gone}",)
    raise SourceFailedError(
        f"table {table.id!r}: the topic no longer has the messages that come next: {gone}.",
        remedy="Retention or a person has deleted them. To go on without them, set read.options failOnDataLoss: false "
        f"for one load. To load what there is again: lakewriter reset LAKE {table.id} --backfill --reason WHY.",
    )


def _compare_cursor(table: TableSpec, name: str, held: PartitionOffsets, topic: str, since: Cursor) -> str | None:
    """Say which messages above a cursor the partition no longer has; raise ``SOURCE_FAILED`` if another topic has
    counted it."""
    is_other = bool(since.topic and topic and since.topic != topic)
    why = f"its id is {topic}, and the cursor, {since.text}, is an offset of {since.topic}" if is_other else ""
    if not why and held.end <= int(since.text):
        why = f"it ends at {held.end}, and the cursor is {since.text}"
    if why:
        reset = f"lakewriter reset LAKE {table.id}"
        raise SourceFailedError(
            f"table {table.id!r}: the topic of {name} was made anew since the last load, or is another one: {why}. Its "
            "messages up to there would be left out.",
            remedy=f"Load it from its first message on: {reset} --cursor {held.first - 1} --reason WHY. Or load "
            f"everything again: {reset} --backfill --reason WHY.",
        )
    if held.first <= int(since.text) + 1:
        return None
    return f"{name} begins at {held.first}, and the last load has read up to {since.text}"


def _takes_loss(given: Mapping[str, str]) -> bool:
    return given.get("failondataloss", "").lower() == "false"


@dataclass
class StreamedTopics:
    """The topics of a continuous run's table, whose ``sources`` are the options of what it reads from Kafka.

    Spark's checkpoint has offsets alone, which any topic of the same name has. So the ids of the topics are kept in it
    as well, in a folder that is not Spark's.
    """

    checkpoint: Checkpoint
    table: str
    sources: Sequence[Mapping[str, str]]
    notes: list[str] = field(default_factory=list)
    """What is left out because the options ask for it, and what there is to wait for."""

    def require(self) -> None:
        """Raise what keeps the query from going on at the checkpoint's offsets, before Spark plans a batch by them.

        ``CHECKPOINT_LOST`` if the topics no longer have what comes next. ``SOURCE_UNREACHABLE`` if an open transaction
        hides it, which ends by itself.
        """
        with self._origin.explain_errors():
            if failure := self._find_failure():
                raise failure

    def explain(self, text: str) -> LakeError | None:
        """Return the error of a batch that was read, or has failed with ``text``, by the topics; None if they are as
        they were."""
        try:
            if not text and self._find_anew(self._ask(with_offsets=False), ()) is None:
                return None
            return self._find_failure()
        except SPARK_ERRORS as error:
            # What has failed first says more.
            return None if text else self._origin.make_error(error)

    @property
    def _origin(self) -> Origin:
        return self.checkpoint.origin

    def _ask(self, *, with_offsets: bool) -> list[Topics]:
        ask, session = ask_topics, self.checkpoint.spark
        return [ask(session, options, self.table, with_offsets=with_offsets) for options in self.sources]

    def _find_failure(self) -> LakeError | None:
        asked, positions = self._ask(with_offsets=True), self.checkpoint.read_positions()
        for given, topics in zip(self.sources, asked, strict=True):
            if not topics.sizes:
                self.notes.append(f"no topic matches {given['subscribepattern']!r} yet: the run waits for one")
        if failure := self._find_anew(asked, positions):
            return failure
        for position in positions:
            # The checkpoint numbers its sources, and names nothing but their topics.
            names = {name.rpartition("/")[0] for name in position.ends}
            pairs = zip(self.sources, asked, strict=True)
            matching = [(given, topics.held) for given, topics in pairs if names & topics.sizes.keys()]
            failures = [self._compare(position, held, given) for given, held in matching]
            if failures and all(failures):
                return failures[0]
        return None

    def _find_anew(self, asked: Sequence[Topics], positions: Sequence[Position]) -> LakeError | None:
        """Return the error for topics that have another id than those that were read; note the ids of the others."""
        noted = self.checkpoint.list_topics()
        read, present = {name for name, _ in noted}, {topic for topics in asked for topic in topics.ids.items()}
        anew = {name: number for name, number in present - noted if name in read}
        if anew and not all(map(_takes_loss, self.sources)):
            return self._make_anew_error(anew, noted, asked, positions)
        if anew:
            self.notes.append(f"{_describe_anew(anew, noted)}; its first messages are left out, as failOnDataLoss asks")
        self.checkpoint.add_topics(present - noted)
        return None

    def _make_anew_error(
        self,
        anew: Mapping[str, str],
        noted: set[tuple[str, str]],
        asked: Sequence[Topics],
        positions: Sequence[Position],
    ) -> LakeError:
        folder, reset = self._origin.checkpoint, f"lakewriter reset LAKE {self.table}"
        return CheckpointLostError(
            f"table {self.table!r}: {_describe_anew(anew, noted)}. The checkpoint's offsets are those of the old one, "
            "so that the first messages of the new one would be left out.",
            remedy=f"To load the new messages after those that are loaded, set startingOffsets: "
            f"{self._write_starts(anew, asked, positions)}, delete the checkpoint {folder!r}, and run {reset} --go-on "
            f"--reason WHY. To load everything again: {reset} --backfill --reason WHY. Where the messages have the "
            f"same offsets as before, as in a mirror, delete {folder + '/' + TOPICS!r} alone.",
        )

    def _write_starts(self, anew: Mapping[str, str], asked: Sequence[Topics], positions: Sequence[Position]) -> str:
        """Return the option by which a new query begins where this one is, and at the first message of new topics."""
        held = [name for topics in asked for name in topics.held]
        if all(name.rpartition("/")[0] in anew for name in held):
            return "earliest"
        if len(held) > _MOST_WRITTEN:
            return (
                f"the offsets in the checkpoint's last file of offsets/, and {_FIRST} for each partition of the new one"
            )
        starts = {name: start for position in positions for name, start in position.starts.items()}
        written = dict[str, dict[str, int]]()
        for name in held:
            topic, _, number = name.rpartition("/")
            written.setdefault(topic, {})[number] = _FIRST if topic in anew else starts.get(name, _FIRST)
        return f"'{json.dumps(written)}'"

    def _compare(
        self, position: Position, held: Mapping[str, PartitionOffsets], given: Mapping[str, str]
    ) -> LakeError | None:
        """Return the error for a position that the partitions no longer have, or do not have yet."""
        table, starts, ends = self.table, position.starts, position.ends
        hidden = [name for name, has in held.items() if has.readable < ends.get(name, 0) <= has.end]
        if hidden:
            return SourceUnreachableError(
                f"table {table!r}: {join_first(hidden, _MOST_NAMED)} has an open transaction below the checkpoint's "
                "offset, from when uncommitted messages were read.",
                remedy="The run waits until its producer ends it, or the broker does, by transaction.timeout.ms.",
            )
        if any(end < starts.get(name, 0) for name, end in ends.items()):
            return CheckpointLostError(
                f"table {table!r}: the checkpoint's batch {position.batch} is planned to end before it begins, by "
                "offsets that the topic had for a time.",
                remedy=f"No batch has read it: delete offsets/{position.batch} in {self._origin.checkpoint!r}, on a "
                f"disk .{position.batch}.crc beside it too, and start the run again.",
            )
        lost = [f"{name} is gone" for name in starts if name not in held]
        for name, has in held.items():
            if has.first > starts.get(name, 0):
                lost.append(f"{name} begins at {has.first}, and the next batch at {starts.get(name, 0)}")
            if has.end < ends.get(name, 0):
                lost.append(f"{name} ends at {has.end}, and the last batch at {ends[name]}")
        if lost and _takes_loss(given):
            self.notes.append(f"messages are left out, as failOnDataLoss asks: {join_first(lost, _MOST_NAMED)}")
        if not lost or _takes_loss(given):
            return None
        reset = f"lakewriter reset LAKE {table}"
        return CheckpointLostError(
            f"table {table!r}: the topics no longer have the messages that come next: {join_first(lost, _MOST_NAMED)}.",
            remedy="Retention or a person has deleted them. To go on without them, set read.options failOnDataLoss: "
            f"false for one run. To load what there is again: {reset} --backfill --reason WHY.",
        )


def _describe_anew(anew: Mapping[str, str], noted: set[tuple[str, str]]) -> str:
    name = min(anew)
    before = ", ".join(sorted(number for topic, number in noted if topic == name))
    more = f", and {format_count(len(anew) - 1, 'other topic')} too" if len(anew) > 1 else ""
    return f"topic {name!r} was deleted and made anew (its id was {before}, and is {anew[name]}){more}"
