"""Spark's own archives leave the path of its Python workers: each task would read their indexes again."""

import sys
from pathlib import Path

import pytest

from lakewriter.source.worker_daemon import leave_archives_out

HOME = "{root}/site-packages/pyspark"
PATH = (
    f"{HOME}/python/lib/pyspark.zip",
    f"{HOME}/python/lib/py4j-0.10.9.9-src.zip",
    f"{HOME}/jars/spark-core_2.13-4.1.1.jar",
    "{root}/files/graphframes.jar",
    "{root}/files/users.zip",
    "{root}/site-packages",
)


@pytest.mark.parametrize(
    ("is_package", "stays"),
    [
        # What pip installs has the modules beside its archives.
        (True, PATH[3:]),
        # A distribution has them in the archives alone.
        (False, (*PATH[:2], *PATH[3:])),
    ],
    ids=["package", "distribution"],
)
def test_archives_of_spark_leave_the_path(tmp_path, monkeypatch, is_package, stays):
    home = Path(HOME.format(root=tmp_path))
    home.mkdir(parents=True)
    if is_package:
        (home / "__init__.py").touch()
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setattr(sys, "path", [path.format(root=tmp_path) for path in PATH])
    monkeypatch.setattr(sys, "path_importer_cache", {path.format(root=tmp_path): None for path in PATH})
    leave_archives_out()
    assert sys.path == [path.format(root=tmp_path) for path in stays]
    assert list(sys.path_importer_cache) == sys.path


def test_nothing_else_leaves_it_without_spark(monkeypatch):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(sys, "path", ["", "python/lib/modules.zip"])
    leave_archives_out()
    assert sys.path == ["", "python/lib/modules.zip"]


@pytest.mark.spark
def test_workers_of_a_local_session_have_none_of_them(spark):
    def list_archives(_: int) -> list[str]:
        return [path for path in sys.path if path.endswith((".jar", ".zip")) and "pyspark" in path]

    assert spark.sparkContext.parallelize([0], 1).map(list_archives).collect() == [[]]
