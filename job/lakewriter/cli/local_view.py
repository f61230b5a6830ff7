"""The work of ``lakewriter local``."""

from pathlib import Path

from lakewriter.cli.printed import LocalReport
from lakewriter.cli.shared import OUT, print_json
from lakewriter.dialects.lake_yaml import load
from lakewriter.exit_codes import EXIT_OK
from lakewriter.local_server.local_spec import localize
from lakewriter.local_server.server import LocalServer, make_bucket


def start_server(lake: Path, stage: str | None, *, as_json: bool) -> int:
    """Start the server, make the bucket of the file at ``lake`` there, and say how to reach it."""
    # The server belongs to the folder: it also serves a program that has no file yet.
    spec = load(lake, stage=stage).spec if lake.exists() else None
    server = LocalServer.beside(lake)
    running = server.start()
    service = localize(spec, server).rest_service if spec is not None else None
    bucket = spec.access.bucket if spec is not None else None
    access = running.make_access(bucket or "")
    if bucket is not None:
        make_bucket(access)
    if as_json:
        print_json(
            LocalReport(
                running=True,
                folder=str(server.folder),
                endpoint=running.endpoint,
                access_key_id=running.key_id,
                secret_access_key=running.secret,
                region=access.region,
                bucket=bucket,
                catalog=service.uri if service else None,
                warehouse=service.warehouse if service else None,
            )
        )
        return EXIT_OK
    _print(f"S3 server at {running.endpoint}, data in {server.folder}")
    if bucket is not None:
        _print(f"bucket s3://{bucket}")
    if service is not None:
        _print(f"Iceberg REST catalog at {service.uri}, warehouse {service.warehouse}, signed in to with the same keys")
    _print(f"export AWS_ENDPOINT_URL_S3={running.endpoint}")
    _print(f"export AWS_ACCESS_KEY_ID={running.key_id}")
    _print(f"export AWS_SECRET_ACCESS_KEY={running.secret}")
    _print(f"export AWS_REGION={access.region}")
    return EXIT_OK


def stop_server(lake: Path, *, as_json: bool) -> int:
    """Stop the server; its data stay."""
    server = LocalServer.beside(lake)
    stopped = server.stop()
    if as_json:
        print_json(LocalReport(running=False, folder=str(server.folder)))
        return EXIT_OK
    _print(f"The S3 server {'stopped' if stopped else 'was not running'}. Its data are in {server.folder}.")
    return EXIT_OK


def _print(line: str) -> None:
    OUT.print(line, markup=False, soft_wrap=True)
