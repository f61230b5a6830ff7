"""Open a lake.yaml for the command line or the library: its specification, its clients and a Spark session."""

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from lakewriter.aws import Clients, fill_region
from lakewriter.commit.control import Control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.deployable import judge
from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError
from lakewriter.local_server.local_spec import localize
from lakewriter.local_server.server import LocalServer, make_bucket
from lakewriter.source.session import open_spark_session
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec

_UNKNOWN_REGION: Final = "<region>"
MOST_NAMED: Final = 10
"""The most tables that a message names."""


class Context:
    """An opened lake.yaml. Clients and Spark session are made at their first use."""

    def __init__(
        self, lake: Path, stage: str | None, *, local: bool = False, is_started: bool = False, asks: bool = True
    ) -> None:
        """``is_started`` says that Spark may run already: its tasks do not see what this process exports now.

        A region that the file leaves out is read from the bucket; unless ``asks``, a placeholder stands for it.
        """
        loaded = load(lake, stage=stage)
        if local:
            self.spec = _open_locally(lake, loaded.spec, holds_keys=is_started)
        else:
            access = loaded.spec.access
            regional = access if access.region else access.model_copy(update={"region": _UNKNOWN_REGION})
            self.spec = loaded.spec.model_copy(update={"access": fill_region(access) if asks else regional})
        # A server on this machine has no stacks.
        self.deployment = Deployment() if local else loaded.deployment
        self._judge = (lambda: None) if local else partial(judge, lake, loaded, stage)
        self._spark: SparkSession | None = None
        self._lock = threading.Lock()

    @cached_property
    def refusal(self) -> SpecInvalidError | None:
        """Return what ``cdk synth`` would refuse of the file; None if nothing, or if no stack runs its loads."""
        return self._judge()

    @cached_property
    def clients(self) -> Clients:
        """The clients of the destination, with its credentials."""
        return Clients(self.spec.access)

    def spark(self) -> SparkSession:
        """Return the one Spark session, started at its first use."""
        with self._lock:
            self._spark = self._spark or open_spark_session(f"lakewriter {self.spec.pipeline}")
            return self._spark

    def require_table(self, name: str) -> None:
        """Raise ``SPEC_INVALID`` where ``--table`` names none of the file's tables."""
        ids = [table.id for table in self.spec.tables]
        if name not in ids:
            expected = ", ".join(ids[:MOST_NAMED]) + (" or another of its tables" if ids[MOST_NAMED:] else "")
            raise SpecInvalidError(f"--table {name!r} is no table of this pipeline.", remedy=f"Expected {expected}.")

    def choose_tables(self, names: Sequence[str]) -> None:
        """Leave the file's other tables out, as if it did not have them; all stay where no name is given. Tables that
        are loaded together stay together.

        A name is a table's id, or its name in the file if only one table has that name. ``SPEC_INVALID`` for any other.
        """
        chosen = {self._find_id(name) for name in names}
        if chosen:
            self.spec = self.spec.keep_tables(chosen)

    def _find_id(self, name: str) -> str:
        called = [table.id for table in self.spec.named_tables if table.source_table == name]
        if len(called) == 1 and name not in {table.id for table in self.spec.tables}:
            return called[0]
        self.require_table(name)
        return name

    def controls(self) -> Mapping[str, Control]:
        """Return the control objects of every table, by its id."""
        return Pipeline.open(self.spec, self.clients).controls


def _open_locally(lake: Path, spec: Spec, *, holds_keys: bool) -> Spec:
    """Return the same pipeline on the S3 server beside its file; start the server if it does not run."""
    localized = localize(spec, LocalServer.beside(lake), holds_keys=holds_keys)
    make_bucket(localized.access)
    return localized
