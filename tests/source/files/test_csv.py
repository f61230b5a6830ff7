"""CSV as RFC 4180 has it, fault by fault; expected rows are the RFC's unless a comment says otherwise."""

import bz2
import gzip
import lzma
import random
from pathlib import Path

import pytest
import zstandard

from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.source.files import csv_cuts, csv_reader, csv_rows
from lakewriter.source.files.csv_reader import CsvReader
from lakewriter.source.files.csv_rows import BEHIND_QUOTE, LINE_END, OPEN_QUOTE
from lakewriter.source.files.spark_options import take_options
from tests.source.files.csv_reference import OPEN, OTHER, read_rows
from tests.source.files.reading import hold, in_turn, read_csv, read_with, store
from tests.support.sample import fifth_of

HEADED = {"header": "true"}

GOOD = [
    # bytes, rows
    (b"1,2\n3,4\n", [("1", "2"), ("3", "4")]),
    (b"1,2\r\n3,4", [("1", "2"), ("3", "4")]),
    (b"1,2\r3,4\r", [("1", "2"), ("3", "4")]),
    (b'1,"a,b"\n', [("1", "a,b")]),
    (b'"say ""hi"", ok",2\n', [('say "hi", ok', "2")]),
    (b'"""",""""""\n', [('"', '""')]),
    # Line breaks in quotes are what they are.
    (b'1,"a\nb"\r\n2,"c\r\nd"\r\n3,"e\rf"\r\n', [("1", "a\nb"), ("2", "c\r\nd"), ("3", "e\rf")]),
    (b'1,"hello\n2,world"\n', [("1", "hello\n2,world")]),
    # An empty text is one, and nothing a null.
    (b'1,""\n2,\n,\n"",""\n', [("1", ""), ("2", None), (None, None), ("", "")]),
    (b'"","","",', [("", "", "", None)]),
    (b'1,"","x"\n2,,', [("1", "", "x"), ("2", None, None)]),
    # A backslash is a character.
    (b'"\\\\srv\\share","ends\\"\n"C:\\",\\"\n', [("\\\\srv\\share", "ends\\"), ("C:\\", '\\"')]),
    # A quote inside an unquoted field is one too.
    (b'1,6" pipe\n2,a"b"c\n', [("1", '6" pipe'), ("2", 'a"b"c')]),
    (b"1, a \n", [("1", " a ")]),
    (b"1,a\0b\n", [("1", "a\0b")]),
    ("1,é😀\n".encode(), [("1", "é😀")]),
    (b"\xef\xbb\xbf1,2\n", [("1", "2")]),
    # Blank lines are rows of one column, and no rows of several.
    (b"a\n\nb\n", [("a",), (None,), ("b",)]),
    (b"1,2\n\n \n3,4\n\n", [("1", "2"), ("3", "4")]),
    (b"1;2\n", [("1;2",)]),
    (b"", []),
    (b"\n", []),
]


@pytest.mark.parametrize(("data", "rows"), GOOD)
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_rows(monkeypatch, data, rows, block):
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", block)
    outcome = read_csv(data)
    assert (outcome.good, outcome.bad) == (rows, [])


