"""Encode a few messages without keeping the result, to learn how large files of all of them become."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import pyarrow as pa

from lakewriter.documents.types import DATA
from lakewriter.encode.formats import make_encoder
from lakewriter.errors import ValueUnrepresentableError
from lakewriter.shape.shapers import AnyPlan, make_shaper
from lakewriter.source.messages.expected_size import FileSizes
from lakewriter.spec.encodings import FileEncoding


class _Count:
    """A sink that keeps nothing."""

    def __init__(self) -> None:
        self._size = 0

    def write(self, data: bytes) -> int:
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size


def learn_size(
    sizes: FileSizes, documents: Iterable[pa.RecordBatch], shape: AnyPlan, encoding: FileEncoding, start: datetime
) -> None:
    """Let ``sizes`` learn from documents, or from none if one cannot be written: its task will report that."""
    shaper, sink, taken, rows = make_shaper(shape, job_id="sample", start=start, first_index=1), _Count(), 0, 0
    shaped = []
    try:
        for batch in documents:
            taken += batch.column(DATA).nbytes
            rows += batch.num_rows
            shaped.append(shaper.shape(batch).rows)
        batches: Iterator[pa.RecordBatch] = iter(shaped)
        make_encoder(encoding).write(shape.schema, batches, sink, max(rows, 1))
    except ValueUnrepresentableError:
        return
    sizes.learn(taken, sink.tell())
