"""Receipts as an intent names them: few at hand in the order of the files, many in parts, small parts joined."""

import random
from unittest.mock import patch

import pytest

from lakewriter.commit.control import Control
from lakewriter.commit.kept_receipts import keep_receipts
from lakewriter.naming import ControlKeys
from lakewriter.receipt import ReceiptPart
from lakewriter.receipts import parts as receipt_parts
from lakewriter.receipts.parts import Bounds, PartWriter, ReceiptTexts
from tests.commit.memory import Memory, World
from tests.receipts.files import make_receipt

LENGTH = len(make_receipt(0).model_dump_json())
KEEPING = [
    # files of tasks that returned receipts, of tasks that wrote a part each; a part's bytes, how many parts are joined;
    # receipts at hand, files of the parts
    (0, [], 10, 200, 0, []),
    (3, [], 3, 200, 3, []),
    (4, [], 3, 200, 0, [3, 1]),
    (1, [2], 3, 200, 0, [2, 1]),
    (2, [1] * 5, 100, 5, 0, [1, 1, 1, 1, 1, 2]),
    (2, [1] * 5, 100, 4, 0, [7]),
    (0, [1] * 70, 100, 4, 0, [70]),
]


@pytest.mark.parametrize(("returned", "spilled", "most", "joined", "at_hand", "parts"), KEEPING)
def test_few_receipts_stay_at_hand_and_many_go_into_parts(returned, spilled, most, joined, at_hand, parts):
    store = Memory(World(), lambda: None, random.Random(0), 0)
    control = Control(store, ControlKeys("data", "p"), "s.t", pause=lambda _: None)
    numbers, written = iter(range(1000)), list[ReceiptPart]()
    for count in spilled:
        writer = PartWriter("tasks/", 10**9, lambda key, body: control.write_once(key, body))
        written += [part for _ in range(count) for part in writer.add(make_receipt(next(numbers)))]
        written += writer.flush()
    texts = [make_receipt(next(numbers)).model_dump_json() for _ in range(returned)][::-1]
    with patch.object(receipt_parts, "BOUNDS", Bounds(part=most * LENGTH, parts=joined)):
        kept = keep_receipts(control, "driver/", ReceiptTexts(texts), written)
    assert (len(kept.at_hand), [part.totals.files for part in kept.parts]) == (at_hand, parts)
    assert [receipt.seq for receipt in kept.at_hand] == sorted(receipt.seq for receipt in kept.at_hand)
    files = sum(spilled) + returned
    assert sorted(kept, key=lambda receipt: receipt.seq) == [make_receipt(seq) for seq in range(files)]
    assert kept.totals.rows == 10 * files
