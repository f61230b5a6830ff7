"""The files that Airbyte's platform gives a destination, and the specification by which it asks for them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from lakewriter.dialects.airbyte import translate as airbyte
from lakewriter.dialects.airbyte.file_formats import FORMAT_TAGS, drop_blanks
from lakewriter.dialects.airbyte.foreign_files import find_configuration
from lakewriter.dialects.airbyte.form_labels import FIELDS, SHOWN_AS_EXAMPLES, label_format
from lakewriter.dialects.airbyte.settings import AirbyteS3
from lakewriter.dialects.airbyte.vendor_file import split_known_keys
from lakewriter.dialects.common.dialect import CheckedFile
from lakewriter.dialects.common.faults import locate_faults
from lakewriter.dialects.common.form import BLANK_TEXT, NULL
from lakewriter.dialects.common.problems import describe_problems, list_keys
from lakewriter.dialects.common.row_rule_keys import ContractEntry
from lakewriter.dialects.common.source_files import Location, Position, read_json, require_mapping
from lakewriter.dialects.common.yaml_text import Document
from lakewriter.dialects.configured_catalog import ConfiguredCatalog, SourceEntry
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.specification import Limits, Spec

PIPELINE: Final = "airbyte"
"""Control objects of all connections with one bucket path lie together: a stream's generations are its own."""

M = TypeVar("M", bound=BaseModel)

_STRICT: Final = ("discriminator", "minLength", "additionalProperties")

_COMPRESSED: Final = ("CSV", "JSONL")
"""Formats that have a ``compression``."""
_EXTRA: Final = ("external_id", "record_undeclared", "upload_parallelism", "single_writer", "allow_insecure")
ONLY_STANDARD_INPUT: Final = "Sockets and Protocol Buffers, the platform's faster way, are refused by their names."
_CHANNEL: Final = {"DATA_CHANNEL_MEDIUM": "STDIO", "DATA_CHANNEL_FORMAT": "JSONL"}
"""The variables by which the platform says how records come, and the values that are taken.

See: https://docs.airbyte.com/understanding-airbyte/airbyte-protocol-docker
"""
_SECRET: Final = ("access_key_id", "secret_access_key", "external_id")


def make_connector_specification() -> dict[str, Any]:
    """Return the content of a SPEC message."""
    schema = AirbyteS3.model_json_schema()
    properties = {}
    for number, (key, label) in enumerate(FIELDS.items()):
        simplified = _simplify_schema(schema["properties"][key], schema["$defs"])
        properties[key] = label.apply(label_format(simplified) if key == "format" else simplified) | {"order": number}
    for key in _SECRET:
        properties[key]["airbyte_secret"] = True
    for key in SHOWN_AS_EXAMPLES:
        del properties[key]["default"]
    connection = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "S3 Destination Spec",
        "description": f"Records come on standard input, as lines of JSON. {ONLY_STANDARD_INPUT}",
        "type": "object",
        "required": [key for key in AirbyteS3.vendor_keys if AirbyteS3.model_fields[key].is_required()],
        "properties": properties,
        "additionalProperties": True,
    }
    return {
        "documentationUrl": "https://docs.airbyte.com/integrations/destinations/s3",
        "connectionSpecification": connection,
        "supportsIncremental": True,
        "supportsNormalization": False,
        "supportsDBT": False,
        "supported_destination_sync_modes": ["overwrite", "append"],
    }


def require_standard_input(environment: Mapping[str, str]) -> None:
    """Raise ``SPEC_INVALID`` where the platform sends records by sockets or in another encoding than JSON lines."""
    for name, expected in _CHANNEL.items():
        value = environment.get(name, "")
        if value.strip().upper() not in ("", expected):
            raise SpecInvalidError(
                f"{name} is {value!r}, which this destination does not take: records come on standard input, as lines "
                f"of JSON ({name}={expected}).",
                remedy="Leave connectorIPCOptions out of the metadata that the platform has of this destination.",
            )


def _simplify_schema(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return a schema as the platform's form takes it, which follows no references and has no field for null.

    It refuses nothing that is accepted here: blank text counts as absent, unknown keys are warnings.
    """
    if isinstance(schema, list):
        return [_simplify_schema(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _simplify_schema(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    values = [option for option in schema.get("anyOf", ()) if option not in (NULL, BLANK_TEXT)]
    if values:
        (value,) = values
        kept_keys = {
            key: value for key, value in schema.items() if key != "anyOf" and (key, value) != ("default", None)
        }
        return _simplify_schema(kept_keys | value, definitions)
    simplified = {key: _simplify_schema(value, definitions) for key, value in schema.items() if key not in _STRICT}
    return {"type": "object"} | simplified if "oneOf" in simplified else simplified


def read_form(config: Path) -> tuple[AirbyteS3, Position]:
    """Return the settings of a configuration, and the place in the file where they are."""
    content, position, _ = _read_config(config)
    return _validate(AirbyteS3, content, position), position


def read_connection(config: Path, catalog: Path | None) -> Spec:
    """Return the Spec of a connection; without a catalog it has no tables."""
    content, position, unknown = _read_config(config)
    form, file = _validate(AirbyteS3, content, position), position.file
    source = None
    origins: dict[Location, Position] = {("destination",): position}
    if catalog is not None:
        of_catalog = read_json(catalog, "--catalog")
        origins["source", "catalog"] = Position(of_catalog)
        streams = _validate(ConfiguredCatalog, require_mapping(of_catalog, "a JSON object"), Position(of_catalog))
        source = SourceEntry(messages="-", catalog=streams)
    checked: CheckedFile[airbyte.AirbyteForm] = CheckedFile(
        PIPELINE, form, (), source, ContractEntry(), None, root="", folder=""
    )
    with locate_faults(Document(file, Path(), content, origins)):
        spec = airbyte.translate(checked).model_copy(update={"source": None})
    limits = airbyte.adjust_limits(form, Limits(upload_parallelism=form.upload_parallelism))
    warnings = (
        *(f"{file.describe_position(position)} is not known here and has no effect." for position in unknown),
        *spec.warnings,
    )
    return spec.model_copy(update={"limits": limits, "warnings": warnings})


def _read_config(config: Path) -> tuple[dict[str, Any], Position, Sequence[Location]]:
    """Return the destination's keys in a file, where they are, and the places of keys that are not known here."""
    file = read_json(config, "--config")
    whole = require_mapping(file, "a JSON object")
    content, unknown = split_known_keys(AirbyteS3, whole, _EXTRA)
    return (
        {"type": "airbyte-s3"} | _with_default_compression(content),
        Position(file, find_configuration(whole)),
        unknown,
    )


def _with_default_compression(content: dict[str, Any]) -> dict[str, Any]:
    """Return the keys with the compression that the connector takes where none is given; its documents say GZIP."""
    form = drop_blanks(content.get("format"))
    if not isinstance(form, dict) or form.get("format_type") not in _COMPRESSED or "compression" in form:
        return content
    return content | {"format": form | {"compression": {"compression_type": "No Compression"}}}


def _validate(model: type[M], content: dict[str, Any], position: Position) -> M:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        origins: dict[Location, Position] = {(key,): position.get_child(key) for key in (*list_keys(model), *content)}
        document = Document(position.file, Path(), content, origins)
        problems = describe_problems(error, document, lambda _: list_keys(model), FORMAT_TAGS)
        raise SpecInvalidError(f"{position.file.name} cannot be used:", problems=problems) from error
