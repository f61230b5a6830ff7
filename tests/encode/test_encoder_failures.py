"""What becomes of exceptions at both ends of the encoder, and which settings it refuses."""

from typing import Any

import pytest

from lakewriter.encode.parquet import ParquetEncoder
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.readers import DELTA
from tests.encode.files import MemorySink, numbers, written


@pytest.mark.parametrize("error", [ValueError("first"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("delta", [False, True])
def test_write_source_fails(delta: bool, error: BaseException) -> None:
    def batches() -> Any:
        yield numbers(1000)
        raise error

    with pytest.raises(type(error)) as caught:
        written(ParquetEncoding(value_encodings=DELTA if delta else frozenset()), numbers(1).schema, batches(), 500)
    assert caught.value is error


def test_write_sink_fails(capfd: pytest.CaptureFixture[str]) -> None:
    sink = MemorySink(fails_after=1000)
    asked = []

    def batches() -> Any:
        for number in range(100):
            asked.append(number)
            yield numbers(1000, number * 1000)

    with pytest.raises(OSError, match="no room"):
        ParquetEncoder(ParquetEncoding()).write(numbers(1).schema, batches(), sink, 1000)
    assert (sink.calls_after_failure, len(asked) < 10, capfd.readouterr().err) == (0, True, "")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"codec": "lzo"}, "'lzo' is not known; expected one of ['gzip', 'snappy',"),
        ({"codec": "gzip", "level": 10}, "level 10 for gzip; expected 1 to 9"),
        ({"codec": "zstd", "level": 0}, "level 0 for zstd; expected 1 to 22"),
    ],
)
def test_encoder_refuses(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecInvalidError) as caught:
        ParquetEncoder(ParquetEncoding(**settings))
    assert said in caught.value.message
