"""Loads of Iceberg tables that die at each point of docs/failures.md; then the same job id again, or the next load.

A few die by SIGKILL, in a process of their own; from the others everything is cut off, which leaves the same.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import yaml
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from tests.iceberg.commits import rest_options, stores, strays
from tests.iceberg.tables import SCHEMA, IcebergLake
from tests.load.lakes import BUCKET, PREFIX, calls, completes, table, uploads_part, writes
from tests.support.call import Call
from tests.support.narrow import need
from tests.support.open_catalog import CLIENT_ID, CLIENT_SECRET, OpenCatalog
from tests.support.s3_rules import moto_bucket
from tests.support.s3_tables import UNREFERENCED, S3TablesCatalog

pytestmark = pytest.mark.spark

EVENTS = "id,at\n" + "".join(f"{number},{number}\n" for number in range(10))
KILLED = -9


def manifest(call: Call) -> bool:
    """A PutObject of a manifest or of a list of them."""
    return call.method == "PUT" and call.key.endswith(".avro")


def notes(call: Call) -> bool:
    """A PutObject of the note of an upload."""
    return call.method == "PUT" and "/uploads/" in call.key


POINTS = {
    # where a load dies: the matching call, how many of them pass before, the phase left behind, the snapshots that a
    # next load makes instead of the same job id
    "before begin": (writes("/begin.json"), 0, None, 1),
    "before it is registered": (writes("/state.json"), 0, None, 1),
    "while staging": (uploads_part, 0, None, 1),
    "intent written, state not": (writes("/state.json"), 1, None, 1),
    "state intended": (completes, 0, "intended", 2),
    "while completing": (completes, 1, "intended", 2),
    "completed, state not": (writes("/state.json"), 2, "intended", 2),
    "before the manifest": (manifest, 0, "uploaded", 2),
    "before the manifest list": (manifest, 1, "uploaded", 2),
    "after the commit, before the report": (writes(".report.json"), 0, "uploaded", 2),
    "report written, state not": (writes("/state.json"), 3, "uploaded", 2),
    "state closed": (writes("/outcome.json"), 0, None, 2),
}
OF_GLUE = {
    "before the database": (calls("glue:CreateDatabase"), 0, None, 1),
    "before the table": (calls("glue:CreateTable"), 0, None, 1),
    "before the commit": (calls("glue:UpdateTable"), 0, "uploaded", 2),
}
# Where the catalog has been asked for something.
OF_OPEN_CATALOG = (
    "while staging",
    "state intended",
    "while completing",
    "before the manifest",
    "before the manifest list",
    "after the commit, before the report",
    "report written, state not",
)
ALL = {f"glue: {name}": point for name, point in {**POINTS, **OF_GLUE}.items()}
ALL |= {f"open catalog: {name}": POINTS[name] for name in OF_OPEN_CATALOG}
OF_S3_TABLES = {
    **POINTS,
    "before an upload is noted": (notes, 0, None, 1),
}
ALL |= {f"s3 tables: {name}": point for name, point in OF_S3_TABLES.items()}
SAMPLE = ("glue: while staging", "glue: before the table", "glue: before the manifest list", "glue: before the commit",
          "open catalog: before the manifest", "open catalog: report written, state not", "s3 tables: while staging",
          "s3 tables: while completing", "s3 tables: before the manifest list")  # fmt: skip
SIGKILLED = [
    "s3 tables: while completing",
    "glue: while completing",
    "open catalog: before the manifest list",
    "glue: before the commit",
]
NEXT = [
    "s3 tables: while staging",
    "s3 tables: before the manifest",
    "glue: while staging",
    "glue: before the commit",
    "open catalog: state intended",
]


def sampled(points: Iterable[str], sample: Sequence[str]) -> list[Any]:
    """The points as parameters, those that are no ``sample`` for scripts/nightly alone."""
    return [pytest.param(point, marks=() if point in sample else pytest.mark.exhaustive) for point in points]


class Events:
    """A table that a load writes in two files, in one of the catalogs."""

    def __init__(self, lake: IcebergLake, catalog: OpenCatalog | None) -> None:
        self.lake, self.aws, self._catalog = lake, lake.aws, catalog
        lake.csv("events.csv", EVENTS)
        view = table("e", "events.csv")["read"]
        read = {"sql": "SELECT /*+ REPARTITION(2) */ * FROM e", "views": {"e": view}}
        entry = {"table": "events", "schema": "public", "read": read, "cursor": "at"}
        if isinstance(catalog, S3TablesCatalog):
            lake.file.write_text(yaml.safe_dump(_s3_tables(catalog, entry)), "utf-8")
        else:
            lake.write(entry, **(_open_catalog(catalog) if catalog else {}))

    @property
    def pending(self) -> str | None:
        """The phase of what is pending."""
        pending = self.lake.control(f"{SCHEMA}.events").state.read().pending
        return pending.phase if pending else None

    @property
    def table(self) -> Table:
        if self._catalog is None:
            return self.lake.table("events")
        found = load_catalog("own", **rest_options(self._catalog), **stores(self.aws))
        return found.load_table((SCHEMA, "events"))

    def dies(self, point: str, *, by_kill: bool = False) -> None:
        match, after, phase, _ = ALL[point]
        if by_kill:
            assert self.lake.killed("a", match, after=after) == KILLED
        else:
            self.lake.cut_off("a", match, after=after)
        assert self.pending == phase

    def check(self, snapshots: int, rows: int = 10) -> None:
        """Each row once, and nothing that the table does not know."""
        found = self.table
        assert sorted(found.scan().to_arrow()["id"].to_pylist()) == list(range(rows))
        assert len(found.snapshots()) == snapshots
        # A REST catalog keeps the metadata files it wrote.
        if isinstance(self._catalog, S3TablesCatalog):
            self._catalog.pass_time(UNREFERENCED)
            assert self._catalog.rule.refused == []
        left = {uri for uri in strays(self.aws, found) if self._catalog is None or not uri.endswith(".metadata.json")}
        assert left == set()
        assert self.pending is None

    def count_parts(self) -> int:
        """The parts of uploads that nobody ends; an upload in a table's own bucket may be left without any."""
        own = self._catalog.buckets if isinstance(self._catalog, S3TablesCatalog) else ()
        left = [upload for name in own for upload in need(moto_bucket(name)).multiparts.values()]
        return len(self.aws.uploads(BUCKET)) + sum(len(upload.parts) for upload in left)


