"""Check the source of a pipeline that reads messages: its files exist, or its connector can be run."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from lakewriter.commit.catalog import NoTable
from lakewriter.doctor.probe import Finding, Probe
from lakewriter.errors import SourceFailedError
from lakewriter.records.state import TableState
from lakewriter.report import format_count
from lakewriter.run.judging import plan_watched
from lakewriter.run.prepare import prepare
from lakewriter.source.messages.contents import Contents
from lakewriter.source.messages.message_input import describe_messages
from lakewriter.source.messages.splits import MessageFiles, cut_pieces, list_message_files, scan_piece
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import MessageSource
from lakewriter.spec.table_spec import TableSpec

_ELSEWHERE: Final = (
    "Run the connector where it is, land what it prints in S3, and name that in source.messages; or leave the stacks "
    "out and run the loads where the connector is."
)


_PIECES: Final = 4
"""A check looks at so many pieces of the files, of 16 MiB each where they are not compressed."""
_MOST_BYTES: Final = 64 * 1024 * 1024
_NOT_LOADED: Final = (
    "Nothing, if that is meant; otherwise add the stream to the catalog, or correct what writes the file."
)


def _start_no_spark() -> NoReturn:
    raise AssertionError("the schema of a stream is in its catalog")


@dataclass(frozen=True)
class MessageProbes:
    """Probes of ``source`` and of what its streams are expected to be; a pipeline with tables has none."""

    spec: Spec
    deployment: Deployment | None
    look: bool = False
    """True to read what the files begin with."""

    def list_probes(self) -> list[Probe]:
        """List the probes; none for a pipeline without messages."""
        source = self.spec.source
        if source is None:
            return []
        expecting = [table for table in self.spec.tables if table.stream is not None and table.expect]
        streams = [Probe(f"stream {table.id}", partial(self._check_expectations, table)) for table in expecting]
        return [Probe("messages", lambda: self._check_messages(source)), *streams]

    def _check_expectations(self, table: TableSpec) -> Iterator[Finding]:
        """Compare a stream's expectations with the columns and types of its schema; no message is read for that."""
        prepared = prepare(self.spec, table, TableState(), NoTable(), _start_no_spark)
        try:
            plan_watched(self.spec, table, prepared.shape)
        finally:
            prepared.feed.close()
        expectations = format_count(len(table.expect), "expectation")
        yield Finding(f"stream {table.id}", "ok", f"its schema has the columns of its {expectations}.")

    def _check_messages(self, source: MessageSource) -> Iterator[Finding]:
        if source.command:
            yield self._check_connector(source)
        elif source.paths == ("-",):
            yield Finding("messages", "ok", "messages come on standard input.")
        else:
            yield from self._look_at_messages(list_message_files(source.paths))

    def _look_at_messages(self, listed: MessageFiles) -> Iterator[Finding]:
        """Count each stream's messages at the beginning of the files, and say what a load would leave out."""
        size = sum(file.length for file in listed.files) / 1e6
        said = f"{format_count(len(listed.files), 'file')} of messages, {size:,.1f} MB"
        if not self.look:
            yield Finding("messages", "ok", f"{said}.")
            return
        pieces = cut_pieces(listed)
        # A compressed file is one piece, however long.
        looked_at = [piece for piece in pieces[:_PIECES] if piece.chunk.length <= _MOST_BYTES]
        whole = Contents()
        for piece in looked_at:
            whole.add(scan_piece(listed.store, piece))
        ids_by_stream = {table.stream.key: table.id for table in self.spec.tables if table.stream is not None}
        counts = [f"{whole.records[key]:,} of {table}" for key, table in ids_by_stream.items()]
        part = "" if len(looked_at) == len(pieces) else f", in {len(looked_at)} of {len(pieces):,} pieces"
        yield Finding("messages", "ok", f"{said}; records{part}: {', '.join(counts) or 'none'}.")
        for note in describe_messages(whole, ids_by_stream):
            yield Finding("messages", "warning", note, _NOT_LOADED)

    def _check_connector(self, source: MessageSource) -> Finding:
        """Look the connector up as a load does: on the PATH, or in the folder of lake.yaml if its name has a slash."""
        name = source.command[0]
        program = shutil.which(str(Path(source.folder, name)) if "/" in name else name)
        if program is None:
            raise SourceFailedError(
                f"the connector {name!r} is not on this machine, or is not executable.",
                remedy="Install it, or name its full path.",
            )
        if self.deployment not in (None, Deployment()):
            message = f"the connector {program} is on this machine; the loads that the stacks run, on EMR, have none."
            return Finding("messages", "warning", message, _ELSEWHERE)
        return Finding("messages", "ok", f"the connector is {program}.")
