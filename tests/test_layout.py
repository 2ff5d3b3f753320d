"""The house: its folders, the lists that name them, and what each room may touch.

Several tools pass in silence when a folder is missing from their list, so the lists are compared
here with the tree. The rules on imports and side effects are read from the syntax tree; each has a
test that shows it catching a planted fault.
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FRONT_DOOR = ROOT / "cerata"
FRONT_FILES = [
    "cerata/__init__.py",
    "cerata/__init__.pyi",
    "cerata/__main__.py",
    "cerata/events.py",
    "cerata/py.typed",
]
OTHER_FOLDERS = {"cerata", "tests", "benchmarks", "examples", "tools", "build", "dist", "docs"}
SHIPPED_BESIDES_CODE = {"docs"}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def links() -> dict[str, Path]:
    return {entry.name: entry for entry in FRONT_DOOR.iterdir() if entry.is_symlink()}


def rooms() -> set[str]:
    """Return the top-level folders that hold code."""
    return {
        entry.name
        for entry in ROOT.iterdir()
        if entry.is_dir()
        and not entry.name.startswith((".", "_"))
        and entry.name not in OTHER_FOLDERS
        and any(entry.rglob("*.py"))
    }


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


# --- the lists -----------------------------------------------------------------------------------


def test_every_room_has_a_link_and_every_link_a_room() -> None:
    """Python, pytest and the type checkers see a room only through its link."""
    assert len(rooms()) >= 7
    assert set(links()) == rooms() | SHIPPED_BESIDES_CODE


def test_links_are_relative_and_resolve() -> None:
    """An absolute link works on one machine only."""
    assert links()
    for name, link in links().items():
        assert link.readlink() == Path("..") / name
        assert link.resolve(strict=True) == ROOT / name


def test_front_door_holds_nothing_but_itself() -> None:
    """A file put into cerata/ by habit would be in no wheel."""
    ignored = {"__pycache__"}
    found = {entry.name for entry in FRONT_DOOR.iterdir() if not entry.is_symlink()} - ignored
    assert found == {Path(name).name for name in FRONT_FILES}


def test_every_room_says_what_it_is_for() -> None:
    """The docstring of a room is where a newcomer starts."""
    for room in sorted(rooms()):
        init = ROOT / room / "__init__.py"
        assert init.is_file(), f"{room}/ has no __init__.py"
        assert ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))), init


def test_wheel_is_built_from_every_room() -> None:
    """A room missing from one list is missing from the wheel, with exit code 0."""
    wheel = project()["tool"]["hatch"]["build"]["targets"]["wheel"]
    shipped = rooms() | SHIPPED_BESIDES_CODE
    assert sorted(wheel["only-include"]) == sorted([*FRONT_FILES, *shipped])
    assert wheel["sources"] == {room: f"cerata/{room}" for room in shipped}


def test_sdist_holds_every_room_and_no_link() -> None:
    """An sdist that includes cerata/ whole builds a wheel of three files."""
    included = project()["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    assert set(included) >= {*FRONT_FILES, *rooms(), *SHIPPED_BESIDES_CODE, "tests", "tools"}
    assert "cerata" not in included
    for name in included:
        assert (ROOT / name).exists(), f"{name} is listed but not there"


def test_type_checkers_are_given_every_room() -> None:
    """Pyright does not descend into links by itself, and reports no errors in what it skips."""
    tool = project()["tool"]
    code = [folder for folder in ("benchmarks", "examples", "tools") if sources(folder)]
    assert sorted(tool["mypy"]["files"]) == sorted(["cerata", "tests", *code])
    assert sorted(tool["pyright"]["include"]) == sorted(
        [
            "cerata/__init__.pyi",
            "cerata/__main__.py",
            "cerata/events.py",
            *(f"cerata/{room}" for room in rooms()),
            "tests",
            *code,
        ]
    )


def test_coverage_measures_every_room() -> None:
    """Coverage drops paths behind links, so it is given the real folders."""
    assert set(project()["tool"]["coverage"]["run"]["source"]) == {"cerata", *rooms()}


def test_import_rules_order_every_room() -> None:
    """A room outside the layers could import anything."""
    layers = project()["tool"]["importlinter"]["contracts"][0]["layers"]
    assert sorted(layers) == sorted(rooms())


PARTS_FOR_USERS = (
    "command.pack",
    "command.verbs",
    "crash_test",
    "pytest_plugin",
    "stories.workload",
    "strategies",
    "testing",
)
"""The modules of fault_injection/ that a user imports or runs."""


def test_the_wheel_leaves_out_what_no_user_can_reach() -> None:
    """A part of fault_injection/ that only a checkout runs belongs to tests/crash."""
    modules = modules_of("fault_injection")
    waiting = [f"cerata.fault_injection.{name}" for name in PARTS_FOR_USERS]
    reached: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module in modules and module not in reached:
            reached.add(module)
            waiting += [module.rpartition(".")[0], *imported_modules(modules[module], modules)]
    assert modules.keys() - reached == set()


# --- imports point down --------------------------------------------------------------------------


def imported(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute module name) for each import of a module inside ``package``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"


def upward_imports(text: str, package: str, layers: list[str]) -> list[str]:
    """Return what ``text``, a module of ``package`` (``cerata.engine…``), must not import."""
    room = package.split(".")[1]
    allowed = set(layers[layers.index(room) :])
    at_the_top = room == layers[0]
    faults: list[str] = []
    for line, name in imported(ast.parse(text), package):
        head, *rest = name.split(".")
        if head in layers:
            faults.append(f"line {line}: {name} skips the front door's name, say cerata.{name}")
        elif at_the_top or head != "cerata" or name in FRONT_NAMES:
            continue  # the top room may use the front door, as a user does
        elif not rest or rest[0] not in allowed:
            faults.append(f"line {line}: {room} must not import {name}")
    return faults


FRONT_NAMES = {"cerata.__version__"}
"""What a room may take from the front door itself."""


def layers_from_the_top() -> list[str]:
    return list(project()["tool"]["importlinter"]["contracts"][0]["layers"])


def package_of(path: Path) -> str:
    return ".".join(["cerata", *path.relative_to(ROOT).parent.parts])


@pytest.mark.parametrize("room", sorted(rooms()))
def test_no_import_points_up(room: str) -> None:
    """Rooms use only rooms below; the front door is for users."""
    checked = sources(room)
    assert checked
    layers = layers_from_the_top()
    faults = {
        str(path): found
        for path in checked
        if (found := upward_imports(path.read_text(encoding="utf-8"), package_of(path), layers))
    }
    assert faults == {}


@pytest.mark.parametrize(
    "line",
    [
        "from cerata.memory import Store",
        "import cerata.fault_injection.simulation.disk",
        "from cerata import open",
        "import cerata",
        "from ..memory import Store",
        "from engine import Log",
        "def late():\n    from cerata.replay import view",
    ],
)
def test_an_import_that_points_up_is_caught(line: str) -> None:
    """The rule above, seen failing."""
    assert upward_imports(line, "cerata.engine", layers_from_the_top())


@pytest.mark.parametrize(
    "line", ["from .ring import Ring", "from cerata.engine import Log", "import numpy as np"]
)
def test_an_import_that_points_down_is_fine(line: str) -> None:
    """The rule above, seen passing."""
    assert upward_imports(line, "cerata.projections", layers_from_the_top()) == []


def modules_of(*rooms: str) -> dict[str, Path]:
    """Return the path of each module, by its absolute name; a package is its ``__init__``."""
    return {
        ".".join([package_of(path), path.stem]).removesuffix(".__init__"): path
        for path in sources(*rooms)
    }


def imported_modules(path: Path, modules: dict[str, Path]) -> set[str]:
    """Return those of ``modules`` that a file imports anywhere: in functions, or for types only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {name for _, name in imported(tree, package_of(path))}
    names = {name if name in modules else name.rpartition(".")[0] for name in names}
    return names & set(modules)


