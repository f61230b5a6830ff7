"""Texts that are no YAML, or more of it than a file may be: what is said of them, by libyaml's parser and PyYAML's."""

import tracemalloc

import pytest
import yaml

from lakewriter.dialects.common import yaml_nodes
from lakewriter.dialects.common.source_files import read_json
from lakewriter.dialects.common.yaml_nodes import compose, to_python
from lakewriter.dialects.common.yaml_problems import YamlProblemError
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError

OUTDENTED = "this line is not indented like those above that it belongs with; align it with them"
TEXTS = [
    # the text, the line at fault, what is said of it
    ("a: [1\nb: 2", 1, "the list that begins here with '[' has no ']', or no ',' between two items"),
    ("a: {b: 1", 1, "the mapping that begins here with '{' has no '}', or no ',' between two keys"),
    ("a: 1\nb: {", 2, "a '[' or '{' before the end of this line has no end"),
    ('a: 1\nb: "x', 2, "the text that begins here with a quote does not end with one"),
    ("a: 'x\n---\n", 1, "the text that begins here with a quote does not end with one"),
    ("a:\n\tb: 1", 2, "a tab or '\\t' cannot begin a line; indent with spaces, and put text that begins with a special "
     "character in quotes"),
    ("secret_access_key: %hush", 1, "a value cannot begin with '%'; put it in quotes"),
    ("a: @x", 1, "a value cannot begin with '@'; put it in quotes"),
    ("a: b: c", 1, "a ': ' is not allowed here; put a value that has one in quotes, and align keys of one mapping"),
    ("a: 1\n b: 2", 2, "a ': ' is not allowed here; put a value that has one in quotes, and align keys of one mapping"),
    ("a:\n  b: 1\n c: 2", 3, OUTDENTED),
    ("a: 1\nfoo\nb: 2", 2, "expected a key with ': ' behind it, or a value indented below its key"),
    ('a: "\\q"', 1, "this backslash in double quotes begins no known escape; use single quotes, or two backslashes"),
    ("a: |x\n b", 1, "text of several lines begins on the line below its '|' or '>'"),
    ("a: 'it's'", 1, "'s' follows the end of a value; put the whole value in quotes"),
    ("- a\nb: 1", 2, "expected '- ' as in the items above, or a key indented below one of them"),
    ("a: -\n- b", 1, "a list's '- ' is not allowed here; begin the list on a line of its own"),
    ("a: ]", 1, "expected a value, got ']'; put text that begins with it in quotes"),
    ("a: !e!x 1", 1, "'!' begins a tag that is not known here; put text that begins with it in quotes"),
    ("a: !!", 1, "'!' begins a tag that is not known here; put text that begins with it in quotes"),
    ("a: &", 1, "'&' and '*' begin a name that others refer to; put text that begins with them in quotes"),
    ("%YAML 9.9\n---\na: 1", 1, "a line that begins with '%' is a directive of another YAML, and what follows no "
     "document; remove it"),
    ("a: *x", 1, "the alias *x has no anchor &x above it; put text that begins with '*' in quotes"),
    ("a: &a [*a]", 1, "the alias *a is inside what it names, which would have no end"),
    ("a: 1\n---\nb: 2", 2, "a second document begins here; expected one in the file"),
    ("a: 1\nb: \x00", 2, "the character U+0000 is not allowed in YAML; remove it"),
    ("a: 2024-13-45", 1, "a value is written like a date or a number and is none; put it in quotes if it is text"),
    ("a: !!int x", 1, "the tag '!!int' is not known, or its value is of another type; leave it out"),
    ("a: !!python/object/apply:os.system [ls]", 1, "the tag '!!python/object/apply:os.system' is not known; leave it "
     "out"),
    ("a: " + "1" * 101, 1, "a number of more than 100 characters; put it in quotes if it is text"),
    ("? [a]\n: b", 1, "expected a key, got a list or a mapping; put text with '{' or '[' in quotes"),
    ("<<: 5", 1, "'<<' takes the alias of a mapping, or a list of them"),
    ("pipeline: a\npipeline: b\n", 2, "'pipeline' is given twice in one mapping; leave one of them out"),
    ("a:\n  - b: 1\n    b: 2\n", 3, "'b' is given twice in one mapping; leave one of them out"),
    ("[" * 101, 1, "more than 100 lists and mappings inside each other"),
]  # fmt: skip


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def parser(request, monkeypatch):
    """Both parsers; PyYAML's own where libyaml is missing."""
    monkeypatch.setattr(yaml_nodes, "PARSER", getattr(yaml, request.param))


@pytest.mark.usefixtures("parser")
def test_what_is_said_of_a_text_that_is_no_yaml():
    said = []
    for text, _, _ in TEXTS:
        with pytest.raises(YamlProblemError) as caught:
            compose(text)
        said.append((text, caught.value.line, caught.value.text))
    assert said == TEXTS


GOOD = [
    "a: 1\nb: [x, 2024-01-02, 1.5, true, ~, '5', 0x10, 1:30]\n",
    "base: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}\nd: {<<: [*b, {z: 4}]}\n",
    "a: !!str 5\nb: !!float 5\nc: !!int '7'\nd: ! 5\n",
    "on: 1\n2: x\n'2.0': y\n",
    "# nothing\n",
    "\ufeffa: \u00e9\n",
]


