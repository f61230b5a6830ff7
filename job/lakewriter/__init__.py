"""An S3 data lake destination that a platform team owns."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakewriter.errors import LakeError

if TYPE_CHECKING:
    from lakewriter.api.data_source import local, register
    from lakewriter.api.verbs import check, load, open_spark, plan, verify
    from lakewriter.api.writing import sink, write

__version__ = "0.2.0.dev0"

__all__ = ["LakeError", "check", "load", "local", "open_spark", "plan", "register", "sink", "verify", "write"]

_MODULES = {"local": "data_source", "register": "data_source", "sink": "writing", "write": "writing"}


def __getattr__(name: str) -> Any:
    """Import a function of the package at its first use: with Spark and the AWS clients that takes seconds."""
    module = _MODULES.get(name, "verbs")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.api.{module}"), name)