FAULTS = [
    # bytes, good rows, bad rows: offset, reason, text
    (b'1,2\n3,"x\n4,5\n', [("1", "2"), ("4", "5")], [(4, OPEN_QUOTE, '3,"x')]),
    (b'1,2\n3,"x', [("1", "2")], [(4, OPEN_QUOTE, '3,"x')]),
    (b'1,2\n"3"x,4\n5,6\n', [("1", "2"), ("5", "6")], [(4, BEHIND_QUOTE, '"3"x,4')]),
    (b'1,2\n"3" ,4\n', [("1", "2")], [(4, BEHIND_QUOTE, '"3" ,4')]),
    (b'1,2\n"3"x,"4\n5"\n6,7\n', [("1", "2"), ("6", "7")], [(4, BEHIND_QUOTE, '"3"x,"4\n5"')]),
    (b"1,2\n3\n4,5\n", [("1", "2"), ("4", "5")], [(4, "it has 1 field, expected 2", "3")]),
    (b"1,2\n3,4,5\n6,7\n", [("1", "2"), ("6", "7")], [(4, "it has 3 fields, expected 2", "3,4,5")]),
    (b"1,2\n3,4,\n", [("1", "2")], [(4, "it has 3 fields, expected 2", "3,4,")]),
    (b"1,2\n3,\xff4\n5,6\n", [("1", "2"), ("5", "6")], [(4, "byte 0xff is not UTF-8", "3,\\xff4")]),
    (b"1,2\n3,\xc3\n", [("1", "2")], [(4, "byte 0xc3 is not UTF-8", "3,\\xc3")]),
    # Line ends that change within a file.
    (b"1,2\n3,4\r\n5,6\n", [("1", "2"), ("5", "6")], [(4, LINE_END, "3,4")]),
    (b"1,2\r\n3,4\n5,6\r\n", [("1", "2"), ("5", "6")], [(5, LINE_END, "3,4")]),
    (b"1,2\n\r\n5,6\n", [("1", "2"), ("5", "6")], []),
    (b"1,2\n3,4\r5,6\n", [("1", "2")], [(4, LINE_END, "3,4\r5,6")]),
    (b"1,2\r\n3\r,4\r\n", [("1", "2")], [(5, LINE_END, "3\r,4")]),
    (b"1,2\r3,4\n5,6\r", [("1", "2")], [(4, LINE_END, "3,4\n5,6")]),
    (b"1,2\n3,4\r", [("1", "2")], [(4, LINE_END, "3,4\r")]),
]


@pytest.mark.parametrize(("data", "good", "bad"), FAULTS)
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_faults(monkeypatch, data, good, bad, block):
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", block)
    outcome = read_csv(data)
    assert (outcome.good, outcome.bad) == (good, bad)


