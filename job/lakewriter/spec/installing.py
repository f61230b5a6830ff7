"""Name the commands that install the package, and the Spark of its tests: the one place that a release changes."""

from typing import Final

COMMAND: Final = "pip install '.[{extra}]' in a clone, or 'FILE.whl[{extra}]' of a wheel"
"""No index has the package yet."""
TESTED_SPARK: Final = "4.1.1"
"""The pin of requirements.txt. A wheel takes later ones of 4.1 too."""
TESTED_RELEASE: Final = "emr-spark-8.1"
"""The line of EMR releases with a Spark of the same minor version."""


def describe_install(extra: str) -> str:
    """Return the commands that install the package with an extra."""
    return COMMAND.format(extra=extra)


def describe_other_spark(version: str) -> str:
    """Say that tests ran with another Spark; blank for that one, and Amazon's build (``4.1.1-amzn-0``)."""
    if version.partition("-")[0] == TESTED_SPARK:
        return ""
    return f"this is Spark {version}; tests run with Spark {TESTED_SPARK}, for EMR's {TESTED_RELEASE}."
