"""What tasks count of the rows they read, and how it is compared with the server's figures."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewriter.errors import SourceDisagreesError
from lakewriter.source.databases.database_server import Column
from lakewriter.source.databases.figures import ColumnFigures, Figures, Meter, add_figures
from lakewriter.source.databases.reconciliation import Reconciliation
from lakewriter.source.databases.servers import find_server

MICROS = pa.timestamp("us", tz="UTC")
BATCH = pa.RecordBatch.from_arrays(
    [
        pa.array([2**62, 2**62, 2**62, None], pa.int64()),
        pa.array([Decimal("1.50"), Decimal("-0.25"), None, None], pa.decimal128(38, 2)),
        pa.array([0.5, 0.25, None, -0.375], pa.float64()),
        pa.array(["a1", "Z99", None, "ž"], pa.string()),
        pa.array([date(2024, 1, 1), None, None, date(1582, 10, 10)], pa.date32()),
        pa.array([datetime(2024, 1, 1, tzinfo=UTC), None, None, None], MICROS),
        pa.array([b"x", None, None, None], pa.binary()),
    ],
    ["i", "d", "f", "t", "day", "at", "b"],
)


def measure(*batches, depth="columns"):
    meter = Meter(depth, 7)
    assert list(meter.measure(meter.count(batches))) == list(batches)
    (text,) = meter.report()
    return Figures.parse(text)


def test_figures_of_values():
    found = add_figures([measure(BATCH), measure(BATCH.slice(0, 1), BATCH.slice(3, 1)), measure()])
    assert found.rows == 6
    assert [(c.values, c.lower, c.upper, c.total) for c in found.columns] == [
        (4, str(2**62), str(2**62), str(4 * 2**62)),
        (3, "-0.25", "1.50", "2.75"),
        (5, "-0.375", "0.5", "0.5"),
        (5, "Z99", "ž", None),
        (4, "1582-10-10", "2024-01-01", None),
        (2, "2024-01-01 00:00:00.000000+00:00", "2024-01-01 00:00:00.000000+00:00", None),
        (2, None, None, None),
    ]


def test_counts_alone():
    found = measure(BATCH, depth="counts")
    assert (found.rows, [c.values for c in found.columns]) == (4, [3, 2, 3, 3, 2, 1, 1])
    assert {(c.lower, c.total, c.missing) for c in found.columns} == {(None, None, 0)}


COLUMNS = [Column("id", "int8"), Column("t", "text"), Column("f", "float8")]
KINDS = {0: pa.int64(), 1: pa.string(), 2: pa.float64()}
ANSWER = ("3", "3", "1", "9", "15", "2", "Z", "a", "2", "-1", "2", "1")
READ = Figures(
    3,
    [
        ColumnFigures(3, "1", "9", "15"),
        ColumnFigures(2, "Z", "a"),
        ColumnFigures(2, "-1", "2", "1.0000000001", 3.0),
    ],
)


class Answers:
    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def read_rows(self, sql):
        self.asked.append(sql.strip())
        return [self.answers.pop(0)]


def reconcile(connection, read=READ, depth="columns", is_fixed=True):
    server = find_server("jdbc:postgresql:d")
    asked = Reconciliation("s.t", server, depth, COLUMNS, KINDS, "public.t", "", connection, is_fixed)
    asked.begin()
    asked.read = read
    asked.compare()


def test_question_and_agreement():
    connection = Answers(ANSWER)
    reconcile(connection)
    assert connection.asked == [
        'SELECT COUNT(*), COUNT("id"), MIN("id"), MAX("id"), SUM("id")::text, COUNT("t"), '
        'MIN(("t"::text) COLLATE "C"), MAX(("t"::text) COLLATE "C"), COUNT("f"), MIN("f"), MAX("f"), SUM("f")::text '
        "FROM public.t"
    ]


DIFFERENCES = [
    # place in the answer, the server's figure: the message
    (0, "4", "the row count is '4' in PostgreSQL, and '3' in the rows that were read."),
    (1, "2", "the count of values of column 'id' is '2' in PostgreSQL, and '3' in the rows"),
    (2, "0", "the minimum of column 'id' is '0' in PostgreSQL, and '1' in the rows"),
    (4, "16", "the sum of column 'id' is '16' in PostgreSQL, and '15' in the rows"),
    (7, "b", "the maximum of column 't' is 'b' in PostgreSQL, and 'a' in the rows"),
    (11, "1.1", "the sum of column 'f' is '1.1' in PostgreSQL, and '1.0000000001' in the rows"),
]


@pytest.mark.parametrize(("place", "figure", "message"), DIFFERENCES)
def test_difference_is_named(place, figure, message):
    answer = (*ANSWER[:place], figure, *ANSWER[place + 1 :])
    with pytest.raises(SourceDisagreesError) as caught:
        reconcile(Answers(answer))
    assert message in str(caught.value)


def test_rows_that_change_meanwhile_are_no_difference():
    reconcile(Answers(("4", "3", "2", "2"), ("2", "2", "2", "1")), depth="counts", is_fixed=False)
    with pytest.raises(SourceDisagreesError, match="row count is '5'"):
        reconcile(Answers(("4", "3", "2", "2"), ("5", "3", "2", "2")), depth="counts", is_fixed=False)


def test_values_that_do_not_fit_are_not_compared():
    columns = [READ.columns[0], ColumnFigures(2, "Z", "Z", missing=1), READ.columns[2]]
    reconcile(Answers(ANSWER), read=Figures(3, columns))
