"""The pages of the reference are what their script makes of the keys, and can be read."""

import re

import pytest

from docs.write_reference import FOLDER, OTHERS, Page, make_pages
from lakewriter.dialects.descriptions import describe
from lakewriter.dialects.registry import BY_TYPE

PAGES = make_pages()
TEXT = "\n".join(PAGES.values())
TITLES = re.findall(r"^## (.*)$", TEXT, re.M)


def list_rows(title):
    section = TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return {line.split("`")[1]: line for line in section.splitlines() if line.startswith("| `")}


def test_the_pages_are_current():
    there = {path: (FOLDER / path).read_text("utf-8") for path in PAGES if (FOLDER / path).exists()}
    assert there == PAGES, "run scripts/reference"
    assert {f"{OTHERS}/{file.name}" for file in (FOLDER / OTHERS).iterdir()} == PAGES.keys() - {"reference.md"}


def test_each_destination_and_section_has_a_page():
    assert {"reference/destination-airbyte-s3.md", "reference/tables.md", "reference/deployment.md"} <= PAGES.keys()
    assert max(len(text.split()) for text in PAGES.values()) < 4000


def test_nothing_of_json_schema_is_left():
    assert re.findall(r"\$ref|\$defs|anyOf|oneOf|\bnull\b|additionalProperties", TEXT) == []


def test_every_destination_has_a_section():
    assert {title.removeprefix("destination, ") for title in TITLES} >= set(BY_TYPE)


ROWS = [
    # section, the row of a key
    ("destination, lakewriter-s3", "format", "`parquet`, `avro`, `csv`, `jsonl` | `parquet` | The format of "
     "the files."),
    ("destination, airbyte-s3", "s3_bucket_name", "text | required | The bucket that the data goes to."),
    ("destination.format", "block_size_mb", "whole number, from 1 | `128` | The size of a row group, which is held in "
     "memory: larger ones read faster and take more memory to write. | only Parquet"),
    ("destination.format.compression_codec", "codec", "`no compression`, `Deflate`, `bzip2`, `xz`, `zstandard`, "
     "`snappy` | `no compression` | How blocks are compressed. | "),
    ("destination, supaflow-s3-data-lake", "partition_strategy", "not ICEBERG"),
    ("Top of the file", "delta_encodings", "only `supaflow-s3`, `supaflow-s3-data-lake`"),
    ("Top of the file", "interval_seconds", "not `estuary-s3-parquet`"),
    ("Top of the file", "limits", "[limits](reference/limits.md#limits) |  | Sizes and counts that bound a load."),
    ("tables.read", "path", "text or list of text |  | A file, a folder"),
    ("tables.read", "views", "names, each with [tables.read](tables.md#tablesread)"),
    ("tables", "on_bad_row", "`fail`, `quarantine` or [tables.on_bad_row](tables.md#tableson_bad_row)"),
    ("deployment", "encryption", "`SSE-S3`, `SSE-KMS` | `SSE-S3`"),
]  # fmt: skip


@pytest.mark.parametrize(("title", "key", "text"), ROWS)
def test_row_of_a_key(title, key, text):
    assert text in list_rows(title)[key]


@pytest.mark.parametrize("kind", BY_TYPE)
def test_every_key_of_a_destination_has_its_description(kind):
    rows = list_rows(f"destination, {kind}")
    assert {"type", "upload_parallelism"} <= rows.keys()
    assert [
        key for key, row in rows.items() if key != "advanced" and describe(kind, f"destination.{key}") not in row
    ] == []


def test_a_mapping_in_two_places_has_one_section():
    page = Page()
    page.add("", (("", ""),), "")
    places = {section.title: list(section.places) for section in page.list_sections()}
    assert places["tables.contract"] == ["tables.contract", "contract"]
    assert places["deployment.spark.driver"] == ["deployment.spark.driver", "deployment.spark.executor"]
