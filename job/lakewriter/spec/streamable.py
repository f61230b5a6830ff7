"""Check what a continuous run requires of a specification; no Spark, since synth checks it too."""

from collections.abc import Iterator

from lakewriter.errors import SpecInvalidError
from lakewriter.spec.given import require_read
from lakewriter.spec.pairs import CONTINUOUS, has
from lakewriter.spec.source_formats import OF_STREAMS
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Read


def note_stream_options(table: str, read: Read) -> Iterator[str]:
    """Yield a note on options of a table that a single load does not follow."""
    for view in read.views.values():
        yield from note_stream_options(table, view)
    takes = read.kind.has_files or read.kind.name == "kafka"
    names = [name for name in read.options if takes and name.lower() in OF_STREAMS]
    if names:
        yield (
            f"table {table!r}: read.options {', '.join(map(repr, names))}: without effect in a single load, which "
            "reads all that there is; for continuous runs (checkpoint:) alone."
        )


def require_continuous(spec: Spec) -> None:
    """Raise ``SPEC_INVALID`` for what a continuous run has no use for, or lacks."""
    for problem in unfit(spec):
        raise problem


def unfit(spec: Spec) -> Iterator[SpecInvalidError]:
    """Yield an error for each thing that keeps the pipeline from running continuously."""
    if spec.checkpoint is None:
        yield SpecInvalidError(
            "a continuous run needs a place for its checkpoints.",
            remedy="Set checkpoint: to a folder, or to any URI that Spark can write.",
        )
    if spec.source is not None:
        yield SpecInvalidError(
            "a continuous run reads streams of Spark; this pipeline reads messages.",
            remedy="Give it tables in place of 'source', or run without --continuous.",
        )
    for table in spec.tables:
        try:
            require_read(table)
        except SpecInvalidError as error:
            yield error
    yield from list_refused(spec)


def list_refused(spec: Spec) -> Iterator[SpecInvalidError]:
    """Yield an error for each setting of a table that a continuous run refuses."""
    for table in spec.tables:
        for setting, refusal in CONTINUOUS.items():
            if has(table, setting):
                yield SpecInvalidError(refusal.says.format(table=f"table {table.id!r}"), remedy=refusal.remedy)
        if (
            table.on_bad_row is not None
            and table.sets_aside
            and (table.collection is None or table.collection.column is None)
            and not table.read.has_reader
        ):
            yield SpecInvalidError(
                f"table {table.id!r} has on_bad_row: {table.on_bad_row.action}, which a continuous run has for files "
                "that the tasks read, and for JSON documents in a column.",
                remedy="Leave on_bad_row out: a bad row then stops the table.",
            )
