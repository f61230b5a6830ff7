"""The encoder for each file format."""

from job.encode import parquet
from job.encode.encoder import Encoder
from job.encode.text import TextEncoder
from job.spec import Encoding
from job.stream import AvroEncoding, TextEncoding

FileEncoding = Encoding | AvroEncoding | TextEncoding


def encoder(encoding: FileEncoding) -> Encoder:
    """The encoder that ``encoding`` asks for."""
    if isinstance(encoding, AvroEncoding):
        # Only here: its constants make pyarrow load pandas, which would take a new worker half a second.
        from job.encode.avro import AvroEncoder

        return AvroEncoder(encoding)
    if isinstance(encoding, TextEncoding):
        return TextEncoder(encoding)
    return parquet.encoder(encoding)
