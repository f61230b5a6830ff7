"""Which engine is chosen, and what becomes of exceptions at its two ends."""

from typing import Any

import pytest

from lakewriter.encode.parquet import encoder
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.specification import Encoding
from tests.encode.files import ENGINES, MemorySink, numbers, written


@pytest.mark.parametrize("error", [ValueError("first"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_write_source_fails(engine: str, delta: bool, error: BaseException) -> None:
    def batches() -> Any:
        yield numbers(1000)
        raise error

    with pytest.raises(type(error)) as caught:
        written(Encoding(engine=engine, delta=delta), numbers(1).schema, batches(), 500)
    assert caught.value is error


@pytest.mark.parametrize("engine", ENGINES)
def test_write_sink_fails(engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    sink = MemorySink(fails_after=1000)
    asked = []

    def batches() -> Any:
        for number in range(100):
            asked.append(number)
            yield numbers(1000, number * 1000)

    with pytest.raises(OSError, match="no room"):
        encoder(Encoding(engine=engine)).write(numbers(1).schema, batches(), sink, 1000)
    assert (sink.calls_after_failure, len(asked) < 10, capfd.readouterr().err) == (0, True, "")


@pytest.mark.parametrize(
    ("engine", "arro3", "expected"),
    [("auto", True, "arro3"), ("auto", False, "pyarrow"), ("pyarrow", True, "pyarrow"), ("arro3", True, "arro3")],
)
def test_encoder_engine(engine: str, arro3: bool, expected: str) -> None:
    assert encoder(Encoding(engine=engine), arro3=arro3).name == expected


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"engine": "arro3"}, "arro3-io is not installed"),
        ({"codec": "lzo"}, "'lzo' is not known; expected one of ['gzip', 'snappy',"),
        ({"codec": "gzip", "level": 10}, "level 10 for gzip; expected 1 to 9"),
        ({"codec": "zstd", "level": 0}, "level 0 for zstd; expected 1 to 22"),
    ],
)
def test_encoder_refuses(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecInvalidError) as caught:
        encoder(Encoding(**settings), arro3=False)
    assert said in caught.value.message
