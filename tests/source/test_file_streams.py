"""Continuous runs of files: which files a batch has, checkpoints that other readers wrote, files that change."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakewriter.errors import LakeError
from lakewriter.source.file_streams import list_planned
from lakewriter.source.files.folder_listing import Listing, PlannedFile, list_stored
from lakewriter.source.request import RowsRequest
from lakewriter.source.streams import TableStream
from lakewriter.spec.table_spec import TableSpec
from tests.source.tables import show, table
from tests.support.narrow import need


class Log:
    """A checkpoint of these files."""

    def __init__(self, **files: str) -> None:
        self._files = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}

    def read(self, name: str) -> bytes:
        return self._files[name].encode()

    def list_names(self, folder: str) -> list[str]:
        return [name.removeprefix(f"{folder}/") for name in self._files if name.startswith(f"{folder}/")]


def offsets(entry: int) -> str:
    return f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{entry}}}'


def entries(**files: int) -> str:
    return "\n".join(["v1", *(entry(name, number) for name, number in files.items())])


def entry(name: str, number: int) -> str:
    return json.dumps({"path": f"file:///in/{name}%20x.csv", "timestamp": 1000 + number, "batchId": number})


LOGS = [
    # the checkpoint, the batch, its files
    (Log(offsets__0=offsets(0), sources__0__0=entries(a=0, b=0)), 0, ["a", "b"]),
    # A trigger that began nothing leaves an entry to the batch after it.
    (Log(offsets__0=offsets(0), offsets__1=offsets(2), sources__0__0=entries(a=0), sources__0__1=entries(b=1),
         sources__0__2=entries(c=2)), 1, ["b", "c"]),
    (Log(offsets__8=offsets(8), offsets__9=offsets(9), sources__0__9_compact=entries(a=0, b=8, c=9)), 9, ["c"]),
    (Log(offsets__7=offsets(7), offsets__8=offsets(8), sources__0__8=entries(b=8),
         sources__0__9_compact=entries(a=0, b=8, c=9)), 8, ["b"]),
    # Spark has deleted what is in a later entry.
    (Log(offsets__7=offsets(7), offsets__8=offsets(8), sources__0__9_compact=entries(a=0, b=8, c=9)), 8, ["b"]),
]  # fmt: skip


@pytest.mark.parametrize(("log", "number", "names"), LOGS)
def test_files_of_a_batch(log, number, names):
    files = list_planned(log, number)
    assert [file.path for file in files] == [f"/in/{name} x.csv" for name in names]


def test_entry_that_is_not_there_is_told():
    assert list_planned(Log(offsets__0=offsets(0), sources__0__0=entries(a=0)), 0) == [PlannedFile("/in/a x.csv", 1000)]
    with pytest.raises(LakeError, match="the checkpoint has no entry 1 in sources/0"):
        list_planned(Log(offsets__0=offsets(0), offsets__1=offsets(1), sources__0__0=entries(a=0)), 1)


Batch = dict[str, Any]


def run(spark: SparkSession, asked: TableSpec, checkpoint: Path) -> list[list[Batch]]:
    """The rows of each batch by the names of their columns, until nothing is left."""
    stream, batches = TableStream(spark, asked, str(checkpoint)), list[list[Batch]]()

    def read(frame: DataFrame, number: int) -> None:
        plan = stream.read_plan(number)
        feed = stream.open_feed(frame, plan, RowsRequest(lambda: spark, asked), least=1)
        names = feed.schema.names
        batches.append([dict(zip(names, row, strict=False)) for text in feed.run(show) for row in json.loads(text)[1]])
        feed.close()

    query = stream.frame.writeStream.foreachBatch(read).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    return batches


WRITTEN = {"csv": "id,t\n{},x\n", "json": '{{"id": "{}", "t": "x"}}\n', "text": "{}\n"}
DECLARED = {"csv": "id STRING, t STRING", "json": "id STRING, t STRING", "parquet": "id STRING, t STRING", "text": None}


def arrive(spark: SparkSession, folder: Path, form: str, numbers: Sequence[int]) -> None:
    for number in numbers:
        if form == "parquet":
            rows = spark.createDataFrame([(str(number), "x")], "id STRING, t STRING").coalesce(1)
            rows.write.mode("append").parquet(str(folder))
        else:
            (folder / f"{number}.{form}").write_text(WRITTEN[form].format(number), "utf-8")


@pytest.mark.one_in(2)
@pytest.mark.spark
@pytest.mark.parametrize("form", ["csv", "json", "parquet", "text"])
def test_checkpoint_of_sparks_own_reader_goes_on(spark, tmp_path, form):
    """A stream that began with engine: spark, in the files' own format. No file comes twice, and none is left out."""
    folder = tmp_path / "in"
    folder.mkdir()
    arrive(spark, folder, form, [1, 2])
    options = {"header": "true"} if form == "csv" else {}
    reader = spark.readStream.format(form).options(**options, maxFilesPerTrigger="1", maxFileAge="36500d")
    own = (reader.schema(DECLARED[form]) if DECLARED[form] else reader).load(str(folder))
    seen: list[int] = []
    started = own.writeStream.foreachBatch(lambda frame, number: seen.append(frame.count()))
    started.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert seen == [1, 1]
    arrive(spark, folder, form, [3, 4])
    asked = table(format=form, path=str(folder), options={**options, "maxFilesPerTrigger": "1"})
    found = run(spark, asked, tmp_path / "c")
    column = "value" if form == "text" else "id"
    assert sorted([row[column] for row in rows] for rows in found) == [["3"], ["4"]]