def import_graph(room: str) -> dict[str, set[str]]:
    """Return the modules that each module of a room imports, itself left out."""
    modules = modules_of(room)
    return {name: imported_modules(path, modules) - {name} for name, path in modules.items()}


def circle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the names of a circle, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


@pytest.mark.parametrize("room", sorted(rooms()))
def test_no_import_circle(room: str) -> None:
    """Modules of a circle can only be read, tested and moved together."""
    graph = import_graph(room)
    assert any(graph.values())
    assert circle_in(graph) == []


FLAT = {"cli", "engine"}
"""Rooms whose folders take errors and values from the room itself, which takes them back."""


@pytest.mark.parametrize("room", sorted(set(rooms()) - FLAT))
def test_no_circle_of_sub_rooms(room: str) -> None:
    """A package whose modules are all below or all above another one's can be read by itself."""
    packages = {name: package_of(path) for name, path in modules_of(room).items()}
    graph: dict[str, set[str]] = {package: set() for package in packages.values()}
    for name, imports in import_graph(room).items():
        graph[packages[name]] |= {packages[other] for other in imports} - {packages[name]}
    assert circle_in(graph) == []


def test_a_circle_is_found() -> None:
    """The rules above, seen failing."""
    assert set(circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "line",
    [
        "from .log import Log",
        "from . import log",
        "def late():\n    from cerata.engine.log import Log",
        "if TYPE_CHECKING:\n    from cerata.engine.log import Log",
    ],
)
def test_an_import_in_any_place_is_an_edge(line: str) -> None:
    """An import for types or inside a function closes a circle like any other."""
    tree = ast.parse(line)
    names = {name for _, name in imported(tree, "cerata.engine")}
    assert names & {"cerata.engine.log", "cerata.engine.log.Log"}


