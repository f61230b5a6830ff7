"""A lake.yaml from every starting point: what is written, and that it loads as it is."""

import json
from pathlib import Path

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.init.draft import write_draft
from lakewriter.init.start import Wishes, make_draft
from lakewriter.spec.table_spec import Mode

AIRBYTE = Path(__file__).parents[2] / "examples" / "airbyte"

ORDERS = """order_id,zip,amount,updated_at
1,01234,2.50,2026-01-01T10:00:00Z
2,90210,7.10,2026-01-02T10:00:00Z
"""

# The text for a folder with this one file: each line with what it means, or why it is there.
DRAFT = """\
# yaml-language-server: $schema=lake.schema.json
# Drafted by: lakewriter init data
# The pipeline's name, which its records in the bucket lie under: lower-case letters, digits, `-` and `_`. Never
# change it once a load has run.
pipeline: data

destination:
  # whose layout; or supaflow-s3, supaflow-s3-data-lake, airbyte-s3, heropixel-s3, estuary-s3-parquet
  type: lakewriter-s3
  location: s3://change-me/lake  # put your own bucket here; --local needs none
  # The region of the bucket, where Glue and STS are called too. With `endpoint` the store's own name for it.
  region: us-east-1

tables:
  - table: orders  # 1 file, 99 B; looked at all 2 rows, 4 columns
    read: {format: csv, path: data/orders.csv, options: {header: true}}
    primary_key: [order_id]  # 2 distinct values in 2 rows, none null
    # later loads read only what is newer; never null, from 2026-01-01T10:00:00Z to 2026-01-02T10:00:00Z
    cursor: updated_at
    columns:
      order_id: bigint  # all values (2) are whole numbers, from 1 to 2
      amount: double  # all values (2) are numbers, such as '2.50'
      updated_at: timestamp  # all values (2) are times, such as '2026-01-01T10:00:00Z'
    # zip stays text: 1 of 2 values are numbers, but '01234' has a leading zero, as codes have
"""


def write(folder, places, **wishes):
    """The drafted file, written with what goes beside it."""
    drafted = make_draft([str(folder / place) for place in places], Wishes(folder, **wishes))
    for name, content in drafted.beside.items():
        (folder / name).write_text(json.dumps(content), "utf-8")
    lake = folder / "lake.yaml"
    lake.write_text(write_draft(drafted.draft, f"lakewriter init {' '.join(places)}"), "utf-8")
    return lake


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text(ORDERS, "utf-8")
    for name in ("destination.json", "configured_catalog.json", "messages.jsonl"):
        (tmp_path / name).write_bytes((AIRBYTE / name).read_bytes())
    return tmp_path


def test_a_folder_of_files(folder):
    assert write(folder, ["data"]).read_text("utf-8") == DRAFT


