"""What a deployment that runs until it is stopped asks of the file."""

from collections.abc import Iterator

from infra.settings import Settings
from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.policy.bucket import find_key_prefix
from lakewriter.policy.checkpoint import locate_checkpoints
from lakewriter.spec.streamable import unfit


def continuous(settings: Settings) -> Iterator[str]:
    """A file that cannot be run continuously, or checkpoints where they would be lost or in the way."""
    spec = settings.spec
    if settings.deployment.spark.mode != "STREAMING":
        return
    for problem in unfit(spec):
        yield f"deployment.spark.mode is STREAMING: {problem.message} {problem.remedy}".strip()
    if spec.checkpoint is None:
        return
    place = locate_checkpoints(spec)
    if place is None:
        yield (
            f"checkpoint: {spec.checkpoint!r} is on this machine; expected s3://..., in a folder of the pipeline's own."
        )
        return
    taken = {find_key_prefix(table): f"table {table.id!r}" for table in spec.tables}
    taken[f"{join_key(spec.access.prefix, CONTROL_DIRECTORY)}/"] = "the job's own records"
    whose = next((what for start, what in taken.items() if f"{place[1]}/".startswith(start)), None)
    if place[0] == spec.access.bucket and whose:
        yield (
            f"checkpoint: {spec.checkpoint!r} is in the folder of {whose}; expected a folder of its own, such as "
            f"s3://{join_key(spec.access.bucket, spec.access.prefix, '_checkpoints')}."
        )
