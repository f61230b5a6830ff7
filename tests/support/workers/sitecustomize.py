"""Import what Spark's Python workers need in the daemons that fork them.

Each worker would import it anew, which takes most of a second: every task that fails ends its worker, and each write of
a Python data source has two more. And a worker looks for garbage after each task, which is quick in what is frozen.
"""

import gc
import sys
from importlib import import_module

if "pyspark.daemon" in sys.orig_argv:
    for name in (
        "lakewriter.staging.task",
        "lakewriter.api.data_source",
        "pandas",
        "pyiceberg.schema",
        sys.orig_argv[-1],
    ):
        import_module(name)
    from lakewriter.aws import Clients
    from lakewriter.spec.access import Access

    # The model of S3, which the first client of a process reads.
    _ = Clients(Access(bucket="acme-lake", region="us-east-1")).s3
    gc.collect()
    gc.freeze()
