"""Put the documentation into the package, and the stacks beside it as ``lakewriter_infra``."""

import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
DOCS = ROOT / "docs"
STACKS = ["lakewriter_infra", *(f"lakewriter_infra.{name}" for name in find_packages("infra"))]
IMPORT = re.compile(r"^(\s*(?:from|import) )infra\b", re.MULTILINE)


class BuildWhole(build_py):
    """Copy the pages into what is built; a clone that is installed in place reads them where they are."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for page in DOCS.rglob("*.md"):
                to = Path(self.build_lib, "lakewriter", "docs", page.relative_to(DOCS))
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(page, to)
            self._name_stacks(Path(self.build_lib, "lakewriter_infra"))

    def _name_stacks(self, package: Path) -> None:
        """Let the stacks' modules import each other by a name that no app of somebody's own has, as many have infra/.

        cdk.json has the CDK's feature flags, which the stacks are written for.
        """
        for path in package.rglob("*.py"):
            path.write_text(IMPORT.sub(r"\1lakewriter_infra", path.read_text("utf-8")), "utf-8")
        shutil.copyfile(ROOT / "cdk.json", package / "cdk.json")


setup(
    packages=[*find_packages("job"), *STACKS],
    package_dir={"": "job", "lakewriter_infra": "infra"},
    cmdclass={"build_py": BuildWhole},
)