DAY = "order_id,placed_at\n{0},2026-01-01T10:00:00Z\n"
CHANGED = "order_id,updated_at\n{0},2026-01-01T10:00:00Z\n"
NOTE = (
    "# NOTE: each load of {} appends all rows again. Choose a cursor, read: {{files: new}} for a folder that gets new "
    "files{}, or repeated: allow where that is wanted."
)
MERGED = (
    "# NOTE: its files repeat each other's rows, and files: new would append them again. A cursor, or in Iceberg mode: "
    "merge, takes each row once: order_id has 1 distinct value in 2 rows of 2 files"
)
NEW = "# files: new: each load reads the files that no earlier load has read; their names have dates"
INSTEAD = "# in place of files: new: later loads read only what is newer; never null, from 2026-01-01T10:00:00Z to "
WAYS = [
    # files below data/, the destination's type; lines of the lake.yaml, and the mode, the cursor and whether files are
    # new, as it loads
    (
        {"orders-2026-01-01.csv": DAY.format(1), "orders-2026-01-02.csv": DAY.format(2)}, "lakewriter-s3",
        [NEW, "read: {format: csv, path: data, options: {header: true}, files: new}", "# cursor: placed_at"],
        (Mode.APPEND, None, True),
    ),
    # A cursor would miss rows of a day that comes late.
    (
        {"orders-2026-01-01.csv": CHANGED.format(1), "orders-2026-01-02.csv": CHANGED.format(2)}, "supaflow-s3",
        [NEW, f"{INSTEAD}2026-01-01T10:00:00Z", "# cursor: updated_at"],
        (Mode.APPEND, None, True),
    ),
    (
        {"orders-2026-01-01.csv": CHANGED.format(1), "orders-2026-01-02.csv": CHANGED.format(1)}, "lakewriter-s3",
        [MERGED, "cursor: updated_at"],
        (Mode.APPEND, "updated_at", False),
    ),
    (
        {"orders-2026-01-01.csv": DAY.format(1), "orders-2026-01-02.csv": DAY.format(1)}, "lakewriter-s3",
        [NOTE.format("orders", ", mode: refresh to replace the table whole"), MERGED],
        (Mode.APPEND, None, False),
    ),
    (
        {"kinds.csv": "code,label\na,A\nb,B\n"}, "lakewriter-s3",
        ["mode: refresh  # each load replaces the table whole; no column says what is new, and it is small"],
        (Mode.REFRESH, None, False),
    ),
    (
        {"orders.csv": DAY.format(1)}, "lakewriter-s3",
        ["# in place of mode: refresh: later loads read only what is newer; from 2026-01-01T10:00:00Z to "
         "2026-01-01T10:00:00Z: right only if no row changes after it is written", "# cursor: placed_at",
         "mode: refresh  # each load replaces the table whole; no column surely says what is new, and it is small"],
        (Mode.REFRESH, None, False),
    ),
    (
        {"kinds.csv": "code,label\na,A\nb,B\n"}, "airbyte-s3",
        [NOTE.format("kinds", ", mode: overwrite to replace the table whole"),
         "# mode: overwrite  # each load replaces the table whole; without it, each load appends all rows again"],
        (Mode.APPEND, None, False),
    ),
    (
        {"kinds.csv": "code,label\na,A\nb,B\n"}, "estuary-s3-parquet", [NOTE.format("kinds", "")],
        (Mode.APPEND, None, False),
    ),
]  # fmt: skip


def unwrap(text):
    """The words of a text, whose comments may be wrapped."""
    return " ".join(text.replace("#", " ").split())


@pytest.mark.parametrize(("files", "kind", "lines", "way"), WAYS)
def test_a_second_load_does_what_is_meant(folder, files, kind, lines, way):
    (folder / "data" / "orders.csv").unlink()
    for name, text in files.items():
        (folder / "data" / name).write_text(text, "utf-8")
    lake = write(folder, ["data"], kind=kind)
    written = unwrap(lake.read_text("utf-8"))
    assert [line for line in lines if unwrap(line) not in written] == []
    (table,) = load(lake).spec.tables
    assert (table.mode, table.cursor, bool(table.read.new_files)) == way


def test_a_large_table_is_not_replaced_by_each_load(folder, monkeypatch):
    monkeypatch.setattr("lakewriter.init.samples.LOOK_ROWS", 1)
    (folder / "data" / "orders.csv").unlink()
    for number in (1, 2):
        (folder / "data" / f"part-{number}.csv").write_text(DAY.format(number), "utf-8")
    text = write(folder, ["data"]).read_text("utf-8")
    line = "    # mode: refresh  # each load replaces the table whole; without it, each load appends all rows again"
    assert line in text.splitlines()


def test_one_note_for_all_tables_that_are_appended_again(folder):
    for number in range(12):
        (folder / "data" / f"{'abcdefghijkl'[number]}.csv").write_text(f"n{number},m{number}\n1,2\n", "utf-8")
    written = unwrap(write(folder, ["data"], kind="airbyte-s3").read_text("utf-8"))
    note = NOTE.format("a, b, c, d, e, f, g, h, i, j, k, l", ", mode: overwrite to replace the table whole")
    assert (written.count(unwrap(note)), written.count("NOTE")) == (1, 1)


# In the order in which messages list them.
KINDS = ["supaflow-s3", "supaflow-s3-data-lake", "airbyte-s3", "heropixel-s3", "estuary-s3-parquet", "lakewriter-s3"]


@pytest.mark.parametrize("kind", KINDS)
def test_files_for_every_destination(folder, kind):
    loaded = load(write(folder, ["data"], kind=kind, bucket="acme-lake", region="eu-west-1", expects=True))
    (table,) = loaded.spec.tables
    assert (loaded.spec.access.bucket, loaded.spec.access.region) == ("acme-lake", "eu-west-1")
    key = tuple(key.strip("/") for key in table.collection.keys) if table.collection else table.primary_key
    assert (loaded.spec.pipeline, table.name, key) == ("data", "orders", ("order_id",))


