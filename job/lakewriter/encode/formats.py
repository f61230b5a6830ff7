"""The encoder for each file format."""

from lakewriter.encode.csv_and_jsonl import TextEncoder
from lakewriter.encode.encoder import Encoder
from lakewriter.encode.parquet import ParquetEncoder
from lakewriter.spec.encodings import AvroEncoding, FileEncoding, TextEncoding


def make_encoder(encoding: FileEncoding) -> Encoder:
    """Return the encoder that ``encoding`` asks for."""
    if isinstance(encoding, AvroEncoding):
        # Only here: its constants make pyarrow load pandas, which would take a new worker half a second.
        from lakewriter.encode.avro import AvroEncoder

        return AvroEncoder(encoding)
    if isinstance(encoding, TextEncoding):
        return TextEncoder(encoding)
    return ParquetEncoder(encoding)
