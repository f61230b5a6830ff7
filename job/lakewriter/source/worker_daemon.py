"""Start Spark's daemon of Python workers without Spark's own archives on their path.

Spark puts them before all else: ``pyspark.zip``, whose modules Python compiles anew in each process, and the jar of
Spark's core, which has none. A worker's first task reads the index of all of them, and so does each later one that
``settle_worker`` does not come before. Where Spark is the installed package, its modules lie in the environment too,
compiled. https://docs.python.org/3/library/importlib.html#importlib.invalidate_caches

Nothing that tasks import is imported before the workers are forked: libraries start threads, which do not survive that.
"""

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path


def leave_archives_out() -> None:
    """Take Spark's archives off the path of this process, and of those that it forks."""
    home = Path(os.environ.get("SPARK_HOME", ""))
    # Others may hold modules: a user's archives, and jars of packages that come with Python.
    modules = {path for path in sys.path if Path(path).parent == home / "python" / "lib"}
    archives = {path for path in sys.path if Path(path).match("spark-core_*.jar")} | modules
    package = PathFinder.find_spec("pyspark", [path for path in sys.path if path not in archives])
    if package is None or package.origin != str(home / "__init__.py"):
        archives -= modules
    sys.path[:] = [path for path in sys.path if path not in archives]
    for path in archives & set(sys.path_importer_cache):
        del sys.path_importer_cache[path]


if __name__ == "__main__":
    leave_archives_out()
    import_module("pyspark.daemon").manager()