FILES_MAX = 25


def test_no_folder_is_too_full_to_survey() -> None:
    """A newcomer finds a file by the names of few folders and few files."""
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in sources(*rooms()))
    assert {folder for folder, count in counts.items() if count > FILES_MAX} == set()


KERNEL = ("engine", "projections", "replay", "retrieval", "memory", "aio", "cli", "cerata")
"""Rooms that name no feature; the other rooms hold packs."""

KERNEL_MAX = (414, 88_250)
"""Files and lines of the kernel, which only fall."""

PRODUCT_MAX = (634, 126_850)
"""Files and lines of all rooms; a commit that brings a pack raises them, and says so."""


def sizes(folders: Iterable[str]) -> tuple[int, int]:
    """Return the number of files of Python in some folders, and of their lines."""
    paths = [path for folder in folders for path in sources(folder) if not path.is_symlink()]
    return len(paths), sum(path.read_bytes().count(b"\n") for path in paths)


@pytest.mark.parametrize(
    ("folders", "bounds"), [(KERNEL, KERNEL_MAX), ({*rooms(), "cerata"}, PRODUCT_MAX)]
)
def test_no_room_grows_unseen(folders: Iterable[str], bounds: tuple[int, int]) -> None:
    """A commit adds a few lines for a good reason; after a hundred no reader knows the whole."""
    files, lines = sizes(folders)
    assert files > 100
    assert (files <= bounds[0], lines <= bounds[1]) == (True, True), (files, lines)


LAYOUT_MAY_USE = {"disk", "errors", "integrity", "limits"}
"""What engine/format takes from the engine: nothing that reads or writes a file."""


def test_the_byte_layout_knows_no_reader_and_no_writer() -> None:
    """Reader, writer and format stand apart and share only the format."""
    checked = sources("engine/format")
    assert checked
    used = {
        name.split(".")[2]
        for path in checked
        for _, name in imported(ast.parse(path.read_text(encoding="utf-8")), package_of(path))
        if name.startswith("cerata.engine.") and not name.startswith("cerata.engine.format")
    }
    assert used <= LAYOUT_MAY_USE
    assert "errors" in used


# --- docstrings name what exists ------------------------------------------------------------------


def unknown_names(text: str, path: Path) -> list[str]:
    """Return the names in parentheses in the docstring of a module that name nothing.

    A bare name is that of a module or package beside ``path``, that of a module in the room's own
    folder, or of a definition or import in ``text``. A dotted name is a path below the room, or
    from ``cerata`` on.
    """
    tree = ast.parse(text)
    groups = re.findall(r"\(([^()]*)\)", ast.get_docstring(tree) or "")
    defined = {
        node.asname or node.name if isinstance(node, ast.alias) else node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.alias | ast.ClassDef | ast.FunctionDef)
    }
    room = ROOT / path.relative_to(ROOT).parts[0]

    def is_known(name: str) -> bool:
        head, *rest = name.split(".")
        place = ROOT.joinpath(*rest) if head == "cerata" else room.joinpath(head, *rest)
        beside = path.parent / name
        modules = [place.with_suffix(".py"), beside.with_suffix(".py")]
        package = place if rest else beside
        return name in defined or package.is_dir() or any(module.is_file() for module in modules)

    names = [name for group in groups for name in re.findall(r"(?<!`)`([a-z0-9_.]+)`(?!`)", group)]
    return [name for name in names if not is_known(name)]


