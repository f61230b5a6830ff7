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
from collections.abc import Iterator, Mapping
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
"""Java tells on standard output of an archive that it does not use."""

_OPTIONS: Final = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JAVA_OPTS")
_SHARING: Final = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "SharedClassListFile")
_CLASS_PATH: Final = ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
_VERSIONS: Final = range(17, 25)
"""Since 25 Java has caches of another kind, and other names for what it logs of them."""
_RETRY_SECONDS: Final = 24 * 3600
"""An archive that could not be made is not tried again with every load."""
_CHUNK: Final = 1 << 20


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Java, one Spark and one class path, in a folder that is the user's alone."""

    folder: Path
    key: str

    @property
    def lock(self) -> Path:
        """Held by the process that makes the archive; its time is that of the last attempt."""
        return self.folder / f"{self.key}.lock"

    def find(self) -> Path | None:
        """The archive where it is whole. Java does not look at its content, so its name has its checksum."""
        with suppress(OSError):
            for path in self.list_files() if _is_private(self.folder) else ():
                if path.name == make_name(self.key, path):
                    os.utime(path)
                    return path
                path.unlink()
        return None

    def list_files(self) -> Iterator[Path]:
        return self.folder.glob(f"{self.key}-*.jsa")

    def make_later(self) -> None:
        """Make it once this process has ended, in one of its own that nobody waits for."""
        atexit.register(self._start_maker)

    def _start_maker(self) -> None:
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
    """The archive for this Java and this Spark; None where the user wants none, or has said which."""
    chosen = environment.get(VARIABLE, "")
    given = " ".join(environment.get(name, "") for name in _OPTIONS)
    if chosen == "off" or any(option in given for option in _SHARING) or read_version(java) not in _VERSIONS:
        return None
    folder = Path(chosen) if chosen else _find_cache(environment)
    return ClassArchive(folder, _make_key(java, environment)) if folder is not None else None


def find_archive(java: Path, environment: Mapping[str, str]) -> tuple[Path | None, str]:
    """The archive and Java's options for it; where there is none yet, it is made when this process has ended."""
    archive = choose_archive(java, environment)
    if archive is None:
        return None, ""
    if found := archive.find():
        return found, f"-XX:SharedArchiveFile={shlex.quote(str(found))} {_QUIET}"
    archive.make_later()
    return None, ""


def make_name(key: str, path: Path) -> str:
    """The name of the archive in the file at ``path``."""
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return f"{key}-{checksum:08x}-{path.stat().st_size}.jsa"


def _find_cache(environment: Mapping[str, str]) -> Path | None:
    home = Path(environment.get("HOME", ""))
    if not home.is_absolute():
        return None
    own = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return Path(environment.get("XDG_CACHE_HOME") or own) / "lakewriter" / "java"


def _make_key(java: Path, environment: Mapping[str, str]) -> str:
    """Differs wherever Java would refuse the archive: it compares its own build, and path and time of each jar."""
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
    """Whether nobody else can put an archive there: Java runs what is in it."""
    found = folder.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _is_writable(folder: Path) -> bool:
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    return there is not None and os.access(there, os.W_OK)
