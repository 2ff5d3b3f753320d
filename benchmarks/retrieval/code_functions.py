"""Code: functions of Python's standard library, asked by the first sentence of their docstring.

A document is the source of a function or method without its docstring, as the running Python has
it; so figures of two Python versions cannot be compared. Functions inside functions are part of
their outer function. Tests of the library are left out.
"""

import ast
import random
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .judged_set import CorpusBuilder, Document, JudgedSet, Question, set_of

PACKAGES: Final = (
    *("asyncio", "collections", "concurrent/futures", "email", "http", "importlib", "json"),
    *("logging", "multiprocessing", "sqlite3", "unittest", "urllib", "wsgiref", "xml/etree"),
)
MODULES: Final = (
    *("argparse", "ast", "base64", "calendar", "cmd", "code", "configparser", "contextlib", "copy"),
    *("csv", "dataclasses", "difflib", "doctest", "enum", "fileinput", "fractions", "ftplib"),
    *("functools", "gettext", "gzip", "imaplib", "inspect", "ipaddress", "locale", "mailbox"),
    *("mimetypes", "optparse", "pathlib", "pickle", "pprint", "random", "sched", "shutil"),
    *("smtplib", "socketserver", "statistics", "subprocess", "tarfile", "tempfile", "zipfile"),
)
QUESTIONS: Final = 300
SEED: Final = 5
WORDS: Final = range(6, 31)
"""Words of a sentence that may be a question."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def load() -> JudgedSet:
    """Return the set of the running Python's standard library.

    Raises:
        InvalidInput: the library has no source files.
    """
    library = Path(sysconfig.get_paths()["stdlib"])
    builder = CorpusBuilder("code")
    sentences: dict[str, dict[str, float]] = {}
    for path in _files(library):
        source = path.read_text(encoding="utf-8")
        place = path.relative_to(library).as_posix()
        for function in _functions(ast.parse(source)):
            name = f"{place}:{function.lineno}"
            builder.add_document(Document(name, _without_docstring(source, function)), name)
            sentence = _first_sentence(ast.get_docstring(function) or "")
            if len(sentence.split()) in WORDS:
                sentences.setdefault(sentence, {})[name] = 1.0
    chosen = random.Random(SEED).sample(sorted(sentences), min(QUESTIONS, len(sentences)))
    for number, sentence in enumerate(chosen, start=1):
        builder.add_question(Question(f"code/{number}", sentence, sentences[sentence]), sentence)
    return set_of("code", [builder.built()], library)


def _files(library: Path) -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((library / package).rglob("*.py")):
            if not {"test", "tests", "__pycache__"} & {*path.relative_to(library).parts}:
                yield path
    yield from (library / f"{module}.py" for module in MODULES)


def _functions(node: ast.AST) -> Iterator[_Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield child
        else:
            yield from _functions(child)


def _without_docstring(source: str, function: _Function) -> str:
    """Return the lines of a function, with its decorators, without its docstring."""
    lines = source.splitlines()
    first = min([function.lineno, *(part.lineno for part in function.decorator_list)])
    numbers = range(first, (function.end_lineno or function.lineno) + 1)
    docstring = range(0)
    if ast.get_docstring(function) is not None:
        statement = function.body[0]
        docstring = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    return "\n".join(lines[number - 1] for number in numbers if number not in docstring)


def _first_sentence(docstring: str) -> str:
    paragraph = " ".join(docstring.split("\n\n", maxsplit=1)[0].split())
    return re.split(r"(?<=[.!?])\s", paragraph)[0]
