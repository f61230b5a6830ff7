"""Let Spark find the format ``lakewriter`` by itself: it looks for packages whose names begin with ``pyspark_``.

https://spark.apache.org/docs/latest/api/python/tutorial/sql/python_data_source.html
"""

from lakewriter.api.data_source import LakewriterSource as DefaultSource

__all__ = ["DefaultSource"]
