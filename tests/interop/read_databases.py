"""Read tables of databases as the tasks of a load do: specifications come as JSON, values go as JSON.

It runs in a process of its own, since Java takes the drivers' jars at its start.
"""

import json
import sys
from typing import Any

from lakewriter.errors import LakeError
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from lakewriter.source.session import open_spark_session
from lakewriter.spec.table_spec import JdbcRules
from tests.source.tables import table


def write(value: Any) -> Any:
    """A value as JSON keeps it exactly."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [write(item) for item in value]
    return value if value is None or isinstance(value, bool) else str(value)


def show(_partition: int, batches: Any) -> Any:
    """The rows of one partition, each as a JSON text."""
    for batch in batches:
        for row in zip(*[column.to_pylist() for column in batch.columns], strict=True):
            yield json.dumps([write(value) for value in row])


def read(spark: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    """The rows of one table, or the error that ends it."""
    rules = JdbcRules(**wanted.pop("jdbc", {}))
    try:
        feed = open_feed(RowsRequest(lambda: spark, table(format="jdbc", jdbc=rules, **wanted)))
        rows = [json.loads(text) for text in feed.run(show)]
        kinds = [str(kind) for kind in feed.schema.types]
        feed.close()
    except LakeError as error:
        return {"error": str(error)}
    return {"names": feed.schema.names, "kinds": kinds, "rows": rows, "partitions": feed.partitions}


def main() -> None:
    """Read what standard input names."""
    spark = open_spark_session("interop", tasks=2)
    json.dump([read(spark, wanted) for wanted in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
