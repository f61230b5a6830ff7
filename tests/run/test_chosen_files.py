"""Which files a load may read, by the record of those that its table's earlier loads have read."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.errors import ConcurrentLoadError, SpecInvalidError
from lakewriter.naming import ControlKeys
from lakewriter.records.input_records import Inputs
from lakewriter.records.state import TableState
from lakewriter.run import chosen_files
from lakewriter.run.chosen_files import Chosen, choose_inputs, compares_files, is_as_listed
from lakewriter.spec.listed_files import ListedFile
from lakewriter.spec.table_spec import Mode, TableSpec
from tests.commit.memory import Memory, World
from tests.simulation.lakes import BUCKET, make_lake

NO_SPARK: Any = None
ONE, TWO = (ListedFile(f"s3://source/{name}.csv", 1, name, 1) for name in ("one", "two"))


def make_table(**read: Any) -> TableSpec:
    destination = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/data", "region": "us-east-1"}
    entry = {"format": "csv", "path": "s3://source/", "columns": "id BIGINT"} | read
    return make_lake("files", "p", destination, [{"table": "t", "schema": "s", "read": entry}]).spec.tables[0]


def open_control() -> Control:
    return Control(Memory(World(), lambda: None, random.Random(0), 0), ControlKeys("", "p"), "s.t")


@pytest.mark.parametrize("inputs", [None, Inputs(committed=1)])
def test_new_files_of_a_table_whose_record_lacks_loads(inputs):
    with pytest.raises(SpecInvalidError, match="nobody has noted all files that its 2 loads so far have read"):
        choose_inputs(open_control(), make_table(files="new"), TableState(committed=2, inputs=inputs), NO_SPARK)


COMPARED = [
    # the mode, other keys, whether the read has files: new; whether files are compared with those that were read
    (Mode.APPEND, {}, False, True),
    (Mode.APPEND, {}, True, True),
    (Mode.APPEND, {"cursor": "id"}, False, False),
    (Mode.MERGE, {}, True, True),
    (Mode.MERGE, {}, False, False),
    (Mode.REFRESH, {}, False, False),
    (Mode.REPLACE_PARTITIONS, {}, False, False),
    (Mode.OVERWRITE, {}, False, False),
]


@pytest.mark.parametrize(("mode", "keys", "is_new", "compares"), COMPARED)
def test_modes_whose_files_are_compared(mode, keys, is_new, compares):
    table = make_table(**({"files": "new"} if is_new else {})).model_copy(update={"mode": mode, **keys})
    assert compares_files(table) is compares


@pytest.mark.parametrize(("read", "is_exclusive"), [({"files": "new"}, True), ({}, False)])
def test_a_load_that_goes_by_its_list_is_bound_beside_no_other(read, is_exclusive):
    chosen = Chosen(make_table(**read), (ONE, TWO), (TWO,), before=Inputs(committed=0))
    attempt = Attempt("p", "a", "a1", datetime(2024, 3, 1, tzinfo=UTC), timedelta(days=30))
    intent = chosen.make_intent(open_control(), attempt, 1, is_exact=True)
    assert intent is not None
    assert (intent.exclusive, [part.files for part in intent.adds]) == (is_exclusive, [1])


WRITTEN = [
    # what is there once the load has read its files; whether that ends it
    ((ONE, TWO), False),
    ((ONE, TWO, ListedFile("s3://source/three.csv", 1, "three", 2)), False),
    ((ONE, ListedFile(TWO.uri, 2, "other", 2)), True),
    # the same contents, written once more
    ((ONE, ListedFile(TWO.uri, 1, "two", 5_000_000)), True),
    # one that an earlier load has read
    ((ListedFile(ONE.uri, 2, "other", 2), TWO), False),
]


@pytest.mark.parametrize(("now", "ends"), WRITTEN)
def test_a_file_that_is_written_while_the_load_reads_it(now, ends, monkeypatch):
    table = make_table(files="new")
    monkeypatch.setattr(chosen_files, "_list_all", lambda *_: {0: (now, True)})
    chosen = Chosen(table, (ONE, TWO), (TWO,), before=Inputs(committed=0))
    if not ends:
        assert is_as_listed(chosen, NO_SPARK, is_of_spark=False)
        return
    with pytest.raises(ConcurrentLoadError, match=r"two\.csv came or changed while the load read its source"):
        is_as_listed(chosen, NO_SPARK, is_of_spark=False)