@pytest.mark.spark
def test_batches_have_the_columns_and_types_of_files_that_were_there(spark, tmp_path):
    """Those that arrive may have fewer, other ones, or values that alone would be of another type."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_text('{"id": 1, "n": 1.5}\n', "utf-8")
    asked = table(format="json", path=str(folder), options={"maxFilesPerTrigger": "1"})
    assert run(spark, asked, tmp_path / "c") == [[{"id": 1, "n": 1.5}]]
    (folder / "2.json").write_text('{"n": 2, "new": true}\n', "utf-8")
    (folder / "3.json").write_text("", "utf-8")
    assert sorted(run(spark, asked, tmp_path / "c")) == [[], [{"id": None, "n": 2.0, "new": True}]]


@pytest.mark.spark
def test_columns_without_a_name_keep_that_of_the_files_before(spark, tmp_path):
    """Whether the run has read these itself, or loads before it have."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("id,\n1,a\n", "utf-8")
    options = {"header": "true", "maxFilesPerTrigger": "1"}
    asked = table(format="csv", path=str(folder), options=options)
    stream = TableStream(spark, asked, str(tmp_path / "c"))
    assert run(spark, asked, tmp_path / "c") == [[{"id": "1", "_c1": "a"}]]
    (folder / "2.csv").write_text("new,id,\nx,2,b\n", "utf-8")
    (folder / "1.csv").unlink()
    later = asked.model_copy(update={"read": asked.read.model_copy(update={"nameless": ("_c1",)})})
    assert run(spark, later, tmp_path / "c") == [[{"new": "x", "id": "2", "_c1": "b"}]]
    # A stream that has learnt the columns of the first file.
    (folder / "3.csv").write_text("new,id,\ny,3,c\n", "utf-8")
    opened = need(stream._files)._open(Listing(list_stored((str(folder / "3.csv"),), {}, "s.t").files))
    assert opened.source.schema.names == ["id", "_c1", "new"]


@pytest.mark.spark
def test_file_that_is_gone_ends_the_batch(spark, tmp_path, monkeypatch):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("1\n", "utf-8")
    asked = table(format="csv", path=str(folder), columns={"_c0": "int"})
    read_plan = TableStream.read_plan

    def remove(stream: TableStream, number: int) -> Any:
        (folder / "1.csv").unlink()
        return read_plan(stream, number)

    monkeypatch.setattr(TableStream, "read_plan", remove)
    with pytest.raises(Exception, match=r"/in/1\.csv' is no longer there"):
        run(spark, asked, tmp_path / "c")
