"""Scan an input of messages once: the contents of its pieces, and the reason if it ended early."""

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
from lakewriter.spec.stream import StreamKey
from lakewriter.spec.table_spec import TableSpec


@dataclass(frozen=True)
class Messages:
    """An input of messages. ``failure`` is the reason why it ended early; blank if it did not."""

    store: AnyStore
    contents: Mapping[Piece, Contents]
    failure: str

    @property
    def events(self) -> list[Event]:
        """All events, in order."""
        return [event for contents in self.contents.values() for event in contents.events]

    @property
    def first_records(self) -> dict[StreamKey, tuple[int, str]]:
        """The position of each stream's first record, and a digest of its data."""
        records = [item for contents in self.contents.values() for item in contents.first_records.items()]
        return dict(reversed(records))

    @property
    def last_records(self) -> dict[StreamKey, int]:
        """The position of each stream's last record."""
        return {key: position for contents in self.contents.values() for key, position in contents.last_records.items()}

    @property
    def last_line(self) -> int:
        """The position of the last line that is not blank; -1 if there is none."""
        return max((contents.last_line for contents in self.contents.values()), default=-1)

    @property
    def is_cut(self) -> bool:
        """True if one of the files ends in the middle of a line."""
        files: dict[int, Contents] = defaultdict(Contents)
        for piece, contents in self.contents.items():
            files[piece.number].add(contents)
        return any(file.is_cut for file in files.values())

    def masked(self, mask: ConnectorMask) -> "Messages":
        """Return the same without the connector's secrets in the texts that people see."""
        if not any(contents.has_shown_texts for contents in self.contents.values()):
            return self
        return replace(self, contents={piece: part.masked(mask.of_texts) for piece, part in self.contents.items()})

    def open_feed(self, spark: SparkSession, stretch: Stretch, table: TableSpec) -> MessagesFeed:
        """Open the records of one table."""
        stream = stretch.stream
        sizes = {
            piece: contents.sizes[stream] for piece, contents in self.contents.items() if contents.may_have(stream)
        }
        return MessagesFeed(spark, self.store, stretch, sizes, table.id, sets_aside=table.sets_aside)

    def describe(self, catalog: Collection[StreamKey]) -> Iterator[str]:
        """Yield notes on faults of the input; ``catalog`` are the streams that the catalog names."""
        whole = Contents()
        for contents in self.contents.values():
            whole.add(contents)
        yield from describe_messages(whole, catalog)
        if self.failure:
            # Streams that ended before are complete, even if the source failed.
            yield f"After what was read, {self.failure}"


def look_through(spark: SparkSession, message_files: MessageFiles, failure: str) -> Messages:
    """Scan all of the files in tasks."""
    return Messages(message_files.store, scan_pieces(spark, message_files), failure)


def describe_messages(whole: Contents, catalog: Collection[StreamKey]) -> Iterator[str]:
    """Yield notes on faults of messages; ``catalog`` are the streams that the catalog names."""
    if whole.malformed:
        yield f"{format_count(whole.malformed, 'line')} of the input were no message, such as {whole.samples[0]!r}."
    if whole.mended:
        yield (
            f"{format_count(whole.mended, 'record')} of the input held values that JSON or Unicode has not, which were "
            f"replaced, such as {whole.replaced[0]!r}."
        )
    for (namespace, name), count in sorted(count_unknown_streams(whole, catalog).items(), key=str):
        shown = ".".join(part for part in (namespace, name) if part)
        yield f"{format_count(count, 'record')} of stream {shown!r}, which the catalog does not name, were left out."
