"""The files that Airbyte's platform gives a destination, and the specification by which it asks for them."""

from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from lakewriter.dialects.airbyte import translate as airbyte
from lakewriter.dialects.airbyte.configured_catalog import ConfiguredCatalog, SourceEntry
from lakewriter.dialects.airbyte.file_formats import FORMAT_TAGS
from lakewriter.dialects.airbyte.settings import AirbyteS3
from lakewriter.dialects.airbyte.vendor_file import known
from lakewriter.dialects.common.dialect import CheckedFile
from lakewriter.dialects.common.faults import located
from lakewriter.dialects.common.problems import keys_of, problems
from lakewriter.dialects.common.row_rule_keys import ContractEntry
from lakewriter.dialects.common.source_files import Location, Place, SourceFile, mapping_of, read_json
from lakewriter.dialects.common.yaml_text import Document
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.specification import Limits, Spec

PIPELINE: Final = "airbyte"
"""Control objects of all connections with one bucket path lie together: a stream's generations are its own."""

M = TypeVar("M", bound=BaseModel)

_STRICT: Final = ("discriminator", "minLength", "additionalProperties")

_EXTRA: Final = ("external_id", "record_undeclared", "upload_parallelism", "single_writer", "allow_insecure")
_SECRET: Final = ("access_key_id", "secret_access_key", "external_id")


def connector_specification() -> dict[str, Any]:
    """The content of a SPEC message."""
    schema = AirbyteS3.model_json_schema()
    keys = (*AirbyteS3.vendor_keys, *_EXTRA)
    own = (_plain(schema["properties"][key], schema["$defs"]) for key in keys)
    properties = {key: each | {"order": number} for number, (key, each) in enumerate(zip(keys, own, strict=True))}
    for key in _SECRET:
        properties[key]["airbyte_secret"] = True
    connection = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "S3 Destination Spec",
        "type": "object",
        "required": [key for key in keys if AirbyteS3.model_fields[key].is_required()],
        "properties": properties,
        "additionalProperties": True,
    }
    return {
        "documentationUrl": "https://docs.airbyte.com/integrations/destinations/s3",
        "connectionSpecification": connection,
        "supportsIncremental": True,
        "supported_destination_sync_modes": ["overwrite", "append"],
    }


def _plain(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema as the platform's form takes it, which follows no references and has no field for null.

    It refuses nothing that is accepted here: blank text counts as absent, unknown keys are warnings.
    """
    if isinstance(schema, list):
        return [_plain(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    values = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if values:
        (value,) = values
        return _plain({key: own for key, own in schema.items() if key not in ("anyOf", "default")} | value, definitions)
    found = {key: _plain(own, definitions) for key, own in schema.items() if key not in _STRICT}
    return {"type": "object"} | found if "oneOf" in found else found


def connector_spec(config: Path, catalog: Path | None) -> Spec:
    """The Spec of a connection; without a catalog it has no tables."""
    file = read_json(config, "--config")
    content, unknown = known(AirbyteS3, mapping_of(file, "a JSON object"), _EXTRA)
    form = _validated(AirbyteS3, {"type": "airbyte-s3"} | content, file)
    source = None
    origins: dict[Location, Place] = {("destination",): Place(file)}
    if catalog is not None:
        of_catalog = read_json(catalog, "--catalog")
        origins["source", "catalog"] = Place(of_catalog)
        streams = _validated(ConfiguredCatalog, mapping_of(of_catalog, "a JSON object"), of_catalog)
        source = SourceEntry(messages="-", catalog=streams)
    checked: CheckedFile[airbyte.AirbyteForm] = CheckedFile(
        PIPELINE, form, (), source, ContractEntry(), None, root="", folder=""
    )
    with located(Document(file, Path(), content, origins)):
        spec = airbyte.translate(checked).model_copy(update={"source": None})
    limits = airbyte.limits(form, Limits(upload_parallelism=form.upload_parallelism))
    warnings = (*(f"{file.where(place)} is not known here and has no effect." for place in unknown), *spec.warnings)
    return spec.model_copy(update={"limits": limits, "warnings": warnings})


def _validated(model: type[M], content: dict[str, Any], file: SourceFile) -> M:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        document = Document(file, Path(), content)
        found = problems(error, document, lambda _: keys_of(model), FORMAT_TAGS)
        raise SpecInvalidError(f"{file.name} cannot be used:", problems=found) from error
