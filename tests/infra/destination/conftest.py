"""Destination stacks, each synthesised once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match, Template

from infra.destination.stack import DestinationStack
from infra.settings import read_defaults
from tests.infra.conftest import SettingsFor
from tests.infra.destination.lakes import EVERYTHING, SUPAFLOW, lake


@dataclass(frozen=True)
class Synthesised:
    """A stack, its template, and the warnings for whoever deploys it."""

    stack: DestinationStack
    template: dict[str, Any]

    @property
    def warnings(self) -> list[str]:
        found = Annotations.from_stack(self.stack).find_warning("*", Match.any_value())
        return [entry.entry.data for entry in found]


class Synthesise(Protocol):
    """``synthesise(lake, stage="prod")``: a destination in an app of its own."""

    def __call__(self, lake: str | Mapping[str, Any], *, stage: str = "prod") -> Synthesised: ...


@pytest.fixture(scope="session")
def synthesise(settings_for: SettingsFor, tmp_path_factory: pytest.TempPathFactory) -> Synthesise:
    def make(lake: str | Mapping[str, Any], *, stage: str = "prod") -> Synthesised:
        app = cdk.App(
            context=read_defaults(), analytics_reporting=False, outdir=str(tmp_path_factory.mktemp("cdk.out"))
        )
        settings = settings_for(lake, stage=stage)
        stack = DestinationStack(app, settings.stack_names[0], settings=settings)
        return Synthesised(stack, dict(Template.from_stack(stack).to_json()))

    return make


@pytest.fixture(scope="session")
def plain(synthesise: Synthesise) -> dict[str, Any]:
    """The template of a file that names its vendor and leaves all else to the defaults."""
    return synthesise(lake({"trust": [SUPAFLOW]})).template


@pytest.fixture(scope="session")
def full(synthesise: Synthesise) -> dict[str, Any]:
    """The template of a file that asks for everything, in a stage that may be destroyed."""
    return synthesise(lake(EVERYTHING)).template