def test_docstrings_name_modules_that_exist() -> None:
    """A reader follows "Leaves out ranking (`bm25`)" to a file."""
    faults = {
        path.relative_to(ROOT).as_posix(): unknown
        for path in sources(*rooms())
        if (unknown := unknown_names(path.read_text(encoding="utf-8"), path))
    }
    assert faults == {}


@pytest.mark.parametrize(
    ("docstring", "unknown"),
    [
        ("Leaves out bytes (`log`, `gone`).", ["gone"]),
        ("Leaves out bytes (`format.gone`).", ["format.gone"]),
        ("Leaves out folds (`projections`).", ["projections"]),
        ("Leaves out\npages (`format.page`), `gone`, folds (`cerata.projections`), ``(a)``.", []),
        ("Owns the call (`pack`, `Pack`), leaves out `items` (`items`).", ["items"]),
    ],
)
def test_a_docstring_that_names_no_module_is_caught(docstring: str, unknown: list[str]) -> None:
    """The rule above, seen failing and passing."""
    text = f'"""{docstring}"""\ndef pack(items: bytes) -> None: ...\n'
    assert unknown_names(text, ROOT / "engine" / "planted.py") == unknown


# --- side effects have one door ------------------------------------------------------------------

NEVER_MODULES = {"pickle", "marshal", "shelve", "mmap", "dill", "cloudpickle"}
NEVER_CALLS = {"eval", "exec", "lockf", "load", "fromfile", "memmap"}
"""``load`` is judged by its owner: np.load unpickles, json.load does not."""

FILE_MODULES = {
    "fcntl", "glob", "http", "multiprocessing", "requests", "shutil", "signal", "socket", "sqlite3",
    "subprocess", "tempfile", "urllib",
}  # fmt: skip
CLOCK_MODULES = {"random", "secrets", "time", "uuid"}
FILE_METHODS = {
    "exists", "glob", "is_dir", "is_file", "iterdir", "mkdir", "read_bytes", "read_text",
    "rglob", "rmdir", "stat", "symlink_to", "tofile", "write_bytes", "write_text",
}  # fmt: skip
CLOCK_METHODS = {"default_rng", "now", "today", "urandom", "utcnow"}
PURE_OS = {"PathLike", "cpu_count", "fsencode", "fsdecode", "fspath", "getpid", "path",
           "process_cpu_count", "register_at_fork", "sep", "strerror"}  # fmt: skip
PURE_OS_PATH = {"abspath", "basename", "dirname", "isabs", "join", "normpath", "split", "splitext"}

