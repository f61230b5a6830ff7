"""Check the source of a pipeline that reads messages: its files exist, or its connector can be run."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lakewriter.doctor.probe import Finding, Probe
from lakewriter.errors import SourceFailedError
from lakewriter.report import format_count
from lakewriter.source.messages.splits import list_message_files
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import MessageSource

_ELSEWHERE: Final = (
    "Run the connector where it is, land what it prints in S3, and name that in source.messages; or leave the stacks "
    "out and run the loads where the connector is."
)


@dataclass(frozen=True)
class MessageProbes:
    """Probes of ``source``; a pipeline with tables has none."""

    spec: Spec
    deployment: Deployment | None

    def list_probes(self) -> list[Probe]:
        """List the probe; none for a pipeline without messages."""
        source = self.spec.source
        return [] if source is None else [Probe("messages", lambda: self._check_messages(source))]

    def _check_messages(self, source: MessageSource) -> Iterator[Finding]:
        if source.command:
            yield self._check_connector(source)
        elif source.paths == ("-",):
            yield Finding("messages", "ok", "messages come on standard input.")
        else:
            files = list_message_files(source.paths).files
            size = sum(file.length for file in files) / 1e6
            yield Finding("messages", "ok", f"{format_count(len(files), 'file')} of messages, {size:,.1f} MB.")

    def _check_connector(self, source: MessageSource) -> Finding:
        """Look the connector up as a load does: on the PATH, or in the folder of lake.yaml if its name has a slash."""
        name = source.command[0]
        program = shutil.which(str(Path(source.folder, name)) if "/" in name else name)
        if program is None:
            raise SourceFailedError(
                f"the connector {name!r} is not on this machine, or is not executable.",
                remedy="Install it, or name its full path.",
            )
        if self.deployment not in (None, Deployment()):
            message = f"the connector {program} is on this machine; the loads that the stacks run, on EMR, have none."
            return Finding("messages", "warning", message, _ELSEWHERE)
        return Finding("messages", "ok", f"the connector is {program}.")
