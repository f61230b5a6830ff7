"""Java as the tests start it: with less work before it begins, which is most of what a short load does.

The classes that Spark loads come from an archive, made once and kept in ``build``: a session then starts in about half
the time. https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

import fcntl
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from lakewriter.source.class_archive import VARIABLE, choose_archive
from lakewriter.source.java import find_java

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "java"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SILENT = "-Xlog:disable -Xlog:all=error:stderr"


@cache
def options() -> str:
    """For ``JDK_JAVA_OPTIONS``; without the archive where this Java cannot make one."""
    environment = os.environ | {VARIABLE: str(FOLDER)}
    archive = choose_archive(find_java(os.environ), environment)
    if archive is None:
        return QUICK
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    tried = FOLDER / f"{archive.key}.tried"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tried.exists():
            command = [sys.executable, "-m", "lakewriter.source.archive_maker", str(FOLDER), archive.key]
            subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True)
            tried.touch()
    found = archive.find()
    return f"{QUICK} {_SILENT} -XX:SharedArchiveFile={found}" if found is not None else QUICK