MAY_TOUCH = {
    "engine/disk/storage.py": {"files"},
    "engine/disk/environment.py": {"files", "clock"},
    # The reports of the system, for the storage.
    "engine/disk/inotify.py": {"files"},
    "cli": {"files", "clock"},
    "fault_injection": {"files", "clock"},
    # It runs the engine's own source with one line changed, to show that the fault is found.
    "fault_injection/mutation/mutate.py": {"code"},
    # remember(path) reads the user's own file; nothing of the store is touched there.
    "memory/ingest/document.py": {"files"},
    # remember_files lists the user's own folders.
    "memory/ingest/discovery.py": {"files"},
    # export_events and import_events write and read the file of lines that the caller names; so are
    # other files made from a memory.
    "memory/interchange/line_files.py": {"files"},
    # load_memory reads the user's own file of declarations.
    "agents/spec_yaml.py": {"files"},
    # It asks a server over the network, and waits before it asks again; tests give it the waits.
    "retrieval/embedders/endpoint.py": {"files", "clock"},
    # The bootstrap's draws have a fixed seed, so equal scores have equal intervals.
    "packs/tuning/learning.py": {"clock"},
    # What its own package and another one installed: a vocabulary, a model.
    "retrieval/embedders/minilm.py": {"files"},
    "retrieval/embedders/static.py": {"files"},
    "retrieval/embedders/wordpiece.py": {"files"},
    "retrieval/tokenizer.py": {"files"},
    # The data file of its own package.
    "agents/turns/lexicon.py": {"files"},
    # export --archive writes the days into the folder that the caller names.
    "agents/verbs/archive.py": {"files"},
    # Parsers of HTML and PDF run in a child under limits, on bytes that were read; no file is.
    "memory/ingest/formats/sandbox.py": {"files"},
    "memory/ingest/formats/sandbox_child.py": {"files"},
    # Importers read the files of other memories that the caller names.
    "integrations/importers/sqlite_files.py": {"files"},
    "integrations/importers/sqlite_limits.py": {"files"},
    "integrations/importers/json_lines.py": {"files"},
    # Chroma's client opens a temporary copy.
    "integrations/importers/chroma.py": {"files"},
    # A server reads and writes the protocol's streams, and ends with its client or by a signal.
    "integrations/mcp/stdio.py": {"files"},
    "integrations/mcp/shutdown.py": {"files", "clock"},
    "integrations/mcp/http.py": {"files"},
    "integrations/mcp/verbs.py": {"files"},
    # Workers of a rebuild only read; the caller writes their chunks through the storage, and the
    # result is that of a rebuild without them. Only a store on real files has workers.
    "replay/range_worker.py": {"files"},
    "replay/range_workers.py": {"files"},
}
"""Who may touch what: the storage, the clock and dice, the command line and the simulator."""


