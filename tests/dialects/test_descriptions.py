"""Every key of a lake.yaml has a description that says something, in a user's words."""

import re

import pytest

from lakewriter.dialects.airbyte.paths import DIRECTORY_VARIABLES, FILE_VARIABLES
from lakewriter.dialects.descriptions import describe
from lakewriter.dialects.lake_schema import make_lake_schema
from lakewriter.dialects.registry import BY_TYPE

SCHEMA = make_lake_schema()
KEYS = {
    f"{part}.{key}": own
    for part, schema in (("", SCHEMA), *SCHEMA["$defs"].items())
    for key, own in (
        *schema.get("properties", {}).items(),
        *(pair for other in schema.get("anyOf", ()) for pair in other.get("properties", {}).items()),
    )
}
DESCRIPTIONS = {path: own.get("description", "") for path, own in KEYS.items()} | {
    f"{name}.": own["description"] for name, own in SCHEMA["$defs"].items() if "description" in own
}
FEW = {"a", "an", "and", "are", "by", "for", "in", "is", "it", "its", "of", "or", "s", "that", "the", "this", "to"}
"""Words that say nothing of a key."""
CLASSES = {name for name in SCHEMA["$defs"] if re.search("[a-z][A-Z]", name)}


def list_words(text):
    """``destination_prefix`` and ``pathPrefix`` have two words each."""
    return {word.lower().rstrip("s") for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", text)} - FEW


def test_the_schema_has_the_keys_of_all_parts():
    # 279 keys by the first count, and those that the vendors' files and on_bad_row have since.
    assert len(KEYS) > 279
    assert {
        ".pipeline",
        "BadRowEntry.action",
        "AirbyteS3.config_file",
        "EstuaryS3Parquet.materialization",
    } <= KEYS.keys()


@pytest.mark.parametrize("path", DESCRIPTIONS)
def test_key_has_a_description_that_says_something(path):
    text, key = DESCRIPTIONS[path], path.rpartition(".")[2]
    assert re.fullmatch(r"[A-Z0-9`].*[.]", text), "expected sentences"
    assert list_words(text) - list_words(key), "it repeats the key"
    assert len(text) <= 400
    for sentence in re.split(r"(?<=[.]) ", re.sub("`[^`]*`", "x", text)):
        assert len(sentence) <= 200, "a long sentence"


@pytest.mark.parametrize("path", DESCRIPTIONS)
def test_description_is_in_a_user_s_words(path):
    text = DESCRIPTIONS[path]
    assert "\n" not in text
    assert "``" not in text
    assert not {name for name in CLASSES if name in text}, "the name of a class"
    assert not re.search(r"\b(pydantic|None|Spec|str|bool|lakewriter\.\w+|self|TODO)\b", text)


def test_unions_of_one_type_have_one_text():
    """A key of several models of one destination means the same in each."""
    for kind, dialect in BY_TYPE.items():
        models = [model.__name__ for tag, model in dialect.models.items() if tag.partition(",")[0] == kind]
        texts: dict[str, set[str]] = {}
        for name in models:
            for key, own in SCHEMA["$defs"][name]["properties"].items():
                texts.setdefault(key, set()).add(own["description"])
        # Estuary's two configurations have an object of this name for different things.
        assert {key for key, said in texts.items() if len(said) > 1} <= {"advanced"}


def test_variables_are_all_named():
    path, file = (describe("airbyte-s3", f"destination.{key}") for key in ("s3_path_format", "file_name_pattern"))
    assert [name for name in DIRECTORY_VARIABLES if f"`${{{name}}}`" not in path] == []
    assert [name for name in FILE_VARIABLES if f"`{name}`" not in file] == []


DESCRIBED = [
    # type of destination, key, how its description begins
    ("lakewriter-s3", "pipeline", "The pipeline's name"),
    ("lakewriter-s3", "limits", "Sizes and counts"),
    ("lakewriter-s3", "destination", "Where the data goes"),
    ("lakewriter-s3", "destination.type", "S3 without a vendor"),
    ("supaflow-s3", "destination.type", "Supaflow's Amazon S3 connector"),
    ("supaflow-s3-data-lake", "destination.principal_role", "The principal role"),
    ("airbyte-s3", "destination.format.compression_codec.include_checksum", "Whether every block"),
    ("airbyte-s3", "destination.config_file", "A file of the vendor's own"),
    ("airbyte-s3", "source.catalog", "Airbyte's configured catalog"),
    ("estuary-s3-parquet", "destination.uploadInterval", "The time between the loads"),
    ("estuary-s3-parquet", "tables.table", "The collection's table"),
    ("estuary-s3-parquet", "tables.fields.include.castToString", None),
    ("estuary-s3-parquet", "tables.fields.include.NAME.castToString", "Makes the field's column text"),
    ("lakewriter-s3", "tables.table", "The table's name in the source"),
    ("lakewriter-s3", "tables.resource", None),
    ("lakewriter-s3", "tables.read.views.NAME.path", "A file, a folder"),
    ("lakewriter-s3", "tables.on_bad_row.at_most", "For `quarantine`: the share"),
    ("lakewriter-s3", "deployment.trust.external_id", "The external id that the party gives"),
    ("lakewriter-s3", "destination.s3_bucket_name", None),
    ("elsewhere-s3", "destination.type", None),
]


@pytest.mark.parametrize(("kind", "path", "begins"), DESCRIBED)
def test_description_of_a_key(kind, path, begins):
    if begins is None:
        with pytest.raises(LookupError):
            describe(kind, path)
    else:
        assert describe(kind, path).startswith(begins)
