"""Documents one behind the other."""

import pytest

from lakewriter.source.files.json_splitter import split_documents

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