OPTIONS = [
    # options, bytes, good rows, bad rows
    ({"sep": ";"}, b"1;2,3\n", [("1", "2,3")], []),
    ({"delimiter": "\\t"}, b'1\t"a\tb"\n\t\n', [("1", "a\tb"), (None, None)], []),
    ({"sep": "||"}, b'1||"2||3"\n4|5||6\n7||"8"x\n', [("1", "2||3"), ("4|5", "6")], [(17, BEHIND_QUOTE, '7||"8"x')]),
    ({"sep": "¦"}, "1¦2\n".encode(), [("1", "2")], []),
    ({"quote": "'"}, b"'a''b',\"2\"\n", [("a'b", '"2"')], []),
    ({"quote": ""}, b'"1,2"\n', [('"1', '2"')], []),
    ({"escape": "\\"}, b'"a\\"b\\\\c\\d",2\n"x"",y",3\n', [('a"b\\c\\d', "2"), ('x",y', "3")], []),
    ({"escape": "\\"}, b'"a\\",b","c\nd"\nC:\\x,2\n', [('a",b', "c\nd"), ("C:\\x", "2")], []),
    ({"escape": '"'}, b'"a""b",2\n', [('a"b', "2")], []),
    ({"comment": "#"}, b'#x,"\n1,2\n#3\n4,#5\n"6\n#",7\n', [("1", "2"), ("4", "#5"), ("6\n#", "7")], []),
    ({"nullValue": "NA"}, b'NA,"NA"\n,""\n', [(None, None), (None, "")], []),
    # Given by the user, the empty text is a null.
    ({"nullValue": ""}, b'"",1\n', [(None, "1")], []),
    ({"emptyValue": "-"}, b'"",\n', [("-", None)], []),
    ({"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}, b' "a" , b\n c\t,  \n',
     [("a", "b"), ("c", None)], []),
    # Given by the user, rows may end with LF and with CRLF.
    ({"lineSep": "\\n"}, b"1,2\n3,4\r\n5,6\n", [("1", "2"), ("3", "4"), ("5", "6")], []),
    ({"lineSep": "\r\n"}, b"1,2\n3,4\r\n5,6\r7", [("1", "2"), ("3", "4")], [(9, LINE_END, "5,6\r7")]),
    ({"encoding": "windows-1252"}, b"\x80,\xe9\n\x81,2\n", [("€", "é")], [(4, "byte 0x81 is not cp1252", "\\x81,2")]),
    ({"charset": "ISO-8859-1"}, b"\xe9,2\n", [("é", "2")], []),
    ({"encoding": "shift_jis"}, "表,2\n".encode("shift_jis"), [("表", "2")], []),
    ({"encoding": "UTF-16LE"}, '1,"é\n€"\n'.encode("utf-16-le"), [("1", "é\n€")], []),
    ({"encoding": "cp037"}, "1,2\n".encode("cp037"), [("1", "2")], []),
    ({"multiLine": "true", "mode": "FAILFAST", "maxColumns": "5"}, b'1,"2\n3"\n', [("1", "2\n3")], []),
]  # fmt: skip


@pytest.mark.parametrize(("options", "data", "good", "bad"), OPTIONS)
def test_options(options, data, good, bad):
    options = {name: value.replace("\\n", "\n") for name, value in options.items()}
    outcome = read_csv(data, options=options)
    assert (outcome.good, outcome.bad) == (good, bad)


REFUSED = [
    # options, what is said
    ({"mode": "PERMISSIVE"}, r"mode is 'PERMISSIVE'.*on_bad_row says what becomes of bad rows"),
    ({"mode": "DROPMALFORMED"}, "on_bad_row"),
    ({"columnNameOfCorruptRecord": "x"}, "on_bad_row"),
    ({"lineSep": ";"}, r"lineSep is ';', expected \\n, \\r\\n or \\r"),
    ({"encoding": "UTF-99"}, "encoding is 'UTF-99', expected a charset that Python knows"),
    ({"quote": "ab"}, "quote is 'ab', expected one ASCII character, or nothing"),
    ({"sep": "\n"}, "sep is '\\\\n', expected a text without line ends"),
    ({"sep": '"'}, "expected a text without line ends and without the quote"),
    ({"header": "yes"}, "header is 'yes', expected true or false"),
    ({"ignoreLeadingWhiteSpace": "true"}, "Set both, or none"),
    ({"ignoreCorruptFiles": "true"}, "remove the files that cannot be read"),
    ({"nanValue": "-"}, "write NaN, or read the column as text"),
    ({"modifiedAfter": "2026-01-01"}, r"let Spark read the files: read: \{engine: spark\}"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_options_that_are_refused(options, message):
    with pytest.raises(SpecInvalidError, match=message):
        read_csv(b"1,2\n", options=options)


UTF_16 = '\ufeffa,b\r\n1,é€😀\r\n2,"x\r\ny"\r\n3\r\n'


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-8"])
@pytest.mark.parametrize("options", [HEADED, HEADED | {"encoding": "windows-1252"}], ids=["default", "other"])
def test_a_byte_order_mark_decides(name, options):
    outcome = read_csv(UTF_16.encode(name), options=options)
    assert outcome.good == [("1", "é€😀"), ("2", "x\r\ny")]
    [(offset, reason, text)] = outcome.bad
    assert (reason, text) == ("it has 1 field, expected 2", "3")
    assert UTF_16.encode(name)[offset:].decode(name) == "3\r\n"


def test_a_byte_that_is_no_text_in_utf_16():
    data = "a,b\n1,2\n".encode("utf-16-le") + b"3\0,\0\x00\xd8\n\0" + "4,5\n".encode("utf-16-le")
    outcome = read_csv(data, options=HEADED | {"encoding": "UTF-16LE"})
    assert outcome.good == [("1", "2"), ("4", "5")]
    assert [row[:2] for row in outcome.bad] == [(16, "byte 0x00 is not UTF-16-LE")]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_compressed_files_go_by_their_content(tmp_path: Path, pack):
    data = b"a,b\n" + b'1,"x\ny"\n' * 5000
    reader = CsvReader.make(take_options("csv", HEADED, "s.t"), None)
    outcome = read_with(reader, [store(tmp_path / "a.csv", pack(data))], 100)
    assert (len(outcome.good), set(outcome.good)) == (5000, {("1", "x\ny")})


def test_utf_16_without_a_mark_is_told():
    with pytest.raises(SourceFailedError, match=r"is UTF-16LE text without a byte order mark.*encoding: UTF-16LE"):
        read_csv("a,b\n1,2\n".encode("utf-16-le"), options=HEADED)
    with pytest.raises(SourceFailedError, match="encoding: UTF-16LE}, or UTF-16BE"):
        read_csv("a,b\n1,2\n".encode("utf-16-le"), options=HEADED | {"encoding": "UTF-16"})


def test_a_header_that_cannot_be_read_is_told():
    with pytest.raises(SourceFailedError, match=f"header of '0.csv' cannot be read, at byte 0: {OPEN_QUOTE}"):
        read_csv(b'a,"b\n1,2\n', options=HEADED)
    with pytest.raises(SourceFailedError, match="byte 0xff is not UTF-8"):
        read_csv(b"a,\xff\n1,2\n", options=HEADED)


@pytest.mark.exhaustive
def test_very_large_fields_and_very_wide_rows():
    large = b"x" * 50_000_000
    outcome = read_csv(b"a,b\n1," + large + b'\n2,"' + large + b'"\n', options=HEADED)
    assert [(row[0], len(row[1])) for row in outcome.good] == [("1", 50_000_000), ("2", 50_000_000)]
    names = b",".join(b"c%d" % number for number in range(25_000))
    wide = read_csv(names + b"\n" + names + b"\n" + names + b",\n", options=HEADED)
    assert (len(wide.names), len(wide.good[0]), wide.bad[0][1]) == (
        25_000,
        25_000,
        "it has 25001 fields, expected 25000",
    )


def test_random_files_as_a_machine_of_characters_reads_them(monkeypatch):
    """In blocks, pieces and single steps of all sizes; scripts/nightly tries a hundred thousand."""
    for seed in range(fifth_of(800)):
        compare_with_machine(monkeypatch, random.Random(seed))


def compare_with_machine(monkeypatch, chance: random.Random) -> None:
    """Compare the reader with the reference on one random file."""
    weights = chance.choice([[5, 5, 5, 5, 1, 5, 3], [5, 8, 3, 3, 0, 10, 2], [3, 3, 10, 3, 0, 3, 3]])
    plain = chance.random() < 0.5
    parts = ["a", '"', ",", "\n", "\r", "\r\n", '"",'] if plain else ["é", '"', ',"', "\n", "\r", '",', '"\n']
    text = "".join(chance.choices(parts, weights, k=chance.randint(1, 30)))
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", chance.choice([1, 2, 5, 1000]))
    monkeypatch.setattr(csv_rows, "_MOST_DOUBTS", chance.choice([0, 1, 3, 256]))
    monkeypatch.setattr(csv_cuts, "_STRIDE", 3)
    reader = CsvReader.make(take_options("csv", {}, "s.t"), None)
    files = [hold(text.encode())]
    look = reader.look(files, "s.t", in_turn)
    if not look.files or not look.schema.names:
        return
    layout = look.files[0][1]
    good, bad = list[tuple[str | None, ...]](), list[tuple[int, str]]()
    for row in read_rows(text, layout.line_end.decode()):
        offset = len(text[: row.start].encode())
        if row.is_blank and len(row.fields) == 1 and layout.fields > 1:
            continue
        if row.fault is not None:
            bad.append((offset, row.fault))
        elif len(row.fields) == layout.fields:
            good.append(tuple(row.fields))
        else:
            bad.append(
                (offset, f"it has {len(row.fields)} field{'s'[: len(row.fields) != 1]}, expected {layout.fields}")
            )
    for size in (len(text) * 4, chance.randint(1, 8)):
        outcome = read_with(reader, files, size)
        kinds = {OPEN_QUOTE: OPEN, BEHIND_QUOTE: OTHER, LINE_END: OTHER}
        found = [(offset, kinds.get(reason, reason)) for offset, reason, _ in outcome.bad]
        assert (outcome.good, found) == (good, bad), (text, size)
    assert in_turn(reader.count, reader.cut(look, 5, in_turn))


TRIMMED = {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
CUT = [
    # options, a file, how many pieces of about 8 bytes it has
    ({}, 'a,"b\nc"\nd,"e,\nf"\ng,hhhh\n', 2),
    ({"sep": "||"}, "a||b\nccc||d\ne||f\ng||hhhh\n", 3),
    ({"sep": "||"}, 'a||b\nccc||d\ne||"f"\ng||hhhh\n', 1),
    ({"escape": "\\"}, "a,b\nccc,\\d\ne,f\ng,hhhh\n", 2),
    ({"escape": "\\"}, 'a,b\nccc,"\\""\ne,f\ng,hhhh\n', 1),
    (TRIMMED, "a , b\nccc , d\ne , f\n", 2),
    (TRIMMED, 'a , b\nccc , d\ne , "f"\n', 1),
    ({"comment": "#"}, "a,b\n#ccccc\n#dddd\ne,f\n", 3),
    ({"comment": "#"}, 'a,"b#\n"\n#ccccc\n#dddd\ne,f\n', 3),
    ({"comment": "#"}, 'a,b\n#cc"ccc\n#dddd\ne,f\n', 1),
]


@pytest.mark.parametrize(("options", "text", "count"), CUT, ids=range(len(CUT)))
def test_files_are_cut_where_rows_begin(options, text, count):
    reader = CsvReader.make(take_options("csv", options, "s.t"), None)
    files = [hold(text.encode())]
    assert len(reader.cut(reader.look(files, "s.t", in_turn), 8, in_turn)) == count
    assert read_with(reader, files, 8) == read_with(reader, files)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"comment": "#"}, ["a", "#", ",", "\n", '"', "\n#", '"\n"']),
        ({"comment": "#", "quote": ""}, ["a", "#", ",", "\n", '"']),
        ({"escape": "\\"}, ["a", "\\", ",", "\n", "\n", "b"]),
        ({"sep": "||"}, ["a", "|", "||", "\n", "\n", "b"]),
        (TRIMMED, ["a", " ", ",", "\n", "\t"]),
    ],
)
@pytest.mark.parametrize("look_behind", [1, 1 << 16])
def test_random_files_in_pieces_are_as_they_are_whole(monkeypatch, options, parts, look_behind):
    monkeypatch.setattr(csv_cuts, "_STRIDE", 3)
    monkeypatch.setattr(csv_cuts, "_COMMENT_BYTES", look_behind)
    reader, chance = CsvReader.make(take_options("csv", options, "s.t"), None), random.Random(42)
    for _ in range(50):
        text = "".join(chance.choices(parts, k=chance.randint(1, 30)))
        files = [hold(text.encode())]
        if reader.look(files, "s.t", in_turn).schema.names:
            assert read_with(reader, files, chance.randint(1, 8)) == read_with(reader, files), text


