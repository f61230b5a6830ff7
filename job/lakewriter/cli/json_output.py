"""Print with ``--json`` exactly one object on standard output, whatever became of the command."""

import json
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from lakewriter.report import ErrorReport

JOB_ID_KEY: Final = "lakewriter.job_id"
"""The click context keeps under this key the id of the load that the command is about."""


def print_json(value: Any, error: "ErrorReport | None" = None, *, indent: int | None = 1) -> None:
    """Print the command's object, with ``error`` where it does not exit with 0."""
    plain = value.model_dump(mode="json", by_alias=True) if hasattr(value, "model_dump") else dict(value)
    plain["error"] = None if error is None else error.model_dump(mode="json")
    click.echo(json.dumps(plain, indent=indent, default=str))


def print_document(content: Any) -> None:
    """Print a document that is no report, such as a JSON Schema."""
    click.echo(json.dumps(content, indent=1))


def print_failure(error: "ErrorReport") -> None:
    """Print the object of a command that ended before it had its own."""
    from lakewriter.report import FailureReport

    context = click.get_current_context(silent=True)
    words = context.command_path.split()[1:] if context is not None else []
    job_id = context.meta.get(JOB_ID_KEY) if context is not None else None
    report = FailureReport(command=" ".join(words), job_id=job_id, error=error)
    click.echo(report.model_dump_json(indent=1))


def remember_job_id(job_id: str) -> None:
    """Let a failure that follows say which load it is of."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[JOB_ID_KEY] = job_id
