"""The Glue databases of the file's tables."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_glue as glue
from constructs import Construct

from infra.destination.logical_ids import logical_id, pin
from infra.settings import Settings
from lakewriter.spec.specification import Spec


def locations(spec: Spec) -> dict[str, str]:
    """``s3://`` URI by database, in the file's order; none without Glue. A database holds what lies under its URI."""
    if not spec.in_glue:
        return {}
    return {table.schema_name: spec.table_location(table).rpartition("/")[0] for table in spec.tables}


class Databases(Construct):
    """One for each schema, unless ``deployment.existing`` has them; ``names`` are all that the tables lie in."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings) -> None:
        super().__init__(scope, id_)
        places = locations(settings.spec)
        self.names: tuple[str, ...] = tuple(places)
        self.made: list[glue.Database] = []
        if settings.deployment.existing.databases:
            return
        for name, location in places.items():
            database = glue.Database(
                self,
                name,
                database_name=name,
                location_uri=location,
                removal_policy=RemovalPolicy.RETAIN if settings.protected else RemovalPolicy.DESTROY,
            )
            pin(database, logical_id("Database", name, separator="_"))
            self.made.append(database)