def side_effects(text: str) -> list[tuple[str, str]]:
    """Return (kind, place) of all that ``text`` touches; kinds are those of MAY_TOUCH and never."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(text)):
        kind = _effect_of(node)
        if kind is not None:
            found.append((kind, f"line {getattr(node, 'lineno', 0)}: {ast.unparse(node)}"))
    return found


def _effect_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import):
        kinds = [_module_effect(alias.name) for alias in node.names]
        return next((kind for kind in kinds if kind), None)
    if isinstance(node, ast.ImportFrom):
        return _from_effect(node)
    if isinstance(node, ast.Call):
        return _call_effect(node.func)
    if isinstance(node, ast.Attribute):
        return _attribute_effect(node)
    return None


def _module_effect(module: str) -> str | None:
    head = module.partition(".")[0]
    if head in NEVER_MODULES:
        return "never"
    if head in FILE_MODULES:
        return "files"
    return "clock" if head in CLOCK_MODULES else None


def _from_effect(node: ast.ImportFrom) -> str | None:
    module = node.module or ""
    names = {alias.name for alias in node.names}
    if module in {"os", "io"} and names - PURE_OS - {"BytesIO", "StringIO"}:
        return "files"
    if module == "os.path" and names - PURE_OS_PATH:
        return "files"
    return None if node.level else _module_effect(module)


def _call_effect(function: ast.expr) -> str | None:
    if isinstance(function, ast.Name):
        if function.id in {"eval", "__import__"}:
            return "never"
        if function.id == "exec":
            return "code"
        return "files" if function.id == "open" else None
    if not isinstance(function, ast.Attribute):
        return None
    name, owner = function.attr, ast.unparse(function.value)
    if name in NEVER_CALLS and (owner in {"np", "numpy"} or name == "lockf"):
        return "never"
    if name == "open" and owner in {"io", "os", "Path", "pathlib.Path"}:
        return "files"
    if name in FILE_METHODS:
        return "files"
    if name == "now" and "clock" in owner:  # an injected clock is the point of the rule
        return None
    return "clock" if name in CLOCK_METHODS else None


def _attribute_effect(node: ast.Attribute) -> str | None:
    owner = ast.unparse(node.value)
    if owner == "os" and node.attr not in PURE_OS:
        return "files"
    if owner == "os.path" and node.attr not in PURE_OS_PATH:
        return "files"
    return None


def permitted(path: Path) -> set[str]:
    place = path.relative_to(ROOT)
    return MAY_TOUCH.get(place.as_posix(), set()) | MAY_TOUCH.get(place.parts[0], set())


@pytest.mark.parametrize("room", sorted(rooms()))
def test_side_effects_have_one_door(room: str) -> None:
    """What bypasses the environment object cannot be simulated, crashed or replayed."""
    checked = sources(room)
    assert checked
    faults = [
        f"{path.relative_to(ROOT)} {place} ({kind})"
        for path in checked
        for kind, place in side_effects(path.read_text(encoding="utf-8"))
        if kind not in permitted(path)
    ]
    assert faults == []


def test_the_doors_are_where_they_are_said_to_be() -> None:
    """If the real storage moved, the rule above would guard an empty room."""
    kinds = {
        name: {kind for kind, _ in side_effects((ROOT / name).read_text(encoding="utf-8"))}
        for name in ("engine/disk/storage.py", "engine/disk/environment.py")
    }
    assert kinds == {
        "engine/disk/storage.py": {"files"},
        "engine/disk/environment.py": {"files", "clock"},
    }


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("import pickle", "never"),
        ("from mmap import mmap", "never"),
        ("eval('1')", "never"),
        ("exec('1')", "code"),
        ("np.load('x')", "never"),
        ("fcntl.lockf(1, 2)", "never"),
        ("open('x')", "files"),
        ("import subprocess", "files"),
        ("from os import open", "files"),
        ("os.unlink('x')", "files"),
        ("os.path.exists('x')", "files"),
        ("Path('x').read_text()", "files"),
        ("import time", "clock"),
        ("from random import random", "clock"),
        ("datetime.now(UTC)", "clock"),
        ("np.random.default_rng()", "clock"),
    ],
)
def test_a_side_effect_is_caught(line: str, kind: str) -> None:
    """The rule above, seen failing."""
    assert kind in {found for found, _ in side_effects(line)}


@pytest.mark.parametrize(
    "line",
    [
        "import os\nos.fspath(path)",
        "json.loads(text)",
        "storage.open(path, mode='r')",
        "environment.clock.now_us()",
        "from io import BytesIO",
    ],
)
def test_pure_code_is_left_alone(line: str) -> None:
    """The rule above, seen passing."""
    assert side_effects(line) == []


IN_A_CHILD = (
    "memory/ingest/formats/html.py",
    "memory/ingest/formats/pdf.py",
    "memory/ingest/formats/sandbox_child.py",
)
"""Parsers run in a process of their own, whose failure is one answer: it cannot be read."""

USER_CHOSEN = ("retrieval/embedders/minilm.py", "retrieval/embedders/sentence_transformers.py")
"""Models are loaded inside an embedder, all of whose errors become `EmbedderFailed`."""


def bare_imports(text: str) -> list[str]:
    """Return the imports inside functions that no ``with loading(…)`` guards."""
    found: list[str] = []

    def visit(node: ast.AST, *, is_late: bool) -> None:
        if isinstance(node, ast.With) and ast.unparse(node.items[0]).startswith("loading("):
            return
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if is_late and (isinstance(node, ast.Import | ast.ImportFrom) or "import_module" in name):
            found.append(f"line {getattr(node, 'lineno', 0)}: {ast.unparse(node)}")
        for child in ast.iter_child_nodes(node):
            visit(child, is_late=is_late or isinstance(node, ast.FunctionDef))

    visit(ast.parse(text), is_late=False)
    return found


@pytest.mark.parametrize("room", ["engine", "projections", "replay", "retrieval", "memory"])
def test_a_late_import_says_what_the_system_refused(room: str) -> None:
    """Without a free descriptor an import fails with OSError, or as if nothing were installed."""
    faults = [
        f"{path.relative_to(ROOT)} {place}"
        for path in sources(room)
        if path.relative_to(ROOT).as_posix() not in (*IN_A_CHILD, *USER_CHOSEN)
        for place in bare_imports(path.read_text(encoding="utf-8"))
    ]
    assert faults == []


def test_a_late_import_without_guard_is_caught() -> None:
    """The rule above reads code, so it is tried on code."""
    late = "def f():\n    import numpy\n    with loading('x'):\n        import msgspec\n"
    assert bare_imports(late) == ["line 2: import numpy"]
    assert bare_imports("def f():\n    importlib.import_module('x')\n") != []
    assert bare_imports("import numpy\n") == []