@pytest.mark.usefixtures("parser")
def test_values_are_those_of_the_safe_loader():
    for text in GOOD[:-1]:
        node = compose(text)
        assert (to_python(node) if node else None) == yaml.safe_load(text)


def test_lines_of_keys_and_items_also_behind_an_alias():
    node = compose("base: &b\n  x: 1\nc:\n  <<: *b\n  on:\n    - 1\n    - 2\n")
    assert node is not None
    lines = {}
    for path in (("c",), ("c", "x"), ("c", True), ("c", "True", 1)):
        at = node
        for step in path:
            key = at.get_child(step)
            assert key is not None
            at, lines[path] = key.node, (key.text, key.line)
    assert list(lines.values()) == [("c", 3), ("x", 2), ("on", 5), ("1", 7)]


def _laughs(levels: int) -> str:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(rows)


BOMBS = [
    # what grows beyond its text, what is said
    (_laughs(40), "more than 2,000,000 keys and values, counting what each alias stands for; make it smaller"),
    ("\n".join(["a0: &a0 {k: 1}", *(f"a{n}: &a{n} {{k: *a{n - 1}}}" for n in range(1, 200))]),
     "with what the alias *a98 stands for there are more than 100 lists and mappings inside each other"),
    ("a: &a 1\nb: [" + "*a," * 100_001 + "]", "more than 100,000 aliases; write some of them out"),
    ("a: 1" + ":59" * 100_000, "a number of more than 100 characters; put it in quotes if it is text"),
    ("a: " + "[" * 1_000_000, "more than 100 lists and mappings inside each other"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), BOMBS, ids=range(len(BOMBS)))
def test_what_grows_beyond_its_text_is_refused_within_bounds(tmp_path, text, expected):
    """Nine-fold aliases of 1.9 KB took 1.35 GB."""
    path = tmp_path / "lake.yaml"
    path.write_text(text, "utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(SpecInvalidError) as caught:
            load_spec(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.message.endswith(f": {expected}.")
    assert peak < 50 * 1024 * 1024


def test_more_values_than_a_file_may_have(monkeypatch):
    monkeypatch.setattr(yaml_nodes, "MAX_NODES", 100)
    assert compose("[" + "1," * 99 + "]")
    with pytest.raises(YamlProblemError, match="more than 100 keys and values"):
        compose("[" + "1," * 100 + "]")


FILES = [
    # what lies at lake.yaml, what is said; {path} is the file's
    (b"", "lake.yaml: the file holds nothing, expected a mapping with the keys 'pipeline', 'destination' and "
     "'tables'."),
    (b"- a", "lake.yaml: the file holds a list, expected a mapping with the keys 'pipeline', 'destination' and "
     "'tables'."),
    (b"hello", "lake.yaml: the file holds text, expected a mapping with the keys 'pipeline', 'destination' and "
     "'tables'."),
    (b"a: 1\nb: \xff", "lake.yaml:2: this is not UTF-8 text. Save the file in the encoding UTF-8."),
    (b" " * (32 * 1024 * 1024 + 1), "lake.yaml has more than 32 MiB, which no such file needs."),
]  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), FILES, ids=range(len(FILES)))
def test_a_file_that_cannot_be_taken(tmp_path, content, expected):
    (tmp_path / "lake.yaml").write_bytes(content)
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(tmp_path / "lake.yaml")
    assert str(caught.value) == f"SPEC_INVALID: {expected}"


def test_a_file_that_is_not_there(tmp_path):
    (tmp_path / "lake.yml").write_text("", "utf-8")
    said = {}
    for name in ("lake.yaml", "none/lake.yaml", "."):
        with pytest.raises(SpecInvalidError) as caught:
            load_spec(tmp_path / name)
        said[name] = str(caught.value).replace(str(tmp_path), "/home")
    assert said == {
        "lake.yaml": "SPEC_INVALID: there is no file '/home/lake.yaml'. The folder has: lake.yml.",
        "none/lake.yaml": "SPEC_INVALID: there is no file '/home/none/lake.yaml'. There is no folder '/home/none' "
        "either.",
        ".": "SPEC_INVALID: '/home' is a folder. Name a file in it.",
    }


JSON = [
    ('{"a" 1}', "c.json:1: this is not JSON: expecting ':' delimiter."),
    ("[" * 150 + "]" * 150, "c.json: has more than 100 lists and objects inside each other."),
    ("[" * 100_000, "c.json: has a number of thousands of digits, or more than 100 lists and objects "
     "inside each other."),
    ("1" * 5000, "c.json: has a number of thousands of digits, or more than 100 lists and objects inside each other."),
    ('{"a": "\\ud800"}', "c.json: has half of a pair of \\u escapes, which is no character."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), JSON, ids=range(len(JSON)))
def test_json_that_cannot_be_taken(tmp_path, text, expected):
    (tmp_path / "c.json").write_text(text, "utf-8")
    with pytest.raises(SpecInvalidError) as caught:
        read_json(tmp_path / "c.json")
    assert str(caught.value) == f"SPEC_INVALID: {expected}"
