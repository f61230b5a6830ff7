"""Which tables' keys may lie under the path of another table and be told by their names."""

import random
from typing import cast

import pytest

from lakewriter.commit.control import Control
from lakewriter.commit.store import Store
from lakewriter.naming import ControlKeys
from lakewriter.operate.unknown_objects import Neighbours
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout

LAYOUTS = {
    "own": Layout("data/a", Template.parse("part-{seq}.parquet")),
    "inside": Layout("data/a/b", Template.parse("part-{seq}.parquet")),
    "beside": Layout("data/ab", Template.parse("part-{seq}.parquet")),
    # Without a directory of its own a table is told by its whole key.
    "around": Layout("", Template.parse("data/a{seq}.parquet")),
    "first": Layout("", Template.parse("{date}/x-{seq}.parquet")),
    "below": Layout("", Template.parse("data/a/x-{seq}.parquet")),
    "elsewhere": Layout("", Template.parse("data/b/x-{seq}.parquet")),
}


def make_neighbours(names: list[str]) -> Neighbours:
    store, keys = cast(Store, None), ControlKeys("", "p")
    controls = {name: Control(store, keys, name, layout=LAYOUTS[name]) for name in names}
    return Neighbours(controls | {"placed by its catalog": Control(store, keys, "placed by its catalog")})


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("data/a/", {"inside", "around", "first", "below"}),
        ("data/a/b/", {"inside", "around", "first"}),
        ("data/ab/", {"beside", "around", "first"}),
        ("data/b/", {"first", "elsewhere"}),
        ("other/", {"first"}),
    ],
)
def test_neighbours(prefix, expected):
    names = list(LAYOUTS)
    random.Random(prefix).shuffle(names)
    found = make_neighbours(names).list_under(prefix, without="own")
    assert len(found) == len(expected)
    assert {name for name, layout in LAYOUTS.items() if layout in found} == expected
