"""What a run over Kafka does by what the topics have: goes on, waits, ends, or leaves messages out and says so.

A real broker is asked in tests/interop; here are the answers, and what Spark's checkpoint says of the offsets.
"""

from dataclasses import dataclass, field

import pytest

from lakewriter.errors import CheckpointLostError, LakeError
from lakewriter.receipt import Cursor
from lakewriter.source import kafka_topics
from lakewriter.source.kafka_topics import PartitionOffsets, StreamedTopics, Topics, look_at_topics
from lakewriter.source.request import RowsRequest
from lakewriter.source.spark_failures import Origin
from lakewriter.source.spark_rows import open_batch
from lakewriter.source.stream_checkpoint import Checkpoint, Position
from lakewriter.source.table_frames import Loaded
from lakewriter.spec.table_spec import Read
from tests.source.tables import table

LOSS, PATTERN = {"failondataloss": "FALSE"}, {"subscribepattern": "t.*"}


@dataclass
class Kept:
    """A checkpoint that is in memory."""

    positions: list[Position]
    topics: set[tuple[str, str]]
    origin: Origin = field(default_factory=lambda: Origin("t", "kafka", checkpoint="/ck"))
    spark: None = None

    def read_positions(self):
        return self.positions

    def list_topics(self):
        return set(self.topics)

    def add_topics(self, topics):
        self.topics |= set(topics)


def has(ids, **held):
    """Topics with these ids, and with the offsets of partitions such as t_0."""
    offsets = {name.replace("_", "/"): PartitionOffsets(*three) for name, three in held.items()}
    return Topics(dict.fromkeys(ids, 2), {name: number for name, number in ids.items() if number}, offsets)


def at(batch, starts, ends):
    read = [{name.replace("_", "/"): offset for name, offset in offsets.items()} for offsets in (starts, ends)]
    return Position(batch, *read)


