"""``backfill: n`` of a binding: a load begins it where the table is below it, and refuses a lower one.

The connector writes the files of a binding's backfill n under ``v{n}``, and its counter goes on.
"""

import json
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit import resets
from lakewriter.commit.resets import begin_backfill, settle_backfill
from lakewriter.errors import SpecInvalidError
from tests.load.materializations import Materialization, binding
from tests.load.test_adopted_files import LEFT, SCHEMA, put, run

pytestmark = pytest.mark.spark


class Shop(Materialization):
    """One binding of three documents, whose ``backfill`` the file gives."""

    def begin(self, backfill: int | None) -> None:
        """Write the file anew."""
        given = {} if backfill is None else {"backfill": backfill}
        self.write(binding("orders", "orders.jsonl", collection=SCHEMA, **given))

    def load_new(self, job: str) -> list[str]:
        """The keys that a load adds, without the table's folder."""
        before = set(self.data())
        assert self.load(job).status == "done"
        return sorted(key.removeprefix("orders/") for key in set(self.data()) - before)


@pytest.fixture
def shop(tmp_path, aws, bucket, spark):
    lake = Shop(tmp_path, aws, spark)
    lake.documents("orders.jsonl", [{"id": number} for number in (1, 2, 3)])
    lake.begin(None)
    return lake


FIRST = [
    # the file's backfill at the first load and at the second, and what the two write
    (None, None, "v0000000000/00000000000000000000.parquet", "v0000000000/00000000000000000001.parquet"),
    (2, 2, "v0000000002/00000000000000000000.parquet", "v0000000002/00000000000000000001.parquet"),
    (None, 1, "v0000000000/00000000000000000000.parquet", "v0000000001/00000000000000000001.parquet"),
    (1, 3, "v0000000001/00000000000000000000.parquet", "v0000000003/00000000000000000001.parquet"),
    (1, None, "v0000000001/00000000000000000000.parquet", "v0000000001/00000000000000000001.parquet"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("first", "second", "key", "next_key"), FIRST)
def test_load_begins_the_backfill_of_the_file(shop, first, second, key, next_key):
    shop.begin(first)
    [planned] = shop.planned()
    assert planned.key.endswith(f"/orders/{key}")
    said = f"the load begins backfill {first}: it reads everything again"
    assert (said in planned.warnings) == (first is not None)
    assert shop.load_new("a") == [key]
    shop.begin(second)
    assert shop.load_new("b") == [next_key]
    resets = [reset.what for reset in shop.control("orders").state.read().resets]
    asked = [number for number in dict.fromkeys((first, second)) if number is not None]
    assert resets == [f"backfill {number} begun" for number in asked]
    # The same again is no new backfill, and a job that is done stays so.
    assert [table.status for table in shop.load("b").tables] == ["already_done"]
    assert len(shop.control("orders").state.read().resets) == len(asked)


def test_lower_one_than_the_state_is_refused(shop):
    shop.begin(3)
    shop.load_new("a")
    shop.begin(2)
    said = "table orders: backfill is 2 in the file, and 3 by its state: readers take the highest one's files."
    [result] = shop.load("b").tables
    assert (result.code, result.message.startswith(said)) == ("SPEC_INVALID", True)
    [planned] = shop.planned()
    assert said in planned.error
    answer = CliRunner().invoke(main, ["check", str(shop.file), "--json"])
    [finding] = [each for each in json.loads(answer.stdout)["findings"] if each["probe"] == "place of orders"]
    assert (finding["status"], finding["message"].startswith(said)) == ("failed", True)


def test_lower_one_than_another_writers_is_refused(shop):
    put(shop, LEFT)
    shop.begin(1)
    [result] = shop.load("a").tables
    assert result.code == "SPEC_INVALID"
    assert "backfill is 1 in the file, and 2 among the files under its path" in result.message
    assert shop.control("orders").state.read().backfill == 0


MEANWHILE = [
    # what another process, with a file of its own, makes the backfill between the look at the state and its change
    (2, None),
    (3, "table orders: backfill is 2 in the file, and 3 by its state: readers take the highest one's files."),
]


@pytest.mark.parametrize(("number", "said"), MEANWHILE)
def test_another_process_is_faster(shop, monkeypatch, number, said):
    shop.load_new("a")
    control, look = shop.control("orders"), resets.change_by_hand

    def come_between(control, *arguments):
        monkeypatch.setattr(resets, "change_by_hand", look)
        settle_backfill(control, number, Clients)
        return look(control, *arguments)

    monkeypatch.setattr(resets, "change_by_hand", come_between)
    with nullcontext() if said is None else pytest.raises(SpecInvalidError) as refused:
        settle_backfill(control, 2, Clients)
    assert refused is None or refused.value.message == said
    assert control.state.read().backfill == number


ADOPTED = [
    # the file's backfill after the vendor's files of backfill 2 were adopted, and what is written
    (2, "v0000000002/00000000000000000004.parquet"),
    (3, "v0000000003/00000000000000000004.parquet"),
]


@pytest.mark.parametrize(("number", "key"), ADOPTED)
def test_after_the_vendors_files_are_adopted(shop, number, key):
    put(shop, LEFT)
    shop.begin(2)
    assert run(shop, "--write", "--stopped", "--from-start").exit_code == 0
    shop.begin(number)
    assert shop.load_new("a") == [key]


def test_reset_leaves_backfills_to_the_file(shop):
    shop.begin(1)
    shop.load_new("a")
    answer = CliRunner().invoke(main, ["reset", str(shop.file), "orders", "--backfill", "--reason", "all again"])
    assert answer.exit_code == 2
    assert "table orders has backfill: 1 in the file, which begins its backfills." in answer.stderr
    assert shop.control("orders").state.read().backfill == 1


def test_backfill_by_hand_counts_until_the_file_is_above_it(shop):
    shop.load_new("a")
    begin_backfill(shop.control("orders"), "by hand")
    shop.begin(1)
    assert shop.load_new("b") == ["v0000000001/00000000000000000001.parquet"]