API = {
    "destinationId": "d",
    "destinationType": "s3",
    "configuration": {
        "destinationType": "s3",
        "s3_bucket_name": "acme",
        "s3_bucket_path": "raw",
        "s3_bucket_region": "eu-west-1",
        "access_key_id": "**********",
        "secret_access_key": "**********",
        "format": {"format_type": "JSONL"},
    },
}
PUBLIC = {
    "connectionId": "c",
    "configurations": {
        "streams": [
            {"name": "users", "syncMode": "incremental_deduped_history", "primaryKey": [["id"]]},
            {"name": "events", "namespace": "app", "syncMode": "full_refresh_overwrite"},
        ]
    },
}
SYNCED = {
    "connectionId": "c",
    "syncCatalog": {
        "streams": [
            {
                "stream": {"name": "users", "jsonSchema": {"properties": {"id": {"type": "integer"}}}},
                "config": {"syncMode": "incremental", "destinationSyncMode": "append", "cursorField": ["id"]},
            },
            {"stream": {"name": "left_out"}, "config": {"selected": False}},
        ]
    },
}
FLOW = {
    "collections": {
        "acmeCo/orders": {"key": ["/order_id"], "schema": {"properties": {"order_id": {"type": "string"}}}}
    },
    "materializations": {
        "acmeCo/s3": {
            "endpoint": {
                "connector": {
                    "image": "ghcr.io/estuary/materialize-s3-parquet:v1",
                    "config": {
                        "bucket": "acme", "region": "us-east-1", "uploadIntervalInSeconds": 60,
                        "awsAccessKeyId": "k", "awsSecretAccessKey": "s",
                    },
                }
            },
            "bindings": [{"source": "acmeCo/orders", "resource": {"pathPrefix": "orders"}}],
        }
    },
}  # fmt: skip
ENDPOINT = {"bucket": "acme", "awsAccessKeyId": "AKIA", "awsSecretAccessKey": "x", "region": "us-east-1",
            "uploadIntervalInSeconds": 300}  # fmt: skip

STARTS: list[tuple[dict[str, object], list[str], list[str]]] = [
    # files beside the folder's own, places, lines of the lake.yaml
    (
        {},
        ["destination.json", "configured_catalog.json", "messages.jsonl"],
        ["  config_file: destination.json", "  messages: messages.jsonl", "  catalog: configured_catalog.json"],
    ),
    ({}, ["configured_catalog.json"], ["  type: airbyte-s3", "  messages: '-'"]),
    (
        {"api.json": API},
        ["api.json", "configured_catalog.json"],
        [
            "  config_file: api.json",
            "  access_key_id: ${env:ACCESS_KEY_ID}",
            "  secret_access_key: ${env:SECRET_ACCESS_KEY}",
        ],
    ),
    (
        {"flow.json": FLOW},
        ["flow.json"],
        ["  config_file: flow.json", "  - source: acmeCo/orders", "    read: {format: text, path: orders.jsonl}"],
    ),
    # The folder's table has the collection's name, and is where its rows are.
    (
        {"flow.json": FLOW},
        ["flow.json", "data"],
        ["  - source: acmeCo/orders", "    read: {format: csv, path: data/orders.csv, options: {header: true}}"],
    ),
    (
        {"endpoint.json": ENDPOINT},
        ["endpoint.json", "data"],
        ["  awsSecretAccessKey: ${env:AWS_SECRET_ACCESS_KEY}", "    resource: {pathPrefix: orders}"],
    ),
    ({"endpoint.json": ENDPOINT}, ["endpoint.json"], ["    collection: {key: [/id]}"]),
]


@pytest.mark.parametrize(("files", "places", "lines"), STARTS)
def test_vendors_own_files(folder, files, places, lines):
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), "utf-8")
    lake = write(folder, places)
    text = [line.partition("  #")[0] for line in lake.read_text("utf-8").splitlines()]
    assert [line for line in lines if line not in text] == []
    assert load(lake).spec.tables


USERS = {"name": "users", "json_schema": {"properties": {"id": {"type": "integer"}}},
         "supported_sync_modes": ["full_refresh", "incremental"], "default_cursor_field": ["updated_at"],
         "source_defined_primary_key": [["id"]]}  # fmt: skip
NO_CURSOR = {"name": "events", "json_schema": {}, "supported_sync_modes": ["full_refresh", "incremental"]}
LOG_LINE = {"type": "LOG", "log": {"level": "INFO", "message": "connected"}}
CATALOG_LINE = {"type": "CATALOG", "catalog": {"streams": [USERS, NO_CURSOR]}}
DISCOVERED = [
    # what a connector's discover printed
    json.dumps({"streams": [USERS, NO_CURSOR]}),
    json.dumps(CATALOG_LINE),
    f"{json.dumps(LOG_LINE)}\n{json.dumps(CATALOG_LINE)}\n",
]