DONE = [at(4, {"t_0": 3}, {"t_0": 3})]
PLANNED = [at(5, {"t_0": 3}, {"t_0": 8})]
BOTH = [at(4, {"t_0": 3, "u_0": 9}, {"t_0": 3, "u_0": 9})]
STREAMS = {
    # what: options, the checkpoint's positions, the ids in it, what the broker has, the error's code, a part of what is
    # said, the ids that are kept then
    "nothing was read": ({}, [], "", has({"t": "A"}, t_0=(0, 5, 5)), "", "", "tA"),
    "first messages are gone before a first read": ({}, [], "", has({"t": "A"}, t_0=(3, 5, 5)), "", "", "tA"),
    "more came": ({}, DONE, "tA", has({"t": "A"}, t_0=(0, 5, 5)), "", "", "tA"),
    "read messages are gone": ({}, DONE, "tA", has({"t": "A"}, t_0=(3, 5, 5)), "", "", "tA"),
    "all are read and gone": ({}, DONE, "tA", has({"t": "A"}, t_0=(3, 3, 3)), "", "", "tA"),
    "a checkpoint of before": ({}, DONE, "", has({"t": "A"}, t_0=(0, 5, 5)), "", "", "tA"),
    "a broker without ids": ({}, DONE, "", has({"t": ""}, t_0=(0, 5, 5)), "", "", ""),
    "a new topic": ({}, DONE, "tA", has({"t": "A", "u": "B"}, t_0=(0, 5, 5), u_0=(0, 1, 1)), "", "", "tA uB"),
    "a new partition": ({}, DONE, "tA", has({"t": "A"}, t_0=(0, 5, 5), t_1=(0, 1, 1)), "", "", "tA"),
    "two topics of one name, of two servers": ({}, DONE, "tA tB", has({"t": "B"}, t_0=(0, 5, 5)), "", "", "tA tB"),
    "made anew, and longer": (
        {}, DONE, "tA", has({"t": "B"}, t_0=(0, 5, 5)), "CHECKPOINT_LOST",
        "topic 't' was deleted and made anew (its id was A, and is B)", "tA",
    ),
    "made anew, and from its first message on": (
        {}, DONE, "tA", has({"t": "B"}, t_0=(0, 5, 5)), "CHECKPOINT_LOST",
        "set startingOffsets: earliest, delete the checkpoint '/ck', and run lakewriter reset LAKE t --go-on", "tA",
    ),
    "made anew beside another": (
        {}, BOTH, "tA uB", has({"t": "C", "u": "B"}, t_0=(0, 5, 5), u_0=(0, 9, 9)), "CHECKPOINT_LOST",
        """set startingOffsets: '{"t": {"0": -2}, "u": {"0": 9}}', delete""", "tA uB",
    ),
    "made anew beside many": (
        {}, DONE, "tA", has({"t": "C", "u": "B"}, **{f"u_{number}": (0, 1, 1) for number in range(21)}),
        "CHECKPOINT_LOST", "the offsets in the checkpoint's last file of offsets/, and -2 for each partition", "tA",
    ),
    "made anew, before a first batch": ({}, [], "tA", has({"t": "B"}, t_0=(0, 1, 1)), "CHECKPOINT_LOST", "B)", "tA"),
    "made anew, as asked": (
        LOSS, DONE, "tA", has({"t": "B"}, t_0=(0, 5, 5)), "", "its first messages are left out", "tA tB",
    ),
    "made anew by a broker without ids, and shorter": (
        {}, DONE, "", has({"t": ""}, t_0=(0, 2, 2)), "CHECKPOINT_LOST", "t/0 ends at 2, and the last batch at 3", "",
    ),
    "retention has passed what is planned next": (
        {}, DONE, "tA", has({"t": "A"}, t_0=(4, 5, 5)), "CHECKPOINT_LOST",
        "t/0 begins at 4, and the next batch at 3", "tA",
    ),
    "retention has passed what is planned": (
        {}, PLANNED, "tA", has({"t": "A"}, t_0=(4, 9, 9)), "CHECKPOINT_LOST", "begins at 4", "tA",
    ),
    "retention, as asked": (LOSS, PLANNED, "tA", has({"t": "A"}, t_0=(4, 9, 9)), "", "t/0 begins at 4", "tA"),
    "retention of a new partition": (
        {}, DONE, "tA", has({"t": "A"}, t_0=(0, 5, 5), t_1=(1, 2, 2)), "CHECKPOINT_LOST",
        "t/1 begins at 1, and the next batch at 0", "tA",
    ),
    "a topic of a pattern is gone": (
        {}, BOTH, "tA uB", has({"t": "A"}, t_0=(0, 5, 5)), "CHECKPOINT_LOST", "u/0 is gone", "tA uB",
    ),
    "planned past an open transaction": (
        {}, PLANNED, "tA", has({"t": "A"}, t_0=(0, 8, 4)), "SOURCE_UNREACHABLE", "t/0 has an open transaction", "tA",
    ),
    "read past an open transaction": (
        LOSS, DONE, "tA", has({"t": "A"}, t_0=(0, 3, 1)), "SOURCE_UNREACHABLE", "t/0 has an open transaction", "tA",
    ),
    "an open transaction above": ({}, DONE, "tA", has({"t": "A"}, t_0=(0, 5, 4)), "", "", "tA"),
    "planned backwards": (
        LOSS, [at(5, {"t_0": 3}, {"t_0": 1})], "tA", has({"t": "A"}, t_0=(0, 5, 5)), "CHECKPOINT_LOST",
        "delete offsets/5 in '/ck'", "tA",
    ),
    "no topic yet": (PATTERN, [], "", has({}), "", "no topic matches 't.*' yet: the run waits for one", ""),
}  # fmt: skip


def names(topics):
    return " ".join(sorted(f"{name}{number}" for name, number in topics))


