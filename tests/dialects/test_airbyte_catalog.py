"""What a configured catalog means for the generations of its streams."""

import pytest

from lakewriter.dialects.configured_catalog import SourceEntry, list_streams
from lakewriter.spec.table_spec import Mode

MODES = {"append": Mode.APPEND, "overwrite": Mode.OVERWRITE}
GENERATIONS = [
    # destination sync mode, generation and minimum of the catalog, the lowest that stays
    ("overwrite", 5, None, 5),
    ("overwrite", 5, 0, 0),
    ("overwrite", None, None, None),
    ("overwrite", 5, 3, 3),
    ("overwrite", 5, 5, 5),
    ("append", 5, None, None),
    ("append", 5, 0, 0),
    # Airbyte's ``shouldBeTruncatedAtEndOfSync``: an overwrite, or a minimum above 0 that is its generation.
    ("append", 5, 3, 0),
    ("append", 5, 5, 5),
    ("append", 0, 0, 0),
]


@pytest.mark.parametrize(("mode", "generation", "minimum", "expected"), GENERATIONS)
def test_lowest_generation(mode, generation, minimum, expected):
    own = {"stream": {"name": "u"}, "destination_sync_mode": mode, "generation_id": generation}
    source = {"messages": "-", "catalog": {"streams": [own | {"minimum_generation_id": minimum}]}}
    ((_, stream),) = list_streams(SourceEntry.model_validate(source), MODES)
    assert (stream.generation_id, stream.minimum_generation_id) == (generation, expected)
