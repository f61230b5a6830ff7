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
    "{root}/files",
    "{root}/site-packages",
)


@pytest.mark.parametrize(
    ("packages", "stays"),
    [
        # What pip installs has the modules beside its archives.
        (["site-packages"], PATH[3:]),
        # A distribution has them in the archives alone.
        ([], (*PATH[:2], *PATH[3:])),
        # Another Spark's modules come first on the path.
        (["site-packages", "files"], (*PATH[:2], *PATH[3:])),
    ],
    ids=["package", "distribution", "another"],
)
def test_archives_of_spark_leave_the_path(tmp_path, monkeypatch, packages, stays):
    home = Path(HOME.format(root=tmp_path))
    home.mkdir(parents=True)
    for folder in packages:
        (tmp_path / folder / "pyspark").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "pyspark" / "__init__.py").touch()
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setattr(sys, "path", [path.format(root=tmp_path) for path in PATH])
    opened = [path.format(root=tmp_path) for path in PATH if path.endswith((".jar", ".zip"))]
    monkeypatch.setattr(sys, "path_importer_cache", dict.fromkeys(opened))
    leave_archives_out()
    assert sys.path == [path.format(root=tmp_path) for path in stays]
    assert [path for path in opened if path in sys.path_importer_cache] == [path for path in opened if path in sys.path]


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
