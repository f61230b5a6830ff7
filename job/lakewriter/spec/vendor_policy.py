"""The policy document of a vendor's set-up page, word for word, with placeholders for what it is about; pure values."""

from enum import StrEnum

from lakewriter.spec.model import Model


class Target(StrEnum):
    """The subject of a statement.

    ``databases`` are those whose names begin with the vendor's prefix or, without a prefix, those of the tables;
    ``tables`` are the tables in these databases.
    """

    BUCKET = "bucket"
    OBJECTS = "objects"
    OBJECTS_IN_PREFIX = "objects_in_prefix"
    CATALOG = "catalog"
    DATABASES = "databases"
    TABLES = "tables"


class VendorStatement(Model):
    """One statement; ``prefix_only`` adds the condition that listings name the prefix."""

    sid: str
    actions: tuple[str, ...]
    targets: tuple[Target, ...]
    prefix_only: bool = False


class VendorPolicy(Model):
    """The whole document; ``glue`` counts where tables are in Glue.

    ``self_hosted`` is true if the page is also for a product that runs on machines of one's own, so that a principal of
    one's own, or the machine's role, is the vendor's.
    """

    s3: tuple[VendorStatement, ...]
    glue: tuple[VendorStatement, ...] = ()
    self_hosted: bool = False