@pytest.mark.parametrize(
    ("options", "positions", "before", "topics", "code", "text", "after"), STREAMS.values(), ids=list(STREAMS)
)
def test_streams(monkeypatch, options, positions, before, topics, code, text, after):
    monkeypatch.setattr(kafka_topics, "ask_topics", lambda *_, **__: topics)
    checkpoint = Kept(positions, {(pair[0], pair[1]) for pair in before.split()})
    streamed = StreamedTopics(checkpoint, "t", [options])  # type: ignore[arg-type]
    try:
        streamed.require()
    except LakeError as error:
        got, said = error.code, str(error)
    else:
        got, said = "", " ".join(streamed.notes)
    assert got == code
    assert text in said
    assert text or not said
    assert names(checkpoint.topics) == after
    # What a batch is asked once it is read: whether its topics are the same ones.
    failure = streamed.explain("")
    assert (failure is not None) == (code != "" and "made anew (" in said)


def test_a_statement_over_two_servers(monkeypatch):
    """Each view's topics are compared with the positions that may be its own."""
    answers = {"a": has({"t": "A"}, t_0=(0, 5, 5)), "b": has({"u": "B"}, u_0=(4, 5, 5))}
    monkeypatch.setattr(kafka_topics, "ask_topics", lambda _, options, *__, **___: answers[options["at"]])
    positions = [at(4, {"t_0": 3}, {"t_0": 3}), at(4, {"u_0": 3}, {"u_0": 3})]
    streamed = StreamedTopics(Kept(positions, set()), "t", [{"at": "a"}, {"at": "b"}])  # type: ignore[arg-type]
    failure = streamed.explain("the query ended")
    assert "u/0 begins at 4, and the next batch at 3" in str(failure)


CURSORS = [
    # the options, the cursor and its topic, what the broker has, a part of the error or of the note, the topic after
    ({}, None, has({"t": "A"}, t_0=(2, 5, 5)), "", "A"),
    ({}, ("4", "A"), has({"t": "A"}, t_0=(5, 5, 5)), "", "A"),
    ({}, ("4", ""), has({"t": "A"}, t_0=(0, 9, 9)), "", "A"),
    ({}, ("4", "A"), has({"t": ""}, t_0=(0, 9, 9)), "", ""),
    ({}, ("-1", ""), has({"t": "B"}, t_0=(2, 9, 9)), "", "B"),
    ({}, ("4", "A"), has({"t": "B"}, t_0=(0, 9, 9)), "its id is B, and the cursor, 4, is an offset of A", None),
    ({}, ("4", ""), has({"t": ""}, t_0=(0, 4, 4)), "it ends at 4, and the cursor is 4", None),
    ({}, ("4", "A"), has({"t": "A"}, t_0=(6, 9, 9)), "begins at 6, and the last load has read up to 4", None),
    (LOSS, ("4", "A"), has({"t": "A"}, t_0=(6, 9, 9)), "begins at 6, and the last load has read up to 4", "A"),
    (LOSS, ("4", "A"), has({"t": "B"}, t_0=(6, 9, 9)), "its id is B", None),
]


@pytest.mark.parametrize(("options", "cursor", "topics", "text", "after"), CURSORS)
def test_cursors_of_single_loads(monkeypatch, options, cursor, topics, text, after):
    monkeypatch.setattr(kafka_topics, "ask_topics", lambda *_, **__: topics)
    since = None if cursor is None else Cursor("int64", cursor[0], topic=cursor[1])
    one = table(format="kafka").model_copy(update={"cursor": "offset"})
    try:
        edge, notes = look_at_topics(None, options, one, since)  # type: ignore[arg-type]
    except LakeError as error:
        edge, notes = None, (str(error),)
    assert text in " ".join(notes)
    assert bool(text) == bool(notes)
    assert (edge and edge.mark(Cursor("int64", "9")).topic) == after


