"""Read a table of Glue again and again with awswrangler, until standard input ends; print each load's rows per read."""

import json
import sys
import threading
from collections import Counter

import awswrangler

database, table = sys.argv[1:]
waiting = threading.Thread(target=sys.stdin.read, daemon=True)
waiting.start()
while waiting.is_alive():
    rows = awswrangler.s3.read_parquet_table(table=table, database=database)
    sys.stdout.write(json.dumps(Counter(rows["_load_id"].tolist())) + "\n")
    sys.stdout.flush()
