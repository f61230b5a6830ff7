"""A lake.yaml of Airbyte's or Hero Pixel's form as a mapping."""

from typing import Any


def file(kind: str, **deployment: Any) -> dict[str, Any]:
    """``kind`` is the vendor; one table is overwritten, one has no namespace."""
    read = {"format": "parquet", "path": "s3://raw/users"}
    return {
        "pipeline": "users",
        "destination": {
            "type": f"{kind}-s3",
            "s3_bucket_name": "acme-lake",
            "s3_bucket_path": "data/${NAMESPACE}",
            "s3_bucket_region": "us-east-1",
            "s3_path_format": "${STREAM_NAME}/${YEAR}_",
            "format": {"format_type": "Parquet"},
        },
        "tables": [
            {"table": "users", "schema": "crm", "read": read},
            {"table": "plans", "schema": "crm", "mode": "overwrite", "read": read},
            {"table": "visits", "read": read},
        ],
        "deployment": deployment,
    }
