"""Start Spark's daemon of Python workers, with what a task imports and without what slows each of them down.

Spark puts its own archives before all else on a worker's path: ``pyspark.zip``, whose modules Python compiles anew in
each process, and the jar of Spark's core, which has none. A worker's first task reads the index of all of them, and so
does each later one that ``settle_worker`` does not come before. Where Spark is the installed package, its modules lie
in the environment too, compiled. https://docs.python.org/3/library/importlib.html#importlib.invalidate_caches
"""

import gc
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

TASK: Final = ("lakewriter.staging.stage", "pyspark.worker")
"""What the workers import; each would do so by itself, which takes a second of a core."""


def leave_archives_out() -> None:
    """Take Spark's archives off the path of this process, and of those that it forks."""
    home = Path(os.environ.get("SPARK_HOME", ""))
    # Others may hold modules: a user's archives, and jars of packages that come with Python.
    archives = {path for path in sys.path if Path(path).match("spark-core_*.jar")}
    if (home / "__init__.py").exists() and str(home.parent) in sys.path:
        archives |= {path for path in sys.path if Path(path).parent == home / "python" / "lib"}
    sys.path[:] = [path for path in sys.path if path not in archives]
    for path in archives & set(sys.path_importer_cache):
        del sys.path_importer_cache[path]


if __name__ == "__main__":
    leave_archives_out()
    for name in TASK:
        import_module(name)
    # A worker looks for garbage after each task: not in what is there from the start.
    gc.freeze()
    import_module("pyspark.daemon").manager()
