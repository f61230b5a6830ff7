"""Object keys; the paths are the vendor's documented examples for a load of 2024-01-15T10:30Z with job id abc123."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout, ObjectNames, file_uuid

START = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
EXTENSION = ".gzip.parquet"
HOUR, DAY, SYNC_ID, NONE = "{date:%Y/%m/%d/%H}", "{date:%Y/%m/%d}", "{job_id}", ""
DEFAULT_FILE = "part-{job_id}-{seq}"


def names(
    directory: str, partition: str, file: str = DEFAULT_FILE, job_id: str = "abc123", attempt: str = "first"
) -> ObjectNames:
    layout = Layout(directory, Template.parse(f"{partition}/{file}{EXTENSION}"))
    return layout.bind(job_id=job_id, attempt=attempt, start=START)


# (directory, partition template, expected key of file 0)
PATHS = [
    (
        "data/supaflow_postgres_public/accounts",
        HOUR,
        "data/supaflow_postgres_public/accounts/2024/01/15/10/part-abc123-00000.gzip.parquet",
    ),
    (
        "data/supaflow_postgres_public/accounts",
        DAY,
        "data/supaflow_postgres_public/accounts/2024/01/15/part-abc123-00000.gzip.parquet",
    ),
    (
        "data/supaflow_postgres_public/accounts",
        SYNC_ID,
        "data/supaflow_postgres_public/accounts/abc123/part-abc123-00000.gzip.parquet",
    ),
    (
        "data/supaflow_postgres_public/accounts",
        NONE,
        "data/supaflow_postgres_public/accounts/part-abc123-00000.gzip.parquet",
    ),
    # No prefix; then a blank schema.
    (
        "supaflow_postgres_public/accounts",
        HOUR,
        "supaflow_postgres_public/accounts/2024/01/15/10/part-abc123-00000.gzip.parquet",
    ),
    ("data//accounts", HOUR, "data/accounts/2024/01/15/10/part-abc123-00000.gzip.parquet"),
    ("/data/accounts/", NONE, "data/accounts/part-abc123-00000.gzip.parquet"),
]


@pytest.mark.parametrize(("directory", "partition", "expected"), PATHS)
def test_object_key_documented_paths(directory: str, partition: str, expected: str) -> None:
    assert names(directory, partition).object_key(0) == expected


# (file template, number, expected file name)
FILES = [
    (DEFAULT_FILE, 7, "part-abc123-00007"),
    (DEFAULT_FILE, 123456, "part-abc123-123456"),
    ("{date:%Y%m%d}_{date:%Y%m%d%H%M%S}_{job_id}.{seq}", 1, "20240115_20240115103000_abc123.00001"),
    ("plain-{seq}-{job_id}", 0, "plain-00000-abc123"),
]


@pytest.mark.parametrize(("file", "number", "expected"), FILES)
def test_object_key_file_variables(file: str, number: int, expected: str) -> None:
    assert names("d", NONE, file).object_key(number) == f"d/{expected}.gzip.parquet"


def test_object_key_uuid_depends_on_attempt_and_number() -> None:
    keys = [names("d", NONE, "{uuid}", attempt=a).object_key(n) for a in ("x", "y") for n in (0, 1)]
    assert len(set(keys)) == 4
    assert names("d", NONE, "{uuid}", attempt="x").object_key(0) == keys[0]


def test_uuids_of_two_tables_of_a_load_differ() -> None:
    layout = Layout("d", Template.parse("{uuid}"))
    users, orders = (
        layout.bind(job_id="j", attempt="a", start=START, table=own) for own in ("public.users", "public.orders")
    )
    assert users.object_key(0) != orders.object_key(0)
    # What is left of the attempt tells its uploads by the head alone.
    assert users.pattern().fullmatch(orders.object_key(0))


def test_file_uuid_is_version_8_and_shares_its_head_within_an_attempt() -> None:
    first, second = file_uuid("x", 0), file_uuid("x", 1)
    assert (first.version, first.variant) == (8, "specified in RFC 4122")
    assert str(first)[:18] == str(second)[:18] != str(file_uuid("y", 0))[:18]


def test_location_is_the_directory_of_all_files() -> None:
    assert names("data/s/accounts", HOUR).location == "data/s/accounts/2024/01/15/10"


OWN = names("data/s/accounts", HOUR)
DEEP = replace(OWN, depth=2)
DEEP_UUID = replace(names("data/s/accounts", NONE, "part-{job_id}-{seq}-{uuid}"), depth=2)
OWN_UUID = names("data/s/accounts", HOUR, "{uuid}")

# (names, key, whether the pattern matches it)
MATCHES = [
    (OWN, OWN.object_key(0), True),
    (OWN, OWN.object_key(1234567), True),
    (OWN, names("data/s/accounts", HOUR, job_id="abc124").object_key(0), False),
    (OWN, names("data/s/accounts", DAY).object_key(0), False),
    (OWN, names("data/s/accounts2", HOUR).object_key(0), False),
    (OWN, OWN.object_key(0) + ".tmp", False),
    (OWN, OWN.object_key(0).replace(".gzip", "xgzip"), False),
    (OWN_UUID, OWN_UUID.object_key(0), True),
    (OWN_UUID, OWN_UUID.object_key(99), True),
    (OWN_UUID, names("data/s/accounts", HOUR, "{uuid}", attempt="second").object_key(0), False),
    (names("", NONE), "part-abc123-00000.gzip.parquet", True),
    (DEEP, DEEP.object_key(7, "a=1/b=x%2Fy"), True),
    (DEEP, DEEP.object_key(7, "a=1"), False),
    (DEEP, DEEP.object_key(7), False),
    (DEEP_UUID, DEEP_UUID.object_key(7, "a=1/b=2"), True),
    (DEEP_UUID, replace(DEEP_UUID, attempt="second").object_key(7, "a=1/b=2"), False),
]


@pytest.mark.parametrize(("own", "key", "expected"), MATCHES)
def test_pattern_matches_own_keys_only(own: ObjectNames, key: str, expected: bool) -> None:
    assert bool(own.pattern().fullmatch(key)) is expected


# (names, what all their keys begin with)
PREFIXES = [
    (OWN, "data/s/accounts/2024/01/15/10/part-abc123-"),
    (OWN_UUID, "data/s/accounts/2024/01/15/10/"),
    (names("", NONE), "part-abc123-"),
]


@pytest.mark.parametrize(("own", "expected"), PREFIXES)
def test_prefix_is_what_all_keys_begin_with(own: ObjectNames, expected: str) -> None:
    assert own.prefix == expected
    assert own.object_key(7).startswith(expected)


# (keys there are, the number that the first file's name then carries)
TAKEN = [
    ([], 0),
    ([OWN.object_key(0), OWN.object_key(12), OWN.object_key(3)], 13),
    ([names("data/s/accounts", HOUR, job_id="abc124").object_key(5)], 0),
]


@pytest.mark.parametrize(("keys", "expected"), TAKEN)
def test_numbers_after_those_taken(keys: list[str], expected: int) -> None:
    shifted = OWN.after(keys)
    assert shifted.first == expected
    assert shifted.object_key(0) == OWN.object_key(expected)
    assert shifted.pattern() == OWN.pattern()


def test_parse_unknown_variable_names_the_known_ones() -> None:
    with pytest.raises(SpecInvalidError, match=r"'\{sequence\}'.*\{job_id\}, \{date\}, .*\{seq\}, \{uuid\}"):
        Template.parse("part-{sequence}")


def test_variables_are_what_the_template_uses() -> None:
    assert Template.parse("{date:%Y}/{job_id}-{seq}").variables == {"date", "job_id", "seq"}


def test_object_key_counts_through_the_tables_life() -> None:
    layout = Layout("my-prefix", Template.parse("v{backfill}/{counter}.parquet"))
    bound = layout.bind(job_id="j", attempt="a", start=START)
    assert bound.object_key(0) == "my-prefix/v0000000000/00000000000000000000.parquet"
    later = bound.number(2, 17)
    assert later.object_key(1) == "my-prefix/v0000000002/00000000000000000018.parquet"
    assert bound.pattern().fullmatch(later.object_key(1))
    assert (bound.location, bound.counts) == ("my-prefix", True)


KEYS = ["d/users/1.csv", "d/users/1.avro", "d/users/x/1.avro", "d/users/x/1.csv", "d/usersx/1.csv", "d/orders/1.avro"]
RULES = [
    # the table's directory of its own, another table's and its template, which keys a refresh may replace
    ("", "", "d/orders/{part}.csv", ["d/users/1.csv"]),
    ("d/users", "d/orders", "d/orders/{part}.csv", ["d/users/1.csv", "d/users/1.avro", "d/users/x/1.avro",
                                                    "d/users/x/1.csv"]),
    ("d/users", "d/users/x", "d/users/x/{part}.csv", ["d/users/1.csv", "d/users/1.avro"]),
    ("d/users", "", "d/users/{part}.avro", ["d/users/1.csv", "d/users/x/1.avro", "d/users/x/1.csv"]),
    # a directory that both have is neither's own, and one around it is no matter
    ("d/users", "d/users", "d/users/{part}.avro", ["d/users/1.csv"]),
    ("d/users", "d", "d/{part}.csv", ["d/users/1.csv", "d/users/1.avro", "d/users/x/1.avro", "d/users/x/1.csv"]),
]  # fmt: skip


@pytest.mark.parametrize(("purged", "other", "template", "expected"), RULES)
def test_keys_that_a_refresh_may_replace(purged: str, other: str, template: str, expected: list[str]) -> None:
    own = Layout("", Template.parse("d/users/{part}.csv"), purged=purged)
    rule = own.make_replacement_rule([Layout("", Template.parse(template), purged=other)])
    assert [key for key in KEYS if rule(key)] == expected
    assert all(key.startswith(own.replaced_prefix) for key in expected)


def test_a_refresh_replaces_other_formats_of_the_same_template() -> None:
    """A stream whose format was changed: what it had before goes, and what another stream had before stays."""

    def lay(table: str) -> Layout:
        names = [Template.parse(f"d/{table}{{part}}{end}") for end in (".jsonl.gz", ".jsonl", ".csv")]
        return Layout("", names[0], variants=tuple(names[1:]))

    rule = lay("users").make_replacement_rule([lay("users1_")])
    keys = ["d/users1.jsonl.gz", "d/users1.jsonl", "d/users2.csv-1", "d/users1.txt", "d/users1_1.jsonl"]
    assert [key for key in keys if rule(key)] == keys[:3]
    early = Layout("", Template.parse("d/x.jsonl_{part}"), variants=(Template.parse("d/x.csv_{part}"),))
    assert early.replaced_prefix == "d/x."


COPIES = [
    # the folder's template, a path, the key in two loads of an attempt that starts at midnight
    (("data/s/", ("epoch", ""), "_"), "/a//b c.txt", ["data/s/1704067200000_/a/b c.txt"] * 2),
    (("data/s/", ("date", "%Y"), "/"), "b.txt", ["data/s/2024/j1/b.txt", "data/s/2024/j2/b.txt"]),
    (("data/s/", ("sync_id", ""), "/"), "b.txt", ["data/s/7/j1/b.txt", "data/s/7/j2/b.txt"]),
    (("data/s",), "0.csv", ["data/s/j1/0.csv", "data/s/j2/0.csv"]),
    # A load's own files may be called so.
    (("data/s/", ("epoch", ""), "/"), "0.csv", ["data/s/1704067200000/files/0.csv"] * 2),
]


@pytest.mark.parametrize(("folder", "path", "expected"), COPIES)
def test_keys_of_copied_files(folder, path, expected):
    """Each is found among the uploads of its attempt, and of no other load where the folder has the load in it."""
    parts = Template.of(*folder)
    layout = Layout("", Template.of(*folder, ("part", ""), ".csv"), folder=parts)
    bound = [
        layout.bind(job_id=job, attempt=f"A{job}", start=datetime(2024, 1, 1, tzinfo=UTC), sync_id=7)
        for job in ("j1", "j2")
    ]
    keys = [names.file_key(path) for names in bound]
    assert keys == expected
    assert [names.pattern().fullmatch(key) is not None for names, key in zip(bound, keys, strict=True)] == [True, True]
    if keys[0] != keys[1]:
        assert bound[0].pattern().fullmatch(keys[1]) is None


def test_a_uuid_in_the_folder_is_the_files_own():
    layout = Layout("", Template.of("s/", ("uuid", ""), "/x"), folder=Template.of("s/", ("uuid", ""), "/"))
    names = layout.bind(job_id="j", attempt="A", start=datetime(2024, 1, 1, tzinfo=UTC))
    one, other = names.file_key("a"), names.file_key("b")
    assert (one != other, one == names.file_key("a"), names.pattern().fullmatch(one) is not None) == (True, True, True)


OUTSIDE = [
    # a template, the folders of a partition, what is said
    ("{uuid}", "_lakewriter_x=1", "has the segment '_lakewriter_x=1'"),
    ("{uuid}", "a=1/..", "has the segment '..'"),
    ("_{job_id}", "", "has the segment '_lakewriter'"),
]


@pytest.mark.parametrize(("template", "within", "said"), OUTSIDE)
def test_key_outside_its_folder(template, within, said):
    """docs/guide-lakewriter.md, "Names in keys"."""
    own = Layout("d", Template.parse(template)).bind(
        job_id="lakewriter", attempt="a", start=datetime(2027, 1, 4, tzinfo=UTC)
    )
    with pytest.raises(SpecInvalidError, match=f"a file would lie at .*: the key {said}"):
        own.object_key(0, within)