BEFORE_THE_HEADER = [
    # what lies before the header, options
    (b"\n", {}),
    (b"\n\n", {}),
    (b"\r\n", {}),
    (b" \n", {}),
    (b"\t\n", {"sep": "\t"}),
    (b" \t \n", {"sep": "\t"}),
    (b"# a comment\n\n", {"comment": "#"}),
    (b"\n# a comment\n", {"comment": "#"}),
    (b"\xef\xbb\xbf\n", {}),
    ("\ufeff\n".encode("utf-16-le"), {"encoding": "UTF-16LE"}),
]


@pytest.mark.parametrize(("before", "options"), BEFORE_THE_HEADER)
@pytest.mark.parametrize("names", [("name",), ("name", "zip")])
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_what_lies_before_the_header_is_no_row(monkeypatch, before, options, names, block):
    """The look finds the header by its own scan, and the read drops the rows up to it: both mean the same row."""
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", block)
    sep, charset = options.get("sep", ","), options.get("encoding", "utf-8")
    rows = [tuple(f"{letter}{number}" for number, _ in enumerate(names)) for letter in "ab"]
    text = "".join(sep.join(row) + "\n" for row in (names, *rows))
    end = b"\r\n" if before.endswith(b"\r\n") else b"\n"
    outcome = read_csv(before + text.replace("\n", end.decode()).encode(charset), options=HEADED | options)
    assert (outcome.good, outcome.bad) == (rows, [])


@pytest.mark.parametrize("names", [1, 2])
def test_a_header_behind_the_first_piece(names):
    """Blank lines fill the first pieces of a large file."""
    row = ",".join(["x"] * names).encode() + b"\n"
    outcome = read_csv(b"\n" * 5000 + row + row * 20, size=500, options=HEADED)
    assert (outcome.good, outcome.bad) == ([("x",) * names] * 20, [])
