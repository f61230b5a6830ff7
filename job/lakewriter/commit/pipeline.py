"""Open a pipeline: its specification, clients for its destination, and the control objects of its tables."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakewriter.aws import Clients
from lakewriter.commit.committed_loads import LastLoads
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control, Shared, open_control
from lakewriter.commit.data_store import OpenClients, reuse_clients
from lakewriter.errors import PendingUnrecoverableError, StateLostError
from lakewriter.naming import ControlKeys
from lakewriter.spec.specification import Spec


@dataclass(frozen=True)
class Pipeline:
    """One pipeline; ``controls`` are the tables' control objects by table id, ``open_clients`` opens the clients for an
    intent's destination, ``last_loads`` are those of all tables."""

    spec: Spec
    clients: Clients
    store: S3Store
    keys: ControlKeys
    controls: Mapping[str, Control]
    open_clients: OpenClients
    last_loads: LastLoads

    @classmethod
    def open(cls, spec: Spec, clients: Clients) -> "Pipeline":
        """Open the pipeline of ``spec``; nothing is asked of AWS yet."""
        store, keys = S3Store(clients), ControlKeys(spec.access.prefix, spec.pipeline)
        shared = Shared.open(store, keys)
        controls = {table.id: open_control(spec, table, store, shared) for table in spec.tables}
        return cls(spec, clients, store, keys, controls, reuse_clients(clients), LastLoads(controls))

    @property
    def first_control(self) -> Control:
        """The control objects of the first table, which also writes the records of whole loads."""
        return self.controls[self.spec.tables[0].id]

    def require_readable_state(self) -> None:
        """Raise the first table's error if no table's state can be read.

        Contents are not trusted yet: each table reads its state again when it registers. If only some states cannot be
        read, those tables fail there, and the others go on.
        """
        errors = []
        for control in self.controls.values():
            try:
                control.state.read()
            except (PendingUnrecoverableError, StateLostError) as error:
                errors.append(error)
            else:
                return
        raise errors[0]
