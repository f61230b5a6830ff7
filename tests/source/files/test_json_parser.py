"""One document by RFC 8259, and documents one behind the other."""

import pytest

from lakewriter.source.files.json_parser import (
    DocumentError,
    NumberText,
    parse_document,
    split_documents,
    write_text,
)

READ = [
    (b'{"a": 1}', '{"a":1}'),
    (b'{"a":-0,"b":-0.0,"c":1.10,"d":1E+2,"e":12345678901234567890123}',
     '{"a":-0,"b":-0.0,"c":1.10,"d":1E+2,"e":12345678901234567890123}'),
    (b'{"Id":1,"id":2,"":3,"_corrupt_record":4}', '{"Id":1,"id":2,"":3,"_corrupt_record":4}'),
    (b'{"a":[ ],"b":{ },"c":null,"d":[true,false]}', '{"a":[],"b":{},"c":null,"d":[true,false]}'),
    (rb'{"\u0061":"\ud83d\ude00\n\/\u0000"}', '{"a":"😀\\n/\\u0000"}'),
    (rb'{"a":"\\ud800"}', '{"a":"\\\\ud800"}'),
    (b"[" * 512 + b"]" * 512, "[" * 512 + "]" * 512),
    (b'{"a":"' + b"[" * 600 + b'"}', '{"a":"' + "[" * 600 + '"}'),
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
    (b"[" * 513 + b"]" * 513, "it has more than 512 arrays and objects inside each other"),
    (b'{"a":' * 100_000, "it has more than 512 arrays and objects inside each other"),
]


@pytest.mark.parametrize(("raw", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_document_is_told(raw, reason):
    with pytest.raises(DocumentError) as error:
        parse_document(raw)
    assert str(error.value) == reason


def test_numbers_beyond_json_are_taken_where_they_are_asked_for():
    assert parse_document(b"[NaN,-Infinity]", takes_nan=True) == [NumberText("NaN"), NumberText("-Infinity")]


SPLIT = [
    # text, (offset, bytes, fault) of each part
    (b'{"a":1}', [(0, b'{"a":1}', None)]),
    (b' {"a":\n1}\n\n{"b":"}"} ', [(1, b'{"a":\n1}', None), (11, b'{"b":"}"}', None)]),
    (b'[{"a":1} , {"b":[2]}]', [(1, b'{"a":1}', None), (11, b'{"b":[2]}', None)]),
    (b"[]", []),
    (b'[1,"x]",null,[2]]', [(1, b"1", None), (3, b'"x]"', None), (8, b"null", None), (13, b"[2]", None)]),
    (b'{"a":1}{"b":2}', [(0, b'{"a":1}', None), (7, b'{"b":2}', "there is '{' right behind a document")]),
    (b'[{"a":1}', [(1, b'{"a":1}', None), (8, b"", "the array that begins at byte 0 breaks off")]),
    (b'[{"a":1} {"b":2}]', [(1, b'{"a":1}', None),
                            (9, b'{"b":2}]', "there is neither ',' nor the end of the array")]),
    (b'[{"a":1},]', [(1, b'{"a":1}', None), (9, b"]", "there is no value")]),
    (b'{"a":1', [(0, b'{"a":1', "there is a document that breaks off")]),
    (b'[{"a":"x},\n{"a":"y"}]', [(1, b'{"a":"x},\n{"a":"y"}]', "there is a text without its closing quote")]),
    (b'{"a":"\\"}"}', [(0, b'{"a":"\\"}"}', None)]),
    (b"{}x", [(0, b"{}", None), (2, b"x", "there is 'x' right behind a document")]),
    (b'{"a":1}\n}', [(0, b'{"a":1}', None), (8, b"}", "there is no value")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "parts"), SPLIT, ids=range(len(SPLIT)))
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_documents_are_split_wherever_blocks_end(text, parts, size):
    blocks = (text[place : place + size] for place in range(0, len(text), size))
    found = [(part.offset, part.raw, part.fault) for part in split_documents(blocks, most=1000)]
    # Of a faulty rest as much is shown as is held.
    shown = [(offset, raw[: len(found[-1][1])] if fault else raw, fault) for offset, raw, fault in parts]
    assert found == (shown if parts and parts[-1][2] else parts)
    assert not parts or found[-1][1] or not parts[-1][1]


def test_a_document_that_is_too_long_is_told():
    parts = list(split_documents(iter([b'{"a":"' + b"x" * 90, b"x" * 90 + b'"}']), most=80))
    assert [(part.offset, part.fault) for part in parts] == [(0, "there is a document of more than 80 bytes")]
