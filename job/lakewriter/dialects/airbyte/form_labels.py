"""The form that Airbyte's platform draws from the specification: labels, help and examples, in the documents' order.

Labels of the destination's own fields are those of the set-up page, https://docs.airbyte.com/integrations/destinations/s3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lakewriter.dialects.airbyte.paths import DEFAULT_FILE, DEFAULT_PATH, DIRECTORY_VARIABLES, FILE_VARIABLES

REGIONS: Final = (
    "", "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1",
    "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5",
    "ap-southeast-6", "ap-southeast-7", "ca-central-1", "ca-west-1", "cn-north-1", "cn-northwest-1", "eu-central-1",
    "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3", "il-central-1",
    "me-central-1", "me-south-1", "mx-central-1", "sa-east-1", "us-east-1", "us-east-2", "us-gov-east-1",
    "us-gov-west-1", "us-west-1", "us-west-2",
)  # fmt: skip
"""To choose from; blank for an S3-compatible store without regions. What a lake.yaml may have is not bound to them."""


@dataclass(frozen=True)
class Label:
    """What the form shows of one field."""

    title: str
    description: str
    examples: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The field's schema with this label."""
        examples = {"examples": list(self.examples)} if self.examples else {}
        return {**schema, "title": self.title, "description": self.description, **examples, **self.more}


_SHOWN: Final = {"always_show": True}

FIELDS: Final[Mapping[str, Label]] = {
    "access_key_id": Label(
        "Access Key Id",
        "The id of an access key that may read and write the bucket. Leave it and the secret empty to use a role, or "
        "the identity that the connector runs as.",
        ("A012345678910EXAMPLE",),
        _SHOWN,
    ),
    "secret_access_key": Label(
        "Secret Access Key", "The secret of the access key.", ("a012345678910ABCDEFGH/AbCdEfGhEXAMPLEKEY",), _SHOWN
    ),
    "role_arn": Label(
        "Role ARN",
        "A role to assume for the bucket. What its trust policy asks for as external id is 'External ID' below, or the "
        "environment's AWS_ASSUME_ROLE_EXTERNAL_ID.",
        ("arn:aws:iam::123456789012:role/LakeWriter",),
    ),
    "s3_bucket_name": Label("S3 Bucket Name", "The bucket that the data go to.", ("airbyte_sync",)),
    "s3_bucket_path": Label(
        "S3 Bucket Path", "The directory of the bucket to sync the data into.", ("data_sync/test",)
    ),
    "s3_bucket_region": Label(
        "S3 Bucket Region",
        "The bucket's region. With an endpoint it may be empty.",
        ("us-east-1",),
        {"enum": list(REGIONS)},
    ),
    "s3_path_format": Label(
        "S3 Path Format",
        "How the data are laid out under the bucket path, with the variables "
        + ", ".join(f"${{{name}}}" for name in DIRECTORY_VARIABLES)
        + ". The file name follows directly, so end it with / for a directory.",
        (DEFAULT_PATH,),
    ),
    "s3_endpoint": Label(
        "S3 Endpoint", "Leave it empty for AWS; the URL of another store, such as MinIO.", ("http://localhost:9000",)
    ),
    "file_name_pattern": Label(
        "S3 Filename pattern",
        f"The name of each file, without spaces, with the variables {', '.join(FILE_VARIABLES)}.",
        ("{date}", "{date:yyyy_MM}", "{timestamp}", "{part_number}", "{sync_id}", DEFAULT_FILE),
    ),
    "format": Label("Output Format", "The format of the files.", ("CSV", "JSONL", "Avro", "Parquet")),
    "external_id": Label("External ID", "What the role's trust policy asks for as external id."),
    "record_undeclared": Label(
        "Record Undeclared Properties",
        "Name properties that a stream's schema does not declare in _airbyte_meta.changes, too.",
    ),
    "upload_parallelism": Label("Upload Parallelism", "How many parts of a file are uploaded at the same time."),
    "single_writer": Label(
        "Single Writer",
        "Promises that one sync runs at a time: for a store without conditional writes.",
    ),
    "allow_insecure": Label("Allow Insecure Endpoint", "Accepts an endpoint without TLS on another machine."),
}
"""The fields in the order of the form: the vendor's, then this project's own."""

FORMATS: Final[Mapping[str, Label]] = {
    "CSV": Label("CSV: Comma-Separated Values", "A header, and a line for each record."),
    "JSONL": Label("JSON Lines: Newline-delimited JSON", "An object on a line of its own for each record."),
    "Avro": Label("Avro: Apache Avro", "Binary rows with their schema, always flattened."),
    "Parquet": Label("Parquet: Columnar Storage", "Columns with their schema, always flattened."),
    "No Compression": Label("No Compression", "Plain text."),
    "GZIP": Label("GZIP", "The file's name ends in .gz, such as .csv.gz or .jsonl.gz."),
    "no compression": Label("No compression", "Blocks as they are."),
    "Deflate": Label("deflate", "Level 0 stores, 9 compresses most."),
    "bzip2": Label("bzip2", "It has no levels."),
    "xz": Label("xz", "Levels 0 to 3 are fast; 7 to 9 need a lot of memory."),
    "zstandard": Label("zstandard", "Negative levels are fast; levels above 18 need a lot of memory."),
    "snappy": Label("snappy", "It has no levels."),
}
"""The options of a choice, by the constant that tells each from the others."""

PARTS: Final[Mapping[str, Label]] = {
    "format_type": Label("Format Type", "The format of the files."),
    "flattening": Label(
        "Flattening", "Whether a record is one column, or each property of its root has a column of its own."
    ),
    "compression": Label("Compression", "Whether the files are compressed. Without it they are not."),
    "compression_type": Label("Compression Type", "Whether the files are compressed."),
    "compression_codec": Label("Compression Codec", "How data are compressed inside the file."),
    "codec": Label("Codec", "How blocks are compressed."),
    "compression_level": Label("Compression Level", "How much time is spent for smaller files."),
    "include_checksum": Label("Include Checksum", "Whether every block has a checksum."),
    "block_size_mb": Label(
        "Block Size (Row Group Size) (MB)",
        "The size of a row group, which is held in memory: larger ones read faster and take more memory to write.",
    ),
    "max_padding_size_mb": Label("Max Padding Size (MB)", "It has no effect on S3, where row groups are not aligned."),
    "page_size_kb": Label("Page Size (KB)", "The smallest part that is read to get at one record."),
    "dictionary_page_size_kb": Label(
        "Dictionary Page Size (KB)", "The most that the dictionary of a column in a row group takes."
    ),
    "dictionary_encoding": Label("Dictionary Encoding", "Whether repeated values are written once."),
}
"""The fields of formats and of their own objects, which mean the same wherever they are."""

_TAGS: Final = ("format_type", "compression_type", "codec")


def label_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a choice with labels on its options and on their fields, all the way down."""
    return {**schema, "oneOf": [_label_option(option) for option in schema["oneOf"]]}


def _label_option(option: Mapping[str, Any]) -> dict[str, Any]:
    properties = dict(option["properties"])
    tag = next(key for key in _TAGS if key in properties)
    # The platform's form shows fields in the order of the keys, and what an option is chosen by comes first.
    properties = {tag: properties.pop(tag)} | properties
    labelled = {
        key: PARTS[key].apply(label_format(each) if "oneOf" in each else each) for key, each in properties.items()
    }
    labelled.get("compression", {}).pop("default", None)
    numbered = {key: each | {"order": number} for number, (key, each) in enumerate(labelled.items())}
    return FORMATS[str(properties[tag]["const"])].apply({**option, "properties": numbered})
