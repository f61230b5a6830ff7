"""The codecs Parquet files may be compressed with, as each engine spells them."""

from dataclasses import dataclass
from typing import Final

from job.errors import SpecInvalidError
from job.spec import Encoding


@dataclass(frozen=True)
class Codec:
    """``levels`` are those both engines take, none for a codec without levels; ``quick`` are the lowest ones that still
    make Huffman codes of the data's own, of parquet-rs and of pyarrow."""

    arro3: str
    pyarrow: str
    levels: range | None = None
    quick: tuple[int, int] | None = None

    def check(self, level: int) -> None:
        """``SPEC_INVALID`` for a level the codec does not have; a codec without levels ignores it."""
        if self.levels is not None and level not in self.levels:
            raise SpecInvalidError(
                f"compression level {level!r} for {self.pyarrow}; expected {self.levels[0]} to {self.levels[-1]}.",
                remedy="Set encoding.level to one of these.",
            )

    def arro3_text(self, level: int) -> str:
        """The codec with its level, ``gzip(4)``."""
        return self.arro3 if self.levels is None else f"{self.arro3}({level})"

    def pyarrow_level(self, level: int) -> int | None:
        """The level, None for a codec without levels."""
        return None if self.levels is None else level


CODECS: Final = {
    "gzip": Codec("gzip", "gzip", range(1, 10), quick=(2, 1)),
    "snappy": Codec("snappy", "snappy"),
    "zstd": Codec("zstd", "zstd", range(1, 23)),
    # Both spellings give LZ4_RAW; the older LZ4 framing is deprecated by the format.
    "lz4": Codec("lz4_raw", "lz4"),
    "brotli": Codec("brotli", "brotli", range(12)),
    "uncompressed": Codec("uncompressed", "none"),
}


def codec(encoding: Encoding) -> Codec:
    """The codec of ``encoding``, its level checked; ``SPEC_INVALID`` lists the known ones."""
    found = CODECS.get(encoding.codec.lower())
    if found is None:
        raise SpecInvalidError(f"compression codec {encoding.codec!r} is not known; expected one of {list(CODECS)}.")
    found.check(encoding.level)
    return found
