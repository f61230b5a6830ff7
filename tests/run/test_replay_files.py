"""The files of a replay, looked at again once it is registered."""

from typing import Any

import pytest

from lakewriter.errors import ConcurrentLoadError
from lakewriter.records.facets import Removal
from lakewriter.run import replay as replaying
from lakewriter.run.replay import Chosen, Replay
from lakewriter.source.request import RowsRequest

PLANNED = (Removal(key="q/1.parquet", etag="a"), Removal(key="q/2.parquet", etag="b"))
CHANGED = [
    PLANNED[:1],
    (*PLANNED, Removal(key="q/3.parquet", etag="c")),
    # Written over: its rows are others, and it would stay where it is.
    (PLANNED[0], Removal(key="q/2.parquet", etag="c")),
]


@pytest.mark.parametrize("files", CHANGED)
def test_a_quarantine_that_has_changed_is_not_replayed(
    files: tuple[Removal, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: Any = None

    class Table:
        id = "s.t"
        stream = None

    table: Any = Table()
    monkeypatch.setattr(replaying, "find_files", lambda *_: files)
    monkeypatch.setattr(replaying, "read_quarantined", lambda *_: pytest.fail("nothing is to be read"))
    opener: Any = Replay(nothing, table, PLANNED, Chosen()).make_kind(nothing).opener
    with pytest.raises(ConcurrentLoadError, match=r"table s\.t: another load changed its quarantine"):
        opener(RowsRequest(nothing, table))
