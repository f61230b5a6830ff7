"""What an Iceberg table tells of a pipeline's loads, where its state is gone."""

from typing import Any, cast

import pyarrow as pa
import pytest

from lakewriter.aws import Clients
from lakewriter.operate import rebuild
from lakewriter.operate.rebuild import InCatalog, ask_catalog
from lakewriter.records.actions import FilesAction
from tests.iceberg.commits import Table
from tests.support.open_catalog import OpenCatalog
from tests.support.sample import in_turn
from tests.support.sign_ins import SIGN_INS


class Anything:
    """A pipeline, and a table of it that is appended to."""

    pipeline, latest = "p", None

    @property
    def layout(self) -> "Anything":
        return self

    def bind(self, **_: object) -> "Anything":
        return self


def asked(monkeypatch: pytest.MonkeyPatch, action: object, clients: Clients) -> InCatalog:
    monkeypatch.setattr(rebuild, "plan_catalog_action", lambda *_: action)
    return ask_catalog(cast(Any, Anything()), cast(Any, Anything()), clients)


@pytest.mark.parametrize("kind", ["glue", *in_turn(*SIGN_INS)])
def test_counted_loads(aws, bucket, monkeypatch, kind):
    with SIGN_INS.get(kind, OpenCatalog)(aws, bucket) as catalog:
        table = Table(aws, None if kind == "glue" else catalog)
        assert asked(monkeypatch, table.action, table.clients) == InCatalog()
        for number, job in enumerate("ab"):
            table.publish(table.intent(job, pa.table({"id": [1]}), committed=number), number + 1)
        assert asked(monkeypatch, table.action, table.clients) == InCatalog(2, frozenset({"p/a/a1", "p/b/b1"}))


def test_a_table_without_a_catalog_counts_none(aws, bucket, monkeypatch):
    assert asked(monkeypatch, FilesAction(), Table(aws).clients) == InCatalog()
