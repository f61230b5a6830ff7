"""Parliament's findings on a policy document: unknown actions, condition keys and resource types, and bad habits."""

import importlib
import json
import sys
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


def findings(document: Mapping[str, Any]) -> list[str]:
    """One line each."""
    analysed = _parliament().analyze_policy_string(json.dumps(document))
    return [f"{found.issue} {found.detail} {found.location}" for found in analysed.findings]


@cache
def _parliament() -> Any:
    """It asks for its data files through pkg_resources, which setuptools no longer has, and leaves them open."""
    stand_in = ModuleType("pkg_resources")
    vars(stand_in)["resource_filename"] = _resource_filename
    sys.modules["pkg_resources"] = stand_in
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            return importlib.import_module("parliament")
    finally:
        del sys.modules["pkg_resources"]


def _resource_filename(package: str, name: str) -> str:
    return str(Path(str(sys.modules[package].__file__)).with_name(name))
