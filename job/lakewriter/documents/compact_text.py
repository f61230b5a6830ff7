"""Write the JSON of records without white space between its parts, whatever the source put there.

A value then has one text whichever source wrote it, as Airbyte's connector has it, which parses and serialises every
record. Here nothing is parsed that need not be: numbers keep their digits and members their order.
"""

import json
import re
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

_RAWS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_ESCAPED: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NEEDLESS: Final = (b"\\u", b"\\/")
"""The escapes that a string may have where it needs none, or a shorter one."""


def compact_texts(texts: pa.Array) -> pa.Array:
    """Return each JSON text without white space between its parts, and without escapes that its strings do not need.

    The texts pass through C together, and come back as they are where there was nothing to do.
    """
    joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts.cast(pa.binary())), b",")
    whole = b"[" + joined[0].as_py() + b"]"
    packed = msgspec.json.format(whole, indent=-1)
    is_escaped = any(escape in packed for escape in _NEEDLESS)
    if len(packed) == len(whole) and not is_escaped:
        return texts
    pieces = [bytes(raw) for raw in _RAWS.decode(packed)]
    if is_escaped:
        pieces = [_ESCAPED.sub(_rewrite_match, piece) if b"\\" in piece else piece for piece in pieces]
    return pa.array(pieces, pa.binary()).cast(pa.string())


def _rewrite_match(match: re.Match[bytes]) -> bytes:
    return rewrite_string(match[0]) if b"\\" in match[0] else match[0]


def rewrite_string(raw: bytes) -> bytes:
    """Return a JSON string with no more escapes than it needs, so that one value has one text."""
    try:
        return json.dumps(msgspec.json.decode(raw, type=str), ensure_ascii=False).encode()
    except msgspec.MsgspecError:
        # Half of a pair: there is no character for it, and the escape says what the source wrote.
        return raw
