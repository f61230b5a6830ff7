"""Import what Spark's Python workers need in the daemons that fork them, also in those of a Python data source.

Each worker would import it anew, which takes most of a second: every task that fails ends its worker, and each write of
a Python data source has two more.
"""

import gc
import sys
from importlib import import_module

if daemon := {"pyspark.daemon", "lakewriter.source.worker_daemon"} & set(sys.orig_argv):
    names = ["lakewriter.staging.task", "pandas", "pyiceberg.schema", "lakewriter.aws"]
    if "pyspark.daemon" in daemon:
        # The product's own daemon does so itself.
        import_module("lakewriter.source.worker_daemon").leave_archives_out()
        names += ["lakewriter.api.data_source", sys.orig_argv[-1]]
    for name in names:
        import_module(name)
    from lakewriter.spec.access import Access

    # The model of S3, which the first client of a process reads.
    _ = sys.modules["lakewriter.aws"].Clients(Access(bucket="acme-lake", region="us-east-1")).s3
    gc.collect()
    gc.freeze()