@pytest.mark.parametrize("text", DISCOVERED, ids=["catalog", "message", "messages"])
def test_what_a_connector_discovers_gives_the_catalog(folder, text):
    """Only the source knows by what it reads what is new; where it says nothing the stream is replaced whole."""
    (folder / "discovered.json").write_text(text, "utf-8")
    drafted = make_draft([str(folder / "discovered.json")], Wishes(folder))
    assert drafted.beside["configured_catalog.json"]["streams"] == [
        {"stream": USERS, "sync_mode": "incremental", "destination_sync_mode": "append", "cursor_field": ["updated_at"],
         "primary_key": [["id"]]},
        {"stream": NO_CURSOR, "sync_mode": "full_refresh", "destination_sync_mode": "overwrite"},
    ]  # fmt: skip
    assert drafted.draft.notes == (
        "all 2 streams of the source are in the catalog: take out those that you do not want",
        "read whole and replaced by each load, since the source names no cursor: events",
    )
    (folder / "configured_catalog.json").unlink()
    assert [t.source_table for t in load(write(folder, ["discovered.json"])).spec.tables] == ["users", "events"]


PIPELINES = [
    # files, places, the pipeline's name
    ({}, ["data"], "data"),
    ({}, ["destination.json", "configured_catalog.json", "messages.jsonl"], "test"),
    ({}, ["configured_catalog.json"], "shop"),
    ({"acme.json": ENDPOINT}, ["acme.json"], "acme"),
    ({"flow.json": FLOW}, ["flow.json"], "s3"),
    ({"flow.json": FLOW}, ["flow.json", "data"], "data"),
    ({"destination.json": API | {"name": "Lake of sales"}}, ["destination.json"], "lake-of-sales"),
]


@pytest.mark.parametrize(("files", "places", "name"), PIPELINES)
def test_a_pipeline_is_named_after_its_data(folder, files, places, name):
    """A file's role, such as "destination", would name every pipeline alike."""
    home = folder / "shop"
    home.mkdir()
    for file in ("data", "destination.json", "configured_catalog.json", "messages.jsonl"):
        (folder / file).rename(home / file)
    for file, content in files.items():
        (home / file).write_text(json.dumps(content), "utf-8")
    assert make_draft([str(home / place) for place in places], Wishes(home)).draft.pipeline == name


def test_another_destination_takes_the_keys_of_a_flow_specification(folder):
    (folder / "flow.json").write_text(json.dumps(FLOW), "utf-8")
    (table,) = load(write(folder, ["flow.json", "data"], kind="lakewriter-s3")).spec.tables
    assert (table.name, table.primary_key, table.cursor) == ("orders", ("order_id",), "updated_at")


