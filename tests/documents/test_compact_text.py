"""The JSON of records as files hold it: what the vendor's connector makes of it, with the digits of the source.

Its ``serializeToString`` (airbyte-cdk/bulk, Jsons) is Jackson's compact form: no white space, no escapes that JSON does
not ask for, members in their order. Digits stay as the source wrote them, since no number is parsed here.
"""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.dialects.airbyte.settings import AirbyteS3
from lakewriter.dialects.airbyte.translate import make_encoding, make_envelope
from lakewriter.documents.compact_text import compact_texts
from tests.dialects.airbyte_lakes import BASE
from tests.shape.enveloped import plan, shaped, written

TEXTS = [
    # JSON of a source, the same in a file
    ("{}", "{}"),
    (" { } ", "{}"),
    ('{"a":1,"b":"x y, z: [1, 2]"}', '{"a":1,"b":"x y, z: [1, 2]"}'),
    ('{"a": 1.10, "b": [1E+2, -0.0, 123456789012345678901234567890, 1e400]}',
     '{"a":1.10,"b":[1E+2,-0.0,123456789012345678901234567890,1e400]}'),
    ('{\n\t"b": {"z": 1, "a": [ true , null ]},\r\n\t"a": ""\n}', '{"b":{"z":1,"a":[true,null]},"a":""}'),
    (r'{"a": "caf\u00e9 \ud83d\ude00 \/ \u0041"}', '{"a":"café 😀 / A"}'),
    (r'{"\u0061b": "\u0022 \u005c \u000a \u0001"}', r'{"ab":"\" \\ \n \u0001"}'),
    (r'{"a":"\\u00e9 \\\/ \" \t"}', r'{"a":"\\u00e9 \\/ \" \t"}'),
    (r'{"a": " spaces \" stay , here "}', r'{"a":" spaces \" stay , here "}'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TEXTS)
@pytest.mark.parametrize("beside", ["{}", '{ "x" : "\\/" }'])
def test_text(text, expected, beside):
    """Beside a text with nothing to do, and beside one with everything."""
    texts = compact_texts(pa.array(["{}", text, beside]).slice(1))
    assert texts.type == pa.string()
    assert texts.to_pylist()[0] == expected
    assert json.loads(expected) == json.loads(text)


def test_texts_with_nothing_to_do_are_the_same_array():
    texts = pa.array(['{"a":1}', '{"b":"x y"}'])
    assert compact_texts(texts) is texts
    assert compact_texts(texts[:0]).to_pylist() == []


SCHEMA = {"properties": {"o": {"type": "object"}, "l": {"type": "array"}, "s": {"type": "string"}, "u": {}}}
RECORD = r'{"o": {"n": 1.10, "e": "\u00e9"}, "l": [1.0, "a b"], "s": {"k": [2.50]}, "u": "x", "more": [ 1 ]}'
DATA = '{"o":{"n":1.10,"e":"é"},"l":[1.0,"a b"],"s":{"k":[2.50]},"u":"x","more":[1]}'
PLAIN = {"compression": {"compression_type": "No Compression"}}
FORMS: list[tuple[dict[str, Any], str]] = [
    # the form, the end of the file's last line
    ({"format_type": "JSONL", "flattening": "No flattening"} | PLAIN, f'"_airbyte_data":{DATA}}}\n'),
    ({"format_type": "JSONL", "flattening": "Root level flattening"} | PLAIN,
     '"o":{"n":1.10,"e":"é"},"l":[1.0,"a b"],"s":{"k":[2.50]},"u":"x"}\n'),
    ({"format_type": "CSV", "flattening": "No flattening"} | PLAIN, ',"' + DATA.replace('"', '""') + '"\r\n'),
    ({"format_type": "CSV", "flattening": "Root level flattening"} | PLAIN,
     ',"{""n"":1.10,""e"":""é""}","[1.0,""a b""]","{""k"":[2.50]}","x"\r\n'),
]  # fmt: skip


@pytest.mark.parametrize(("form", "expected"), FORMS)
def test_nested_values_in_text(form, expected):
    destination = AirbyteS3.model_validate({"type": "airbyte-s3"} | BASE | {"format": form})
    batch, _ = shaped(plan(SCHEMA, make_envelope(destination)), RECORD)
    assert written(batch, make_encoding(destination)).decode().endswith(expected)


@pytest.mark.parametrize("kind", ["Avro", "Parquet"])
def test_nested_values_in_strings_of_typed_files(kind):
    destination = AirbyteS3.model_validate({"type": "airbyte-s3"} | BASE | {"format": {"format_type": kind}})
    batch, _ = shaped(plan(SCHEMA, make_envelope(destination), one_text=kind == "Avro"), RECORD)
    file = io.BytesIO(written(batch, make_encoding(destination)))
    row: Any = next(fastavro.reader(file)) if kind == "Avro" else pq.read_table(file).to_pylist()[0]
    found = [row[name] for name in ("o", "l", "s", "u")]
    assert found == ['{"n":1.10,"e":"é"}', '[1.0,"a b"]', '{"k":[2.50]}', '"x"']
