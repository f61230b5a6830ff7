"""One document by RFC 8259."""

import pytest

from lakewriter.cast.json_text import LEVELS, DocumentError, NumberText, parse_document, write_text

READ = [
    (b'{"a": 1}', '{"a":1}'),
    (b'{"a":-0,"b":-0.0,"c":1.10,"d":1E+2,"e":12345678901234567890123}',
     '{"a":-0,"b":-0.0,"c":1.10,"d":1E+2,"e":12345678901234567890123}'),
    (b'{"Id":1,"id":2,"":3,"_corrupt_record":4}', '{"Id":1,"id":2,"":3,"_corrupt_record":4}'),
    (b'{"a":[ ],"b":{ },"c":null,"d":[true,false]}', '{"a":[],"b":{},"c":null,"d":[true,false]}'),
    (rb'{"\u0061":"\ud83d\ude00\n\/\u0000"}', '{"a":"😀\\n/\\u0000"}'),
    (rb'{"a":"\\ud800"}', '{"a":"\\\\ud800"}'),
    (b"[" * LEVELS + b"]" * LEVELS, "[" * LEVELS + "]" * LEVELS),
    (b'{"a":"' + b"[" * 1000 + b'"}', '{"a":"' + "[" * 1000 + '"}'),
    (b"9" * 5000, "9" * 5000),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "text"), READ, ids=range(len(READ)))
def test_document_is_read_as_it_stands(raw, text):
    assert write_text(parse_document(raw)) == text


REFUSED = [
    # raw, what is said
    (b'{"a":1}{"a":2}', "behind the document, at character 8, is '{\"a\":2}'"),
    (b'{"a":1} x', "behind the document, at character 9, is 'x'"),
    (b'{"a":1,"a":2}', 'the key "a" is twice in one object'),
    (b'{"a":{"b":[{"c":1,"c":null}]}}', 'the key "c" is twice in one object'),
    (rb'{"a":1,"\u0061":2}', 'the key "a" is twice in one object'),
    (b'{"a":NaN}', "NaN is no number of JSON"),
    (b'{"a":-Infinity}', "-Infinity is no number of JSON"),
    (b'{"a":"\xff"}', "byte 0xff at its byte 6 is not UTF-8"),
    (b'{"a":"\xed\xa0\x80"}', "byte 0xed at its byte 6 is not UTF-8"),
    (rb'{"a":"\ud800"}', r"\ud800 is half of a surrogate pair, which is no character"),
    (rb'{"\uDFAA":1}', r"\uDFAA is half of a surrogate pair, which is no character"),
    (rb'{"a":"\ude00\ud83d"}', r"\ude00 is half of a surrogate pair, which is no character"),
    (b'{"a":"x\ty"}', "there is a control character that is not written as an escape, at character 8"),
    (b'{"a":01}', "there is neither ',' nor the end of the object or array at character 7"),
    (b'{"a" 1}', "there is no ':' at character 6"),
    (b"{'a':1}", "there is no key in double quotes at character 2"),
    (b'{"a":', "it breaks off at character 6"),
    (b'{"a":"x', "there is a text without its closing quote at character 6"),
    (b"", "it breaks off at character 1"),
    (b"[" * (LEVELS + 1) + b"]" * (LEVELS + 1), "it nests more than 994 levels deep"),
    (b'{"a":' * 100_000, "it nests more than 994 levels deep"),
]


@pytest.mark.parametrize(("raw", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_document_is_told(raw, reason):
    with pytest.raises(DocumentError) as error:
        parse_document(raw)
    assert str(error.value) == reason


def test_numbers_beyond_json_are_taken_where_they_are_asked_for():
    assert parse_document(b"[NaN,-Infinity]", takes_nan=True) == [NumberText("NaN"), NumberText("-Infinity")]