CONNECTIONS = [
    # what the API exports, the configured catalog, notes
    (
        {"data": [PUBLIC]},
        [
            {"stream": {"name": "users"}, "sync_mode": "incremental", "destination_sync_mode": "append",
             "primary_key": [["id"]]},
            {"stream": {"name": "events", "namespace": "app"}, "sync_mode": "full_refresh",
             "destination_sync_mode": "overwrite"},
        ],
        (
            "stream 'users' has 'deduped_history', which files on S3 cannot have: it is 'append' here",
            "the connection has no schemas: put each stream's json_schema into the catalog, as the source discovers "
            "it, for columns with types",
        ),
    ),
    (
        SYNCED,
        [
            {"stream": {"name": "users", "json_schema": {"properties": {"id": {"type": "integer"}}}},
             "sync_mode": "incremental", "destination_sync_mode": "append", "cursor_field": ["id"]},
        ],
        (),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("content", "streams", "notes"), CONNECTIONS)
def test_a_connection_gives_the_catalog(folder, content, streams, notes):
    (folder / "connection.json").write_text(json.dumps(content), "utf-8")
    drafted = make_draft([str(folder / "destination.json"), str(folder / "connection.json")], Wishes(folder))
    assert drafted.beside == {"configured_catalog.json": {"streams": streams}}
    assert drafted.draft.notes == notes
    (folder / "configured_catalog.json").unlink()
    spec = load(write(folder, ["destination.json", "connection.json"])).spec
    assert [table.source_table for table in spec.tables] == [stream["stream"]["name"] for stream in streams]


REFUSED = [
    # files, places, the error
    (
        {"discovered.json": {"type": "CATALOG", "catalog": {"streams": []}}},
        ["discovered.json"],
        "the source discovers no stream. Check what its user may see.",
    ),
    (
        {"mine.json": {"pipeline": "p", "destination": {}}},
        ["mine.json"],
        "mine.json is a lake.yaml already. Continue with: lakewriter check mine.json.",
    ),
    (
        {},
        ["messages.jsonl"],
        "messages.jsonl holds messages of Airbyte's protocol, and no catalog says which streams they are. Name the "
        "configured catalog as well: lakewriter init messages.jsonl configured_catalog.json.",
    ),
    (
        {},
        ["configured_catalog.json", "data"],
        "messages of Airbyte's and other sources do not go into one pipeline. Draft a lake.yaml for each, with "
        "--output.",
    ),
    (
        {"flow.json": {"materializations": {"a": {}, "b": {}}}},
        ["flow.json"],
        "flow.json has 2 materializations, expected one. Draft the file from one with a single materialization; "
        "destination.materialization names it later.",
    ),
    ({}, ["nowhere"], "there is no file or folder 'nowhere'. Give a path that exists."),
]


@pytest.mark.parametrize(("files", "places", "message"), REFUSED)
def test_what_cannot_begin_a_lake_yaml(folder, files, places, message):
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), "utf-8")
    with pytest.raises((SpecInvalidError, SourceFailedError)) as raised:
        make_draft([str(folder / place) for place in places], Wishes(folder))
    assert str(raised.value).partition(": ")[2].replace(f"{folder}/", "") == message


def test_an_unknown_type_names_those_that_there_are(folder):
    with pytest.raises(SpecInvalidError) as raised:
        make_draft([str(folder / "data")], Wishes(folder, kind="s3"))
    assert raised.value.message == f"--type 's3' is no destination; expected one of: {', '.join(KINDS)}."


def test_what_keeps_a_column_text_is_said(folder):
    rows = "".join(f"{number},{number}.5\n" for number in range(1, 9))
    (folder / "data" / "orders.csv").write_text(f"order_id,amount\n{rows}9,NA\n", "utf-8")
    text = write(folder, ["data"]).read_text("utf-8")
    assert text.endswith(
        """\
    columns:
      order_id: bigint  # all values (9) are whole numbers, from 1 to 9
    # amount stays text: 8 of 9 values are numbers, but 'NA' is text; if it means null, a CSV source can have
    # options: {nullValue: "NA"}
"""
    )


def test_tables_of_one_name_are_told_apart(folder):
    (folder / "more").mkdir()
    (folder / "more" / "orders.csv").write_text(ORDERS, "utf-8")
    spec = load(write(folder, ["data", "more"])).spec
    assert [table.name for table in spec.tables] == ["orders", "orders_2"]


KINDS_CSV = "code,label\na,A\nb,B\n"
EXPECTED = """\
    expect:  # judged before a load is seen
      - {rows: {at_least: 1}}  # a load without rows fails
      - {not_null: [code]}  # the primary key; 2 distinct values in 2 rows, none null
      # - {unique: code}  # Spark looks at the rows for it, which takes longer
      # - {not_null: [label]}  # none is null in all 2 rows; keep those that never may be
"""


def test_checks_are_proposed_if_asked(folder):
    (folder / "data" / "orders.csv").unlink()
    (folder / "data" / "kinds.csv").write_text(KINDS_CSV, "utf-8")
    assert "expect" not in write(folder, ["data"]).read_text("utf-8")
    (folder / "lake.yaml").unlink()
    file = write(folder, ["data"], expects=True)
    assert file.read_text("utf-8").endswith(EXPECTED)
    (table,) = load(file).spec.tables
    assert [each.name for each in table.expect] == ["rows", "not_null.code"]
    # All that is proposed is right, if a person takes it.
    file.write_text(file.read_text("utf-8").replace("# - {", "- {"), "utf-8")
    assert len(load(file).spec.tables[0].expect) == 4


def test_checks_need_rows(folder):
    drafted = make_draft(
        [str(folder / name) for name in ("messages.jsonl", "configured_catalog.json")], Wishes(folder, expects=True)
    ).draft
    assert drafted.notes == (
        "--expect proposes checks from rows of files, and none were given: lakewriter docs expectations",
    )
