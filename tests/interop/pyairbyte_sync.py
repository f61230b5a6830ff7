"""Run by the Python that has PyAirbyte: a real source's records into a destination, as its users write it.

Arguments: the source's program, the destination's program, the destination's configuration, the write strategy.
"""

import json
import sys
from pathlib import Path

import airbyte

source = airbyte.get_source(
    "source-faker",
    config={"count": 50, "seed": 7, "parallelism": 1},
    local_executable=Path(sys.argv[1]),
    streams=["users", "products"],
)
destination = airbyte.get_destination(
    "destination-lakewriter",
    config=json.loads(Path(sys.argv[3]).read_text("utf-8")),
    local_executable=Path(sys.argv[2]),
)
destination.check()
destination.write(source, cache=False, state_cache=False, write_strategy=sys.argv[4])
