"""Keep an archive of the classes that Spark loads: Java maps it into memory, and a local session starts sooner.

https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

import atexit
import os
import shlex
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyspark

from lakewriter.source.java import read_version

VARIABLE: Final = "LAKEWRITER_CLASS_ARCHIVE"
"""Names another folder for the archive, or is ``off``."""
_QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
"""Without these options Java reports on standard output that it does not use an archive."""

_OPTIONS: Final = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS")
_SHARING: Final = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "SharedClassListFile")
_CLASS_PATH: Final = ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
_VERSIONS: Final = range(17, 25)
"""From 25 on Java has caches of another kind, and logs them under other names."""
_RETRY_SECONDS: Final = 24 * 3600
"""After a failure, loads wait this long before they try again to make the archive."""
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Java, one Spark and one class path, in a folder that only the user may write."""

    folder: Path
    key: str

    @property
    def lock(self) -> Path:
        """The file that the maker of the archive locks. Its time is that of the last attempt."""
        return self.folder / f"{self.key}.lock"

    def find(self) -> Path | None:
        """Return the archive if it is whole. Java does not check its content, so the name holds its checksum."""
        with suppress(OSError):
            for path in self.folder.glob(f"{self.key}-*.jsa") if _is_private(self.folder) else ():
                if path.name == make_name(self.key, path):
                    os.utime(path)
                    return path
                path.unlink()
        return None

    def start_maker(self) -> None:
        """Make the archive in a process of its own, for which nothing waits."""
        with suppress(OSError):
            if self._is_tried() or not _is_writable(self.folder):
                return
            path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
            subprocess.Popen(
                [sys.executable, "-m", "lakewriter.source.archive_maker", str(self.folder), self.key],
                env=os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def _is_tried(self) -> bool:
        try:
            return time.time() - self.lock.stat().st_mtime < _RETRY_SECONDS
        except FileNotFoundError:
            return False


def choose_archive(java: Path, environment: Mapping[str, str]) -> ClassArchive | None:
    """Return the archive for this Java and this Spark; None if the user wants none or names another one."""
    chosen = environment.get(VARIABLE, "")
    given = " ".join(environment.get(name, "") for name in _OPTIONS)
    if chosen == "off" or any(option in given for option in _SHARING) or read_version(java) not in _VERSIONS:
        return None
    folder = Path(chosen) if chosen else _find_cache(environment)
    return ClassArchive(folder, _make_key(java, environment)) if folder is not None else None


def find_archive(java: Path, environment: Mapping[str, str]) -> tuple[Path | None, str]:
    """Return the archive and Java's options for it. If there is none yet, make it after this process has ended."""
    archive = choose_archive(java, environment)
    if archive is None:
        return None, ""
    if path := archive.find():
        return path, f"-XX:SharedArchiveFile={shlex.quote(str(path))} {_QUIET}"
    atexit.register(archive.start_maker)
    return None, ""


def make_name(key: str, path: Path) -> str:
    """Return the name of the archive in the file at ``path``."""
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return f"{key}-{checksum:08x}-{path.stat().st_size}.jsa"


def _find_cache(environment: Mapping[str, str]) -> Path | None:
    home = Path(environment.get("HOME", ""))
    if not home.is_absolute():
        return None
    system_cache = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return Path(environment.get("XDG_CACHE_HOME") or system_cache) / "lakewriter" / "java"


def _make_key(java: Path, environment: Mapping[str, str]) -> str:
    """Return a key that differs wherever Java would refuse the archive: Java compares its build, and the path and time
    of each jar.
    """
    real = java.resolve()
    spark = Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    parts = [str(real), pyspark.__version__, *(environment.get(name, "") for name in _CLASS_PATH)]
    with suppress(OSError):
        parts.append((real.parents[1] / "release").read_text("utf-8", errors="replace"))
    with suppress(OSError):
        jars = sorted(os.scandir(spark / "jars"), key=lambda jar: jar.name)
        parts += [f"{jar.path} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def _is_private(folder: Path) -> bool:
    """Return True if nobody else can put an archive there: Java runs the code in it."""
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _is_writable(folder: Path) -> bool:
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    return there is not None and os.access(there, os.W_OK)