SOURCES = [
    # what is read, whether the broker is asked: Spark itself says that a topic of subscribe does not exist
    ({"subscribe": "t"}, None, False),
    ({"assign": '{"t":[0]}'}, None, True),
    (PATTERN, None, True),
    ({"subscribe": "t"}, "timestamp", False),
]


@pytest.mark.parametrize(("options", "cursor", "asks"), SOURCES)
def test_what_single_loads_ask(monkeypatch, options, cursor, asks):
    asked = list[bool]()

    def answer(*_, **__):
        asked.append(True)
        return has({"t": "A"})

    monkeypatch.setattr(kafka_topics, "ask_topics", answer)
    one = table(format="kafka").model_copy(update={"cursor": cursor})
    assert look_at_topics(None, options, one, None) == (None, ())  # type: ignore[arg-type]
    assert bool(asked) == asks


def test_a_pattern_without_a_topic(monkeypatch):
    monkeypatch.setattr(kafka_topics, "ask_topics", lambda *_, **__: has({}))
    with pytest.raises(LakeError, match=r"no topic matches read.options 'subscribePattern', 't\.\*'"):
        look_at_topics(None, PATTERN, table(format="kafka"), None)  # type: ignore[arg-type]


@pytest.mark.spark
def test_checkpoint(spark, tmp_path):
    """The files of Spark's offset log: https://spark.apache.org/docs/4.1.1/streaming/ names no format; Spark 4.1 wrote
    such ones."""
    checkpoint = Checkpoint(spark, Origin("t", "kafka", checkpoint=str(tmp_path / "ck")))
    assert (checkpoint.read_positions(), checkpoint.list_topics()) == ([], set())
    checkpoint.add_topics([("t", "A-_b"), ("u.v", "B")])
    checkpoint.add_topics([("t", "A-_b"), ("t", "C")])
    assert checkpoint.list_topics() == {("t", "A-_b"), ("t", "C"), ("u.v", "B")}
    assert checkpoint.read_positions() == []

    def write(name, *lines):
        path = tmp_path / "ck" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(("v1", *lines)), "utf-8")

    write("sources/0/0", '{"t":{"0":2}}')
    write("offsets/0", "{}", '{"t":{"0":5}}', "7")
    # Planned and not done: the batch is to be read from the start of the first.
    assert checkpoint.read_positions() == [Position(0, {"t/0": 2}, {"t/0": 5})]
    write("commits/0", "{}")
    assert checkpoint.read_positions() == [Position(0, {"t/0": 5}, {"t/0": 5})]
    write("offsets/9", "{}", '{"t":{"0":5}}', "8")
    write("offsets/10", "{}", '{"t":{"0":6,"1":1}}', "9")
    write("commits/9", "{}")
    assert checkpoint.read_positions() == [Position(10, {"t/0": 5}, {"t/0": 6, "t/1": 1})]


@pytest.mark.spark
def test_batches_ask_once_they_are_read(spark):
    """Whether the topics are the same ones; the rows of a batch that has read others are not bound."""
    asked = list[str]()

    def explain(text):
        asked.append(text)
        return CheckpointLostError("made anew")

    origin = Origin("t", "kafka", checkpoint="/ck", reasons=(explain,))
    request = RowsRequest(lambda: spark, table(format="kafka"))
    feed = open_batch(Loaded(spark.range(3)), request, origin, 1)
    with pytest.raises(CheckpointLostError, match="made anew"):
        feed.run(lambda _, batches: iter([str(sum(batch.num_rows for batch in batches))]))
    assert asked == [""]


def test_reads_of_a_table():
    kafka = Read(format="KAFKA", options={"subscribe": "t"})
    inner = Read(sql="SELECT 1", views={"k": kafka})
    both = Read(sql="SELECT 1", views={"c": Read(format="csv", path="a.csv"), "i": inner, "k": kafka})
    assert list(kafka_topics.list_kafka_reads(both)) == [kafka, kafka]
