"""Installation: every command to install works from a checkout, since nothing is published."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from cerata.engine.late import install_command

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".cfg", ".jinja2", ".json", ".md", ".py", ".pyi", ".toml", ".txt", ".yaml", ".yml", ""}

# In parts, so that this file names no registry either.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "com"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("anaconda", "org"),
        ("rubygems", "org"),
        ("hub", "docker", "com"),
        ("docker", "io"),
        ("ghcr", "io"),
    )
]
PUBLISHED = "pip install .*cerata" + r"(?:\[|['\"\s`]|$)"


def texts() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each line of the project."""
    for top in sorted(ROOT.iterdir()):
        if top.is_symlink() or (top.name.startswith(".") and top.name != ".ci"):
            continue
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            parts = path.relative_to(ROOT).parts
            if not path.is_file() or path.suffix not in SUFFIXES or "__pycache__" in parts:
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            for number, line in enumerate(text.splitlines(), 1):
                yield f"{path.relative_to(ROOT)}:{number}", line


def test_no_line_names_a_registry_or_a_published_package() -> None:
    """14 places told users to install a package that no registry has; one linked its page."""
    hosts = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, REGISTRIES))})\b")
    published = re.compile(PUBLISHED)
    lines = list(texts())
    assert len(lines) > 100_000
    assert [place for place, line in lines if hosts.search(line)] == []
    assert [
        place
        for place, line in lines
        if published.search(line) and not place.startswith("tests/test_install.py")
    ] == []


def test_a_published_package_is_found() -> None:
    """The rule above, seen failing."""
    assert re.search(PUBLISHED, "pip install 'cerata[minilm]'")
    assert re.search(PUBLISHED, "pip install cerata")
    assert not re.search(PUBLISHED, install_command("minilm"))


def test_every_extra_that_a_remedy_or_a_page_names_exists() -> None:
    """A wrong name installs nothing, with a warning only."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    named = set[str]()
    for _, line in texts():
        for names in re.findall(r"pip install (?:--\S+ )*'\.\[([\w,-]+)\]'", line):
            named |= set(names.split(","))
        named |= set(re.findall(r"install_command\(['\"]([\w-]+)['\"]\)", line))
    assert len(named) >= 12
    assert named <= extras | {"plot"}


PLUGIN = """
import warnings

import pytest


def pytest_configure():
    warnings.warn(pytest.PytestDeprecationWarning("The option pytest_of_others is unset."))
"""


def test_pytest_starts_beside_a_plugin_that_warns(tmp_path: Path) -> None:
    """pytest-asyncio warns of its own option while pytest starts, and warnings are errors."""
    (tmp_path / "pytest_of_others.py").write_text(PLUGIN)
    test = "tests/test_install.py::test_a_published_package_is_found"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "pytest_of_others", test],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout
