"""Mutants: one small change each to one function of the durability core, made at run time.

Owns what is changed (`mutants_of`) and how a running engine comes to have it (`Mutant.plant`).
A mutant has a name that stays when lines move: its function, what stands there, what would stand
there, and which occurrence it is. Left out, since no behaviour that is promised hangs on it: what
errors say, defaults of arguments, annotations, and code outside functions.
"""

import ast
import importlib
import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

ENGINE = Path(__file__).resolve().parents[2] / "engine"

CORE = (
    "create",
    "file",
    "format.checksums",
    "format.extent",
    "format.footer",
    "format.page",
    "format.record",
    "handle",
    "handle_lock",
    "idempotency",
    "integrity",
    "locks",
    "log",
    "log_state",
    "memory_storage",
    "open",
    "recovery",
    "relocation",
    "ring",
    "storage",
    "writer",
)
"""The durability core: what decides which bytes are written, in which order, and believed."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_SHOWN_MAX = 70


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. ``line`` is where it stands now; ``name`` says which it is for good."""

    name: str
    module: str
    function: str
    line: int
    number: int
    """Which of its module's changes it is."""

    def plant(self) -> None:
        """Give the running engine the change, for the rest of this process's life.

        Raises:
            LookupError: the function cannot be reached from its module.
        """
        tree = _parsed(self.module)
        node, changed = next(islice(_module_changes(tree), self.number, None))[1:]
        whole = ast.fix_missing_locations(_Replace(node, changed).visit(tree))
        code = compile(whole, str(_path(self.module)), "exec", dont_inherit=True)
        for part in self.function.split("."):
            code = next(
                one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == part
            )
        live_function(self.module, self.function).__code__ = code


def live_function(module: str, path: str) -> FunctionType:
    """Return the function that the running engine calls. Raises `LookupError`."""
    place = ".".join(_path(module).relative_to(ENGINE).with_suffix("").parts)
    owner: Any = importlib.import_module(f"cerata.engine.{place}")
    for part in path.split("."):
        owner = inspect.getattr_static(owner, part)
    if isinstance(owner, property):
        owner = owner.fget
    if isinstance(owner, classmethod | staticmethod):
        owner = cast("Any", owner).__func__
    owner = inspect.unwrap(owner)
    if not isinstance(owner, FunctionType):
        raise LookupError(f"{module}:{path} is no function")  # noqa: TRY004
    return owner


def mutants_of(module: str) -> list[Mutant]:
    """Return every mutant of a module of the engine, in the order of its text."""
    seen: Counter[str] = Counter()
    found: list[Mutant] = []
    for number, (function, node, changed) in enumerate(_module_changes(_parsed(module))):
        what = f"{module}:{function} | {_shown(node)} -> {_shown(changed)}"
        seen[what] += 1
        name = what if seen[what] == 1 else f"{what} | {seen[what]}"
        found.append(Mutant(name, module, function, node.lineno, number))
    return found


def module_of(path: Path) -> str:
    """Return the name of a module of the engine: that of its file, and its folder in the format."""
    return f"format.{path.stem}" if path.parent.name == "format" else path.stem


def _path(module: str) -> Path:
    """Return the file of a module of the engine, in whichever folder of the engine it is."""
    (path,) = (path for path in ENGINE.rglob(f"{module.rpartition('.')[2]}.py"))
    return path


def _parsed(module: str) -> ast.Module:
    return ast.parse(_path(module).read_text("utf-8"))


def _module_changes(tree: ast.Module) -> Iterator[tuple[str, Any, Any]]:
    """Yield (function, node, what would stand in its place) for every change to a module."""
    for path, function in _functions(tree):
        for statement in function.body:
            for node, changed in _changes_in(statement):
                yield path, node, changed


def _shown(node: ast.AST) -> str:
    """Return a node's text on one line; of a branch its condition."""
    if isinstance(node, ast.If):
        return f"if {_shown(node.test)}"
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield (path, function) of functions and methods; protocols and stubs are left out."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef) and not any(
            isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases
        ):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, changed: ast.AST) -> None:
        self._node = node
        self._changed = changed

    def visit(self, node: ast.AST) -> Any:
        return self._changed if node is self._node else self.generic_visit(node)


def _changes_in(node: ast.AST) -> Iterator[tuple[Any, Any]]:
    if isinstance(node, ast.Raise):
        # It can be left out; what it says is not changed.
        yield node, ast.copy_location(ast.Pass(), node)
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    for change in _changes_at(node):
        ast.copy_location(change, node)
        yield node, change
    left_out = [getattr(node, name, None) for name in ("annotation", "returns")]
    for child in ast.iter_child_nodes(node):
        if child not in left_out and not isinstance(child, ast.JoinedStr):
            yield from _changes_in(child)


def _changes_at(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in this node's own place."""
    match node:
        case ast.Compare(ops=operators):
            for at, operator in enumerate(operators):
                other_one = _COMPARISONS[type(operator)]()
                changed = [*operators[:at], other_one, *operators[at + 1 :]]
                yield ast.Compare(node.left, changed, node.comparators)
        case ast.BoolOp(op=operator):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield ast.BoolOp(other, node.values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS and not _is_text(node):
            yield ast.BinOp(node.left, _OPERATORS[type(operator)](), node.right)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield ast.Constant(cast("int", node.value) + 1)
        case ast.Call(func=ast.Name(id="max" | "min" as called), args=[_, _, *_]):
            other_name = "min" if called == "max" else "max"
            yield ast.Call(ast.Name(other_name, ast.Load()), node.args, node.keywords)
        case ast.Expr() | ast.AugAssign() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.If(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
            yield ast.If(ast.UnaryOp(ast.Not(), test), node.body, node.orelse)
        case _:
            return


def _is_text(node: ast.BinOp) -> bool:
    """Whether an operand is a text: there is no other operator for it."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
