"""What pyproject.toml cannot say: the dashboard's app.py, pages and settings and the pages of docs/, which
are at the top of a checkout, are below `vlprobe/` in a wheel.
"""

from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DOCUMENTATION = ("docs/**/*.md", "docs/pictures/*.webp")
APPLICATION = ("app.py", "pages/*.py", ".streamlit/config.toml", *DOCUMENTATION)
BELOW = Path("vlprobe", "dashboard", "app")


class BuildWithApplication(build_py):
    """Builds the package, with the application's files below it."""

    def run(self) -> None:
        """Copies them, unless the package is used where its sources are."""
        super().run()
        if not self.editable_mode:
            for source, target in self._files():
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Their files in the wheel, too."""
        return [
            *super().get_outputs(include_bytecode),
            *(str(target) for _, target in self._files()),
        ]

    def get_source_files(self) -> list[str]:
        """Their files in the source distribution, too."""
        return [*super().get_source_files(), *(str(source) for source, _ in self._files())]

    def _files(self) -> Iterator[tuple[Path, Path]]:
        for pattern in APPLICATION:
            for source in sorted(Path().glob(pattern)):
                yield source, Path(self.build_lib) / BELOW / source


setup(cmdclass={"build_py": BuildWithApplication})
