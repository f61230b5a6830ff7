"""Keep what the tasks of a table have returned: a few receipts in the intent itself, many in parts."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from lakewriter.commit.at_once import MOST, call_all
from lakewriter.commit.control import Control
from lakewriter.receipt import ReceiptPart
from lakewriter.receipts import parts as receipt_parts
from lakewriter.receipts.parts import PartWriter, Receipts, ReceiptTexts

_SMALL: Final = 16
"""A part is small if its object has less than one in so many of the bytes that a part's JSON may have. Gzip shrinks
JSON to a tenth, so two small parts fit into one."""


def keep_receipts(control: Control, prefix: str, texts: ReceiptTexts, parts: Sequence[ReceiptPart]) -> Receipts:
    """Return the receipts as an intent can name them: all at hand, or all in parts, which are created under ``prefix``.

    ``texts`` and ``parts`` are what the tasks have returned. A great many small parts are joined.
    """
    bounds = receipt_parts.BOUNDS
    if not parts and texts.size <= bounds.part:
        return Receipts(tuple(sorted(texts, key=lambda receipt: receipt.seq)))
    writer = PartWriter(prefix, bounds.part, lambda key, body: control.write_once(key, body, keep=True))
    is_small = [len(parts) > bounds.parts and part.length < bounds.part // _SMALL for part in parts]
    # Rule parts-of-tasks
    kept_parts = [part for part, small in zip(parts, is_small, strict=True) if not small]
    for receipt in texts:
        kept_parts += writer.add(receipt)
    left, source = (
        (part for part, small in zip(parts, is_small, strict=True) if small),
        Receipts((), (), control.read_body),
    )
    while some := list(islice(left, MOST)):
        for part, lines in zip(some, call_all(source.read_lines, some), strict=True):
            kept_parts += writer.add_part(lines, part.totals)
    # Rule part-of-the-rest
    kept_parts += writer.flush()
    return Receipts((), tuple(kept_parts), control.read_body)
