"""Check that the file can be run continuously."""

from collections.abc import Iterator

from infra.settings import Settings
from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.policy.checkpoint import locate_checkpoints
from lakewriter.policy.prefixes import list_key_prefixes
from lakewriter.spec.streamable import unfit


def check_continuous(settings: Settings) -> Iterator[str]:
    """Refuse a file that cannot be run continuously, and checkpoints on this machine or in a table's folder."""
    spec = settings.spec
    if settings.deployment.spark.mode != "STREAMING":
        return
    for problem in unfit(spec):
        yield f"deployment.spark.mode is STREAMING: {problem.message} {problem.remedy}".strip()
    if spec.checkpoint is None:
        return
    location = locate_checkpoints(spec)
    if location is None:
        yield (
            f"checkpoint: {spec.checkpoint!r} is on this machine; expected s3://..., in a folder of the pipeline's own."
        )
        return
    taken = {start: f"table {table.id!r}" for table in spec.tables for start in list_key_prefixes(table)}
    taken[f"{join_key(spec.access.prefix, CONTROL_DIRECTORY)}/"] = "the job's own records"
    bucket, path = location
    owner = next((name for start, name in taken.items() if f"{path}/".startswith(start)), None)
    if bucket == spec.access.bucket and owner:
        yield (
            f"checkpoint: {spec.checkpoint!r} is in the folder of {owner}; expected a folder of its own, such as "
            f"s3://{join_key(spec.access.bucket, spec.access.prefix, '_checkpoints')}."
        )
