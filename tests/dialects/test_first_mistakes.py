"""Mistakes of a first hour: each is refused before anything starts, with its line, its value and what to write."""

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError

READ = "read: {format: csv, path: orders.csv, options: {header: true}}"
PLACE = "location: s3://acme-lake/lake, region: us-east-1"


def write(table=READ, destination=PLACE, more=""):
    return (
        f"pipeline: shop\ndestination: {{type: lakewriter-s3, {destination}}}\n"
        f"tables:\n  - {{table: orders, {table}}}\n{more}"
    )


def schedule(cron):
    return write(more=f"deployment: {{schedule: {{cron: '{cron}'}}}}")


MISTAKES = [
    # the file, and what is said behind its name
    (
        schedule("30 25 * * ? *"),
        "5: deployment.schedule.cron: 'cron' '30 25 * * ? *': hour: expected 0 to 23, got '25'.",
    ),
    (
        schedule("30 6 * * * *"),
        "5: deployment.schedule.cron: 'cron' '30 6 * * * *': expected '?' for exactly one of the day of the month and "
        "the day of the week.",
    ),
    (schedule("0 6 31 2 ? *"), "5: deployment.schedule.cron: 'cron' '0 6 31 2 ? *': '0 6 31 2 ? *' never fires."),
    (
        write(destination="location: s3://acme-lake/lake, region: us-est-1"),
        "2: destination.region: 'us-est-1': expected an AWS region such as 'us-east-1'; did you mean 'us-east-1' or "
        "'us-west-1'.",
    ),
    (
        write(destination="location: s3://acme-lake/lake, region: useast1"),
        "2: destination.region: 'useast1': expected an AWS region such as 'us-east-1'; did you mean 'us-east-1'.",
    ),
    (
        write(destination="location: s3://acme-lake/lake, region: eu-frankfurt-1"),
        "2: destination.region: 'eu-frankfurt-1': expected an AWS region such as 'us-east-1'.",
    ),
    (
        write(destination="region: us-east-1"),
        "2: destination.location: is required, such as location: s3://acme-lake/production.",
    ),
    (
        write(destination=f"{PLACE}, target_file_mb: big"),
        "2: destination.target_file_mb: unknown key, with value 'big'; it goes into 'limits'.",
    ),
    (
        write("read: {format: csv}"),
        "4: tables.0.read: 'format: csv' reads files; expected 'path' beside it, such as 'path: orders/*'.",
    ),
    (
        write("read: {format: csvv, path: orders.csv}"),
        "4: tables.0.read.format: 'csvv': no format has this name; did you mean 'csv'.",
    ),
    (
        write("read: {format: jsonl, path: orders.jsonl}"),
        "4: tables.0.read.format: 'jsonl': no format has this name; did you mean 'json'.",
    ),
    (
        write(f"{READ}, primary_key: [id, id]"),
        "4: tables.0.primary_key: a list: 'id' is there 2 times; expected each once.",
    ),
    (write(f"{READ}, sort_by: [a, b, a]"), "4: tables.0.sort_by: a list: 'a' is there 2 times; expected each once."),
    (
        write(f"{READ}, cursor: [updated_at]"),
        "4: tables.0.cursor: a list: expected text, such as cursor: updated_at.",
    ),
    (
        write(f"{READ}, columns: [amount]"),
        "4: tables.0.columns: a list: expected a mapping, such as columns: {amount: 'decimal(12,2)'}.",
    ),
    (
        write(f"{READ}, on_bad_row: {{action: quarantine, at_most: 5%}}"),
        "4: tables.0.on_bad_row.at_most: '5%': expected a number, without '%': as a share from 0 to 1 it is 0.05.",
    ),
    (
        write("read: {format: csv, path: orders.csv, repeated: allow}"),
        "4: tables.0.read.repeated: unknown key, with value 'allow'; it goes into the top of the file or the entry of "
        "the table.",
    ),
    (
        write(more="schedule: {rate: 1 hour}"),
        "5: schedule: unknown key, with value a mapping; it goes into 'deployment'.",
    ),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said.partition(":")[2][:60] for _, said in MISTAKES])
def test_a_mistake_has_its_line_and_the_way_out(tmp_path, text, said):
    lake = tmp_path / "lake.yaml"
    lake.write_text(text, "utf-8")
    with pytest.raises(SpecInvalidError) as raised:
        load(lake)
    assert raised.value.problems == (f"lake.yaml:{said}",)


def test_a_key_without_its_colon_is_named_by_its_own_line(tmp_path):
    lake = tmp_path / "lake.yaml"
    lake.write_text(write().replace("pipeline: shop", "pipeline shop"), "utf-8")
    with pytest.raises(SpecInvalidError) as raised:
        load(lake)
    assert raised.value.message == "lake.yaml:1: expected ': ' between a key and its value."


REGIONS = ["us-gov-west-1", "cn-northwest-1", "eusc-de-east-1", "ap-southeast-7", "us-isob-east-1", "mx-central-1"]


@pytest.mark.parametrize("region", REGIONS)
def test_regions_of_every_partition_are_taken(tmp_path, region):
    lake = tmp_path / "lake.yaml"
    lake.write_text(write(destination=f"location: s3://acme-lake/lake, region: {region}"), "utf-8")
    assert load(lake).spec.access.region == region
