"""Find partitions of a Glue table whose location contains another partition's files: queries read these twice."""

from lakewriter import aws
from lakewriter.commit.glue import GlueTables
from lakewriter.commit.intent import GlueAction, Intent
from lakewriter.commit.mismatch import Kind, Mismatch
from lakewriter.errors import GlueAccessDeniedError


class TablePartitions:
    """The partitions of a pipeline's tables; those of one table are listed once for all loads."""

    def __init__(self, clients: aws.Clients) -> None:
        self._clients = clients
        self._listed: dict[tuple[str, str], list[tuple[tuple[str, ...], str]]] = {}

    def compare(self, intent: Intent) -> tuple[list[Mismatch], list[str]]:
        """Return a mismatch for each other partition that contains the files of the load's partition; a note where
        partitions may not be listed."""
        action = intent.catalog
        if not isinstance(action, GlueAction) or action.partition is None:
            return [], []
        try:
            listed = self._list(action)
        except GlueAccessDeniedError as error:
            return [], [
                f"whether another partition has the files of {intent.table_id} too is not known: {error.message}"
            ]
        partition_path = f"{str(action.partition_location).rstrip('/')}/"
        return [
            Mismatch(
                Kind.PARTITION_FOREIGN,
                f"Glue table {action.database}.{action.table}: partition {'/'.join(values)!r} lies at {location!r}, "
                f"with the files of partition {action.partition!r}, so queries read their rows twice.",
            )
            for values, location in listed
            if values != (action.partition,) and location and partition_path.startswith(f"{location.rstrip('/')}/")
        ], []

    def _list(self, action: GlueAction) -> list[tuple[tuple[str, ...], str]]:
        name = action.database, action.table
        if name not in self._listed:
            self._listed[name] = list(GlueTables(self._clients).list_partitions(action))
        return self._listed[name]
