"""The stacks, the bundle and the review of one stage; in the wheel this package is called ``lakewriter_infra``."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

# requirements.txt pins what a deployment needs and installs no lakewriter, which lies beside this folder, in job/.
# First on the path, so that stacks and bundle come from one tree whichever release is installed besides.
_JOB = Path(__file__).resolve().parents[1] / "job"
if _JOB.is_dir():
    sys.path.insert(0, str(_JOB))

_PUBLIC = ("LakewriterDestination", "LakewriterPipeline")


def __getattr__(name: str) -> Any:
    """Import a construct at its first use: aws_cdk starts node when it is imported."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.library"), name)
