"""An input of messages, looked through once: its pieces with what each holds, and how it ended."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from lakewriter.report import format_count
from lakewriter.source.messages.connector_secrets import ConnectorMask
from lakewriter.source.messages.contents import Contents, Event, count_unknown_streams
from lakewriter.source.messages.splits import (
    MessageFiles,
    MessagesFeed,
    Piece,
    Stretch,
    scan_pieces,
)
from lakewriter.source.storage import AnyStore
from lakewriter.spec.specification import TableSpec
from lakewriter.spec.stream import StreamKey


@dataclass(frozen=True)
class Messages:
    """``failure`` says why the input ended early, blank where it did not."""

    store: AnyStore
    contents: Mapping[Piece, Contents]
    failure: str

    @property
    def events(self) -> list[Event]:
        """All events, in order."""
        return [event for own in self.contents.values() for event in own.events]

    @property
    def first_records(self) -> dict[StreamKey, tuple[int, str]]:
        """The place of each stream's first record, and a digest of its data."""
        records = [item for own in self.contents.values() for item in own.first_records.items()]
        return dict(reversed(records))

    @property
    def last_records(self) -> dict[StreamKey, int]:
        """The place of each stream's last record."""
        return {key: place for own in self.contents.values() for key, place in own.last_records.items()}

    @property
    def last_line(self) -> int:
        """The place of the last line that is not blank, -1 where there is none."""
        return max((own.last_line for own in self.contents.values()), default=-1)

    @property
    def is_cut(self) -> bool:
        """Whether one of the files ends in the middle of a line."""
        files: dict[int, Contents] = defaultdict(Contents)
        for piece, own in self.contents.items():
            files[piece.number].add(own)
        return any(file.is_cut for file in files.values())

    def masked(self, mask: ConnectorMask) -> "Messages":
        """The same without the connector's secrets in what is shown of it."""
        if not any(own.says_something for own in self.contents.values()):
            return self
        return replace(self, contents={piece: own.masked(mask.of_texts) for piece, own in self.contents.items()})

    def open_feed(self, spark: SparkSession, stretch: Stretch, table: TableSpec) -> MessagesFeed:
        """The records of one table."""
        stream = stretch.stream
        sizes = {piece: own.sizes[stream] for piece, own in self.contents.items() if own.has(stream)}
        return MessagesFeed(spark, self.store, stretch, sizes, table.id, sets_aside=table.sets_aside)

    def describe(self, known: Collection[StreamKey]) -> Iterator[str]:
        """What is odd about it."""
        whole = Contents()
        for contents in self.contents.values():
            whole.add(contents)
        yield from describe_messages(whole, known)
        if self.failure:
            # Streams that had come to their end before are done, whatever became of the source.
            yield f"After what was read, {self.failure}"


def look_through(spark: SparkSession, found: MessageFiles, failure: str) -> Messages:
    """All of the files, read by tasks."""
    return Messages(found.store, scan_pieces(spark, found), failure)


def describe_messages(whole: Contents, known: Collection[StreamKey]) -> Iterator[str]:
    """What is odd about messages; ``known`` are the streams of the catalog."""
    if whole.malformed:
        yield f"{format_count(whole.malformed, 'line')} of the input were no message, such as {whole.samples[0]!r}."
    if whole.mended:
        yield (
            f"{format_count(whole.mended, 'record')} of the input held values that JSON or Unicode has not, which were "
            f"replaced, such as {whole.replaced[0]!r}."
        )
    for (namespace, name), count in sorted(count_unknown_streams(whole, known).items(), key=str):
        shown = ".".join(part for part in (namespace, name) if part)
        yield f"{format_count(count, 'record')} of stream {shown!r}, which the catalog does not name, were left out."
