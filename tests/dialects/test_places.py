"""Where data goes: no key gets a character that neither listings nor engines give back, no message gets a password."""

import copy
from typing import Any

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError

READ = {"format": "csv", "path": "a.csv"}
PLAIN = {"tables": [{"table": "t", "schema": "s", "read": READ}]}
SUPAFLOW = {"type": "supaflow-s3-data-lake", "s3_bucket_name": "my-bucket", "bucket_region": "us-east-1"}
ICEBERG = SUPAFLOW | {
    "table_format": "ICEBERG", "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG", "catalog_endpoint": "https://a.example",
    "catalog_name": "c", "client_id": "i", "client_secret": "${env:S}",
}  # fmt: skip
AIRBYTE = {
    "type": "airbyte-s3", "s3_bucket_name": "my-bucket", "s3_bucket_path": "sync", "s3_bucket_region": "us-east-1",
    "format": {"format_type": "CSV"},
}  # fmt: skip
ESTUARY = {"type": "estuary-s3-parquet", "bucket": "my-bucket", "region": "us-east-1", "uploadIntervalInSeconds": 5}
BINDING = {"source": "a/b", "primary_key": ["id"], "read": READ, "resource": {"pathPrefix": "/a"}}


def problem(tmp_path, destination: dict[str, Any], key: str, value: str, **top: Any) -> str:
    """What is said of ``value`` at ``key``, with dots in it, of the destination or of the first table."""
    content: Any = copy.deepcopy({"pipeline": "p", "destination": destination, **PLAIN, **top})
    *path, last = key.split(".")
    at: Any = content["destination"]
    for step in path:
        at = content["tables"][0] if step == "tables" else at.setdefault(step, {})
    at[last] = value
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(tmp_path / "lake.yaml")
    return str(caught.value)


TEMPLATES: list[tuple[dict[str, Any], str, str, dict[str, Any]]] = [
    # the destination, the key, a value that has the character in the place of #, what else the file has
    (SUPAFLOW, "s3_path_prefix", "data/#x", {}),
    (SUPAFLOW, "file_name_pattern", "part-#-{supa_job_id}-{seq}", {}),
    (SUPAFLOW | {"type": "supaflow-s3"}, "s3_path_prefix", "#", {}),
    (ICEBERG, "s3_path_prefix", "data#", {}),
    (AIRBYTE, "s3_bucket_path", "sync/#", {}),
    (AIRBYTE, "s3_path_format", "${STREAM_NAME}/#${EPOCH}_", {}),
    (AIRBYTE, "file_name_pattern", "#{part_number}{format_extension}", {}),
    (AIRBYTE | {"type": "heropixel-s3"}, "file_name_pattern", "#{part_number}{format_extension}", {}),
    (ESTUARY, "resource.pathPrefix", "/a/#", {"tables": [BINDING]}),
]


@pytest.mark.parametrize("character", ["\0", "\x07", "\x1b", "\x7f", "\x85"])
@pytest.mark.parametrize(("destination", "key", "value", "top"), TEMPLATES)
def test_control_characters_are_refused(tmp_path, destination, key, value, top, character):
    if "." in key:
        value, key = value.replace("#", character), "tables.resource"
        said = problem(tmp_path, destination, key, {"pathPrefix": value}, **top)  # type: ignore[arg-type]
    else:
        said = problem(tmp_path, destination, key, value.replace("#", character), **top)
    # U+0085 ends a line of YAML, and is refused as white space where white space is.
    assert f"control character U+{ord(character):04X}" in said
    assert character not in said


ENDPOINTS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (SUPAFLOW, "custom_s3_endpoint", {}),
    (ICEBERG, "custom_s3_endpoint", {}),
    (ICEBERG, "catalog_endpoint", {}),
    (AIRBYTE, "s3_endpoint", {}),
    (AIRBYTE | {"type": "heropixel-s3"}, "s3_endpoint", {}),
    (ESTUARY, "advanced.endpoint", {"tables": [BINDING]}),
]
URLS = [
    "https://user:hush@store.example", "http://user:hush@store.example", "http://user:hush@127.0.0.1:9000",
    "user:hush@store.example", "ftp://user:hush@store.example", "https://hush@store.example", "https://user:hush@",
    "https://user:hu/hush@store.example", "https://user:hush@hush@store.example",
]  # fmt: skip


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(("destination", "key", "top"), ENDPOINTS)
def test_no_message_has_the_password_of_an_endpoint(tmp_path, destination, key, top, url):
    said = problem(tmp_path, destination, key, url, **top)
    assert f"destination.{key}" in said
    assert "hush" not in said
