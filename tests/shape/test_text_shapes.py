"""The shapes of texts, whichever tasks and batches had them."""

import pyarrow as pa
import pytest

from lakewriter.receipt import Cursor, TextShapes
from lakewriter.shape.cursor import choose_higher, choose_lower, find_highest
from lakewriter.shape.text_shapes import MOST_SHAPES, find_shapes, join_shapes

SHAPES = [
    # texts, their shapes with the ends of each
    ([], {}),
    ([None], {}),
    (["31.01.2026", "01.02.2026", None], {"99.99.9999": ("01.02.2026", "31.01.2026")}),
    (["9", "10"], {"9": ("9", "9"), "99": ("10", "10")}),
    (["1.25", "-1.5"], {"9.9": ("1.25", "1.25"), "-9.9": ("-1.5", "-1.5")}),
    (["Mär", "mai"], {"aaa": ("Mär", "mai")}),
    (["2026-01-31T10:00:00+01:00"], {"9999-99-99a99:99:99+01:00": ("2026-01-31T10:00:00+01:00",) * 2}),
    (["10:00:00.5 -0330"], {"99:99:99.9 -0330": ("10:00:00.5 -0330",) * 2}),
]


@pytest.mark.parametrize(("texts", "ends"), SHAPES)
def test_shapes(texts, ends):
    assert find_shapes(pa.array(texts, pa.string())) == TextShapes(ends=ends)


def test_plain_text_has_many():
    many = TextShapes(is_many=True)
    texts = ["a" * number for number in range(MOST_SHAPES + 1)]
    assert find_shapes(pa.array(texts)) == many
    assert find_shapes(pa.array(texts * 100)) == many
    assert join_shapes(find_shapes(pa.array(texts[:-1])), find_shapes(pa.array(texts[-1:]))) == many
    assert join_shapes(many, None) == join_shapes(many, TextShapes(ends={"9": ("1", "2")})) == many


def test_the_higher_of_two_cursors_has_the_shapes_of_both():
    low, high = find_highest(pa.array(["10", "11"]), "c", 0), find_highest(pa.array(["9", "7"]), "c", 0)
    for cursor in (choose_higher(low, high), choose_higher(high, low)):
        assert cursor is not None
        assert cursor.shapes is not None
        assert cursor.shapes.ends == {"99": ("10", "11"), "9": ("7", "9")}
        assert cursor.without_shapes() == Cursor("string", "9")
    assert choose_lower(low, high) is choose_lower(high, low) is low
