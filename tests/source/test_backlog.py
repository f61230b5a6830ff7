"""Records of a stream before a load takes them: in memory, then in files, cut where a load ends."""

import itertools

import pytest

from lakewriter.documents.types import DATA, ROW
from lakewriter.source.messages import backlog
from lakewriter.source.messages.backlog import Backlog, read_piece
from lakewriter.source.messages.chunks import Records


def make_records(place, number, emitted_at=None, changes=None):
    return Records(("n", "users"), [place], [b'{"id":%d}' % number], [emitted_at], [changes])


@pytest.fixture
def filled(tmp_path, monkeypatch):
    """Records at places 10, 20 ... 100, of which a file holds three."""
    monkeypatch.setattr(backlog, "PIECE_BYTES", 3 * 72)
    own = Backlog(tmp_path, itertools.count())
    for number in range(1, 11):
        own.add(make_records(10 * number, number))
    return own


def read(pieces):
    found = []
    for piece in pieces:
        found.append(read_piece(piece.path).column(ROW).to_pylist())
        piece.path.unlink()
    return found


# (what is asked for, the places in each file)
WHOLE = [
    (0, []),
    (30, []),
    (31, [[10, 20, 30]]),
    (60, [[10, 20, 30]]),
    (1 << 62, [[10, 20, 30], [40, 50, 60], [70, 80, 90]]),
]
ALL = [
    (0, []),
    (5, []),
    (11, [[10]]),
    (30, [[10, 20]]),
    (61, [[10, 20, 30], [40, 50, 60]]),
    (95, [[10, 20, 30], [40, 50, 60], [70, 80, 90]]),
    (1 << 62, [[10, 20, 30], [40, 50, 60], [70, 80, 90], [100]]),
]


@pytest.mark.parametrize(("before", "places"), WHOLE)
def test_files_before_a_place(filled, before, places):
    assert read(filled.take(before)) == places


@pytest.mark.parametrize(("before", "places"), ALL)
def test_all_before_a_place_and_then_the_rest(filled, tmp_path, before, places):
    assert read(filled.take_all(before)) == places
    files = [*places, *read(filled.take_all(1 << 62))]
    assert [place for file in files for place in file] == list(range(10, 101, 10))
    assert (filled.size, list(tmp_path.iterdir())) == (0, [])


def test_records_are_as_they_came(tmp_path):
    own = Backlog(tmp_path, itertools.count())
    own.add(make_records(1, 1, emitted_at=5))
    own.add(make_records(2, 2, changes=b"[]"))
    own.flush()
    (piece,) = own.take(3)
    rows = read_piece(piece.path).to_pylist()
    assert [list(row.values()) for row in rows] == [[1, '{"id":1}', 5, None], [2, '{"id":2}', None, "[]"]]
    assert rows[0][DATA] == '{"id":1}'
