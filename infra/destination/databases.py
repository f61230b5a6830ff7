"""Make the Glue databases of the file's tables."""

from aws_cdk import aws_glue as glue
from constructs import Construct

from infra.destination.logical_ids import make_logical_id, pin
from infra.removal import choose_removal
from infra.settings import Settings
from lakewriter.spec.specification import Spec


def list_locations(spec: Spec) -> dict[str, str]:
    """List the ``s3://`` URI of each database in the file's order; empty without Glue."""
    if not spec.in_glue:
        return {}
    return {table.schema_name: spec.table_location(table).rpartition("/")[0] for table in spec.tables}


class Databases(Construct):
    """``made`` holds one database for each schema unless ``deployment.existing`` has them, or another
    account; ``names`` holds all."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings) -> None:
        super().__init__(scope, id_)
        locations = list_locations(settings.spec)
        self.names: tuple[str, ...] = tuple(locations)
        self.made: list[glue.Database] = []
        if settings.deployment.existing.databases or settings.spec.access.catalog_account:
            return
        for name, location in locations.items():
            database = glue.Database(
                self,
                name,
                database_name=name,
                location_uri=location,
                removal_policy=choose_removal(settings),
            )
            pin(database, make_logical_id("Database", name, separator="_"))
            self.made.append(database)
