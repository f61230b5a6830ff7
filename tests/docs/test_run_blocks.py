"""Every block of the pages is run as it is printed, or one table says why it is not."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, cast

import pytest
import yaml
from pyspark.sql import SparkSession

from lakewriter.local_server.server import LocalServer
from lakewriter.operate import context
from tests.docs import worlds
from tests.docs.fences import Fence, list_fences
from tests.docs.terminal import Terminal
from tests.docs.worlds import World

Block = tuple[str, str]
"""A page, and how its block begins."""

RUN: Final[dict[Block, Callable[[World], Terminal]]] = {
    ("README.md", "lakewriter init data/"): worlds.data_folder,
    ("docs/first-hour.md", "$ lakewriter init data"): worlds.data_folder,
    ("docs/quickstarts/files.md", "scripts/setup"): worlds.data_folder,
    ("docs/quickstarts/database.md", "export PYSPARK_SUBMIT_ARGS"): worlds.derby,
    ("docs/quickstarts/airbyte.md", "lakewriter init"): worlds.airbyte_connection,
    ("docs/quickstarts/airbyte.md", "source-faker read"): worlds.airbyte_pipeline,
    ("docs/quickstarts/estuary.md", "lakewriter init"): worlds.estuary_documents,
    ("docs/quickstarts/supaflow.md", "lakewriter check"): worlds.supaflow_account,
    ("docs/guide-airbyte.md", "lakewriter airbyte spec"): worlds.airbyte_connection,
    ("docs/guide-estuary.md", "lakewriter adopt"): worlds.estuary_bucket,
    ("docs/guide-iceberg.md", "lakewriter compact"): worlds.iceberg_flights,
    ("docs/lake-yaml.md", "lakewriter schema"): worlds.schema_only,
    ("docs/orchestrators.md", "lakewriter run"): worlds.flights,
    ("docs/expectations.md", "lakewriter run"): worlds.unknown_carrier,
    ("docs/failures.md", 'lakewriter abandon lake.yaml JOB --reason'): worlds.pending_load,
    ("docs/failures.md", "lakewriter reset"): worlds.accounts,
    ("docs/failures.md", "lakewriter rebuild"): worlds.accounts_without_state,
    ("docs/quarantine.md", "lakewriter replay"): worlds.quarantined_flights,
    ("docs/readers.md", "lakewriter queries"): worlds.flights,
    ("docs/undo.md", "lakewriter undo"): worlds.loaded_flights,
}  # fmt: skip
"""What a block of a shell finds before it runs."""

_ACCOUNT: Final = "needs an account of AWS; its commands are compared with botocore's models"
_SUITE: Final = "is a part of the test suite, of the nightly or of the demo itself"
_SERVER: Final = "needs a database of its vendor; parsed alone"
NOT_RUN: Final[dict[Block, str]] = {
    ("README.md", "scripts/demo"): _SUITE,
    ("README.md", "$ scripts/bundle"): _ACCOUNT,
    ("docs/continuous.md", "export PYSPARK_SUBMIT_ARGS"): "fetches a jar; tests/interop/test_kafka.py runs with it",
    ("docs/quickstarts/kafka.md", "export PYSPARK_SUBMIT_ARGS"): "needs a broker; tests/interop/test_kafka.py has one",
    ("docs/guide-supaflow.md", "export PYSPARK_SUBMIT_ARGS"): "fetches a jar; tests/interop/test_postgresql.py has it",
    ("docs/day-two.md", "$ aws"): _ACCOUNT,
    ("docs/failures.md", "lakewriter abandon lake.yaml JOB --intent-lost"): "needs an intent that was swept away; "
    "tests/operate/test_repair.py makes one",
    ("docs/failures.md", "ALTER TABLE"): "Athena's; parsed by its dialect",
    ("docs/guide-deploy.md", "$ "): _ACCOUNT,
    ("docs/troubleshooting.md", "$ aws"): _ACCOUNT,
    ("docs/without-cdk.md", "$ "): _ACCOUNT,
    ("docs/without-cdk.md", "import aws_cdk"): "tests/package/test_constructs.py synthesises such an app",
    ("docs/merge.md", "mkdir orders"): "tests/local/test_local_iceberg.py runs it, and compares what it prints",
    ("docs/other-platforms.md", "pip install"): "tests/package/test_pythons.py installs the wheel with its extras",
    ("docs/databases.md", "-- "): _SERVER,
    ("docs/guide-estuary.md", 'SELECT "meta/id"'): "reads a bucket; parsed by DuckDB",
    ("docs/quarantine.md", "SELECT"): "Athena's; parsed by its dialect",
}
"""Why a block is not run. Its syntax and its options are tested all the same: see test_fences.py."""

PYTHON: Final = [fence for fence in list_fences() if fence.page == "docs/dataframes.md" and fence.language == "python"]
LOADED: Final = ("yaml", "json")
"""test_fences.py loads each of these: a lake.yaml, a piece of one, a document."""
SHOWN: Final = ("text",)
"""Keys, paths and output, in which there is nothing to run."""

FENCES: Final = [fence for fence in list_fences() if fence.language not in (*LOADED, *SHOWN)]


def find(fence: Fence, table: dict[Block, Any]) -> Any:
    """The entry of a table that a block has; the longest beginning counts."""
    begins = [begin for page, begin in table if page == fence.page and fence.code.startswith(begin)]
    return table[fence.page, max(begins, key=len)] if begins else None


def test_every_block_is_run_or_a_reason_is_given():
    is_run = {fence: find(fence, RUN) is not None or fence in PYTHON for fence in FENCES}
    assert [str(fence) for fence in FENCES if is_run[fence] == (find(fence, NOT_RUN) is not None)] == []
    used = [(fence.page, begin) for fence in FENCES for page, begin in (*RUN, *NOT_RUN) if fence.page == page
            and fence.code.startswith(begin)]  # fmt: skip
    assert {*RUN, *NOT_RUN} - set(used) == set()
    counts = Counter(fence.language for fence in list_fences())
    loaded = sum(counts[language] for language in LOADED)
    # Blocks, those that are loaded, run, shown; the others have a reason.
    assert (counts.total(), loaded, sum(is_run.values()), sum(counts[each] for each in SHOWN)) == COUNTED


COUNTED: Final = (127, 64, 24, 8)

TO_RUN: Final = [fence for fence in FENCES if find(fence, RUN) is not None]


@pytest.fixture
def world(tmp_path, aws, spark, monkeypatch):
    for name in ("PYSPARK_SUBMIT_ARGS", "DB_USER", "DB_PASSWORD", "RUN_ID", "KEY_ID", "SECRET"):
        # What a block exports is gone after it.
        monkeypatch.setenv(name, "given")
    # Buckets of the pages are not those of which the permissions of tests/policy/calls.json are.
    monkeypatch.setattr(aws, "observers", [])
    # This Spark runs already, and its workers do not see what the command exports for them.
    open_locally = context._open_locally
    monkeypatch.setattr(context, "_open_locally", lambda lake, spec, **_: open_locally(lake, spec, holds_keys=True))
    yield World(tmp_path, aws, spark)
    LocalServer.beside(tmp_path / "lake.yaml").stop()


@pytest.mark.spark
@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fence", TO_RUN, ids=str)
def test_a_block_runs_as_it_is_printed(fence, world):
    find(fence, RUN)(world).run(fence)


@pytest.mark.spark
@pytest.mark.exhaustive
@pytest.mark.parametrize("fence", PYTHON, ids=str)
def test_a_program_of_a_page_runs(fence, world, monkeypatch):
    monkeypatch.chdir(world.folder)
    world.write_page_yaml("docs/dataframes.md")
    worlds.require_local()
    world.make_bucket("acme-lake")
    world.write("clicks/1.json", '{"order_id": 1}\n')
    df = world.spark.range(3).withColumnRenamed("id", "order_id")
    stream = world.spark.readStream.schema("order_id bigint").json(str(world.folder / "clicks"))
    names: dict[str, Any] = {"spark": world.spark, "df": df, "stream": stream}
    # A bucket is no checkpoint of a laptop without Hadoop's S3 client. This Spark has begun in another folder.
    for text, instead in (("s3://acme-checkpoints", str(world.folder)), ("lake.yaml", f"{world.folder}/lake.yaml")):
        assert text in fence.code or text != "lake.yaml"
        names["code"] = names.get("code", fence.code).replace(text, instead)
    exec(names.pop("code"), names)
    if "query" in names:
        names["query"].processAllAvailable()
        names["query"].stop()
    is_local = "local" in fence.code
    assert (world.folder / ".lakewriter").exists() == is_local
    assert is_local or any(key.startswith("production/orders/") for key in world.aws.objects("acme-lake"))


DRAFTS: Final = [
    # a page, what init is given there
    ("docs/quickstarts/files.md", worlds.data_folder, ["data/"]),
    ("docs/quickstarts/airbyte.md", worlds.airbyte_connection,
     ["destination.json", "configured_catalog.json", "messages.jsonl"]),
]  # fmt: skip


@pytest.mark.parametrize(("page", "make", "places"), DRAFTS)
def test_a_quickstart_prints_what_init_writes(page, make, places, tmp_path, aws):
    world = World(tmp_path, aws, cast(SparkSession, None))
    terminal = make(world)
    terminal.run(Fence(page, 0, "sh", f"lakewriter init {' '.join(places)}"))
    assert yaml.safe_load((tmp_path / "lake.yaml").read_text("utf-8")) == yaml.safe_load(worlds.find_yaml(page))