def _s3_tables(catalog: S3TablesCatalog, entry: dict[str, Any]) -> dict[str, Any]:
    """The same pipeline by ``lakewriter-s3``, the columns of its loads named alike."""
    destination = {
        "type": "lakewriter-s3",
        "location": f"s3://{BUCKET}/{PREFIX}",
        "region": "us-east-1",
        "database": "supaflow_nyc",
        "tracking": {"row_number": "_supa_index", "load_id": "_supa_job_id"},
        **catalog.make_settings(),
    }
    return {"pipeline": "flights", "destination": destination, "tables": [entry]}


def _open_catalog(catalog: OpenCatalog) -> dict[str, str]:
    return {
        "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG",
        "catalog_endpoint": catalog.url,
        "catalog_name": "lake",
        "client_id": CLIENT_ID,
        "client_secret": "${env:OPEN_CATALOG_SECRET}",
        "glue_database_prefix": "supaflow",
    }


@pytest.fixture
def events(lake: IcebergLake, request, monkeypatch):
    """The table in the catalog of the point that the test is about, else in Glue."""
    if "s3 tables" in request.node.name:
        with S3TablesCatalog(lake.aws, BUCKET) as catalog:
            yield Events(lake, catalog)
        return
    if "open catalog" not in request.node.name:
        yield Events(lake, None)
        return
    monkeypatch.setenv("OPEN_CATALOG_SECRET", CLIENT_SECRET)
    with OpenCatalog(lake.aws, BUCKET) as catalog:
        yield Events(lake, catalog)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("point", sampled(ALL, SAMPLE))
def test_dies_then_the_same_job_again(events, point):
    events.dies(point)
    assert events.lake.load("a").status == "done"
    events.check(1)
    assert events.count_parts() == 0
    assert sorted(events.table.scan().to_arrow()["_supa_index"].to_pylist()) == list(range(1, 11))
    state = events.lake.control(f"{SCHEMA}.events").state.read()
    assert (state.committed, state.cursor.text, dict(state.running)) == (1, "9", {})


@pytest.mark.exhaustive
@pytest.mark.parametrize("point", SIGKILLED)
def test_killed_then_the_same_job_again(events, point):
    events.dies(point, by_kill=True)
    assert events.lake.load("a").status == "done"
    events.check(1)
    assert events.count_parts() == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("point", NEXT)
def test_dies_then_the_next_load_instead(events, point):
    events.dies(point)
    events.lake.csv("events.csv", EVENTS + "10,10\n")
    assert events.lake.load("b").status == "done"
    events.check(ALL[point][-1], rows=11)
    jobs = events.table.scan().to_arrow().group_by("_supa_job_id").aggregate([([], "count_all")]).to_pylist()
    by = {"b": 11} if ALL[point][-1] == 1 else {"a": 10, "b": 1}
    assert {row["_supa_job_id"]: row["count_all"] for row in jobs} == by


@pytest.mark.exhaustive
def test_dies_in_an_evolution_then_the_same_job_again(events):
    events.lake.load("a")
    events.lake.csv("events.csv", EVENTS.replace("id,at", "id,at,more").replace("\n", ",x\n").replace("more,x", "more"))
    events.lake.cut_off("b", calls("glue:UpdateTable"))
    assert len(strays(events.aws, events.table)) == 1
    events.lake.csv("events.csv", "id,at,more\n10,10,x\n")
    assert events.lake.load("b").status == "done"
    events.check(2, rows=11)
