"""Spark's daemon of Python workers, which has imported what tasks need before it forks the first of them.

Each worker would import it anew, which takes most of a second: every task that fails ends its worker, and tests have
tasks fail. And a worker looks for garbage after each task, which is quick in what is frozen.
"""

import gc
from importlib import import_module

from lakewriter.aws import Clients
from lakewriter.spec.access import Access


def prepare() -> None:
    """Import what tasks do, and read the model of S3, which the first client of a process reads."""
    for name in ("lakewriter.staging.task", "pandas", "pyiceberg.schema", "pyspark.worker"):
        import_module(name)
    _ = Clients(Access(bucket="acme-lake", region="us-east-1")).s3
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    prepare()
    import_module("pyspark.daemon").manager()
