"""Put the documentation into the package: it lies beside the package's folder, where people read it."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DOCS = Path(__file__).parent / "docs"


class BuildWithDocs(build_py):
    """Copy the pages into what is built; a clone that is installed in place reads them where they are."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for page in DOCS.rglob("*.md"):
                to = Path(self.build_lib, "lakewriter", "docs", page.relative_to(DOCS))
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(page, to)


setup(cmdclass={"build_py": BuildWithDocs})
