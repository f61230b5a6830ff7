"""The few tables that may share keys with one are those that a look at all of them gives."""

import random
from typing import cast

from lakewriter.spec.beside import list_layouts_beside
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

PLACES = ("", "a", "a/b", "a/b/c", "ab", "b", "b/a")
TEMPLATES = ("{date}_{part}.csv", "x/{seq}.csv", "a/{seq}.csv", "a/b{seq}.csv")


class Table:
    def __init__(self, layout):
        self.layout = layout


class Tables:
    def __init__(self, layouts):
        self.tables = tuple(map(Table, layouts))


def draw(rng: random.Random) -> Layout:
    template, purged = Template.parse(rng.choice(TEMPLATES)), rng.choice(PLACES)
    return Layout(rng.choice(PLACES), template, purged=purged, variants=(Template.parse(rng.choice(TEMPLATES)),))


def test_layouts_beside():
    rng, found = random.Random(0), 0
    for _ in range(200):
        spec = Tables([draw(rng) for _ in range(rng.randint(1, 6))])
        for table in spec.tables:
            prefix = table.layout.replaced_prefix
            others = [each.layout for each in spec.tables if each is not table]
            expected = {id(each) for each in others if any(
                start.startswith(prefix) or prefix.startswith(start) for start in each.starts
            )}  # fmt: skip
            beside = list_layouts_beside(cast(Spec, spec), cast(TableSpec, table))
            assert sorted(map(id, beside)) == sorted(expected)
            found += len(beside)
    assert found > 100
