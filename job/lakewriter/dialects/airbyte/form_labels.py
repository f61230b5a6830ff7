"""The form that Airbyte's platform draws from the specification: labels and examples, ordered as the vendor's form.

Labels of the destination's own fields are those of the set-up page, https://docs.airbyte.com/integrations/destinations/s3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lakewriter.dialects.airbyte.paths import DEFAULT_PATH
from lakewriter.spec.model import plain_text

REGIONS: Final = (
    "", "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1",
    "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5",
    "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1", "cn-north-1", "cn-northwest-1", "eu-central-1",
    "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3", "il-central-1",
    "me-central-1", "me-south-1", "mx-central-1", "sa-east-1", "us-east-1", "us-east-2", "us-gov-east-1",
    "us-gov-west-1", "us-west-1", "us-west-2",
)  # fmt: skip
"""The regions to choose from; blank for an S3-compatible store without regions. A lake.yaml may have others."""


@dataclass(frozen=True)
class Label:
    """One field as the form shows it. Its help is the field's own description, unless the form needs another."""

    title: str
    examples: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""

    def apply(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the field's schema with this label."""
        examples = {"examples": list(self.examples)} if self.examples else {}
        description = self.description or plain_text(schema["description"])
        return {**schema, "title": self.title, "description": description, **examples, **self.more}


_SHOWN: Final = {"always_show": True}

FIELDS: Final[Mapping[str, Label]] = {
    "access_key_id": Label("Access Key Id", ("A012345678910EXAMPLE",), _SHOWN),
    "secret_access_key": Label("Secret Access Key", ("a012345678910ABCDEFGH/AbCdEfGhEXAMPLEKEY",), _SHOWN),
    "role_arn": Label("Role ARN", ("arn:aws:iam::123456789012:role/LakeWriter",)),
    "s3_bucket_name": Label("S3 Bucket Name", ("airbyte_sync",)),
    "s3_bucket_path": Label("S3 Bucket Path", ("data_sync/test",)),
    "s3_bucket_region": Label("S3 Bucket Region", ("us-east-1",), {"enum": list(REGIONS), "default": ""}),
    "format": Label("Output Format"),
    "s3_endpoint": Label("S3 Endpoint", ("http://localhost:9000",)),
    "s3_path_format": Label("S3 Path Format", (DEFAULT_PATH,)),
    "file_name_pattern": Label(
        "S3 Filename pattern", ("{date}", "{date:yyyy_MM}", "{timestamp}", "{part_number}", "{sync_id}")
    ),
    "external_id": Label("External ID"),
    "record_undeclared": Label("Record Undeclared Properties"),
    "upload_parallelism": Label("Upload Parallelism"),
    "single_writer": Label("Single Writer"),
    "allow_insecure": Label("Allow Insecure Endpoint"),
}
"""The fields in the order of the form: the vendor's, then this project's own."""
SHOWN_AS_EXAMPLES: Final = ("s3_path_format", "file_name_pattern")
"""Fields that the form leaves blank, with their default as an example: blank is the default."""

FORMATS: Final[Mapping[str, Label]] = {
    "CSV": Label("CSV: Comma-Separated Values"),
    "JSONL": Label("JSON Lines: Newline-delimited JSON"),
    "Avro": Label("Avro: Apache Avro"),
    "Parquet": Label("Parquet: Columnar Storage"),
    "No Compression": Label("No Compression"),
    "GZIP": Label("GZIP"),
    "no compression": Label("No compression"),
    "Deflate": Label("deflate"),
    "bzip2": Label("bzip2"),
    "xz": Label("xz"),
    "zstandard": Label("zstandard"),
    "snappy": Label("snappy"),
}
"""The options of a choice, by the constant that tells each apart from the others."""

PARTS: Final[Mapping[str, Label]] = {
    "format_type": Label("Format Type"),
    "flattening": Label("Flattening"),
    # The connector leaves files alone where its configuration has no compression; a lake.yaml compresses them.
    "compression": Label("Compression", description="Whether the files are compressed. Without it they are not."),
    "compression_type": Label("Compression Type"),
    "compression_codec": Label("Compression Codec"),
    "codec": Label("Codec"),
    "compression_level": Label("Compression Level"),
    "include_checksum": Label("Include Checksum"),
    "block_size_mb": Label("Block Size (Row Group Size) (MB)"),
    "max_padding_size_mb": Label("Max Padding Size (MB)"),
    "page_size_kb": Label("Page Size (KB)"),
    "dictionary_page_size_kb": Label("Dictionary Page Size (KB)"),
    "dictionary_encoding": Label("Dictionary Encoding"),
}
"""The fields of formats and of their own objects, which are called the same wherever they are."""

_TAGS: Final = ("format_type", "compression_type", "codec")


def label_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a choice with labels on its options and, all the way down, on their fields."""
    return {**schema, "oneOf": [_label_option(option) for option in schema["oneOf"]]}


def _label_option(option: Mapping[str, Any]) -> dict[str, Any]:
    properties = dict(option["properties"])
    tag = next(key for key in _TAGS if key in properties)
    # The platform's form shows fields in the order of the keys, and what an option is chosen by comes first.
    properties = {tag: properties.pop(tag)} | properties
    labelled = {
        key: PARTS[key].apply(label_format(property_schema) if "oneOf" in property_schema else property_schema)
        for key, property_schema in properties.items()
    }
    labelled.get("compression", {}).pop("default", None)
    chosen = properties[tag]["const"]
    # Forms of several releases find the option that is chosen by its constant, by its only value or by its default.
    labelled[tag] |= {"enum": [chosen], "default": chosen}
    numbered = {
        key: property_schema | {"order": number} for number, (key, property_schema) in enumerate(labelled.items())
    }
    return FORMATS[str(chosen)].apply({**option, "properties": numbered, "additionalProperties": True})
