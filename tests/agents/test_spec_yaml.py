"""Slots declared in YAML: what a file means, and the line of each fault."""

import sys
import time
from pathlib import Path

import pytest

import cerata
from cerata import Agent, InvalidInput, MemorySpec, NotFound, Unsupported, load_memory, scratchpad
from cerata.agents import spec_yaml


def loaded(folder: Path, text: str) -> dict[str, MemorySpec]:
    path = folder / "memory.yaml"
    path.write_text(text)
    return load_memory(path)


def test_a_file_declares_the_same_as_python(tmp_path: Path) -> None:
    specs = loaded(
        tmp_path,
        """
# What the analyst keeps.
memory:
  notes: {tier: semantic, scope: [user_id, portfolio_id], description: about this client}
  prefs:
  state:
    tier: session
    ttl: 3600
    type: value
  pad: {tier: working, max_size_mb: 2.5, reference_syntax: "@mem"}
  no: {scope: no, ttl: null, type: list, max_items: 3}
""",
    )
    assert specs == {
        "notes": MemorySpec(
            tier="semantic", scope=("user_id", "portfolio_id"), description="about this client"
        ),
        "prefs": MemorySpec(),
        "state": MemorySpec(tier="session", ttl=3600, type="value"),
        "pad": MemorySpec(tier="working", max_size_mb=2.5, reference_syntax="@mem"),
        "no": MemorySpec(scope="no", ttl=None, type="list", max_items=3),
    }
    with cerata.open(":memory:") as store:
        Agent(store, "analyst", memory=specs)
        seq = store.head.seq
        pad = scratchpad(max_size_mb=2.5, reference_syntax="@mem")
        Agent(store, "analyst", memory={**specs, "pad": pad})
        assert store.head.seq == seq == 5


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("memory:\n  a: {tier: session}\n  a: {tier: session}\n", 3, 'duplicate key "a"'),
        ("memory:\n  a:\n    tier: session\n    tier: session\n", 4, 'duplicate key "tier"'),
        ("memory:\n  a:\n    scope: u\n    tire: x\n", 4, "Did you mean 'tier'"),
        ("memory:\n  a:\n    tier: semantc\n", 3, "Did you mean 'semantic'"),
        ("memory:\n  a:\n    ttl: 5x\n", 3, "ttl is '5x'"),
        ("memory:\n  a:\n    schema: Note\n", 3, "schema is a Python object"),
        ("memory:\n  a:\n    upcasters: {1: f}\n", 3, "upcasters is a Python object"),
        ("memory:\n  a:\n    type: list\n    max_items: lots\n", 4, "max_items"),
        ("memory:\n  a: {searchable: yes}\n", 2, "searchable"),
        ("memory:\n  a: {scope: [[x]]}\n", 2, "scope"),
        ("memory:\n  a: {max_size_mb: 3}\n", 2, "no meaning in the tier 'episodic'"),
        ("memory:\n  b: {}\n  a b: {}\n", 3, "A slot's name is 'a b'"),
        ("memory:\n  1: {}\n", 2, "A slot's name is 1"),
        ("memory:\n  - a\n", 1, "memory is a list"),
        ("memory:\n  a: {}\n  b: [x]\n", 3, "slot 'b' is a list"),
        ("memory:\n  a: text\n", 2, "slot 'a' is a single value"),
        ("memory: {}\nother: 1\n", 2, "'other' is no part"),
        ("memory:\n\ta: {}\n", 2, "cannot start any token"),
        ("memory: {}\n---\nmemory: {}\n", 2, "another document"),
        ("", None, "the file is empty"),
        ("{}", None, "declares no memory"),
        ("memory: " + "[" * 5_000, None, "no YAML"),
        ('memory: {a: {description: "\0"}}', None, "no YAML"),
    ],
)
def test_each_fault_has_its_line(tmp_path: Path, text: str, line: int | None, message: str) -> None:
    with pytest.raises(InvalidInput, match=r"memory\.yaml") as caught:
        loaded(tmp_path, text)
    assert message in str(caught.value)
    assert caught.value.where == f"memory.yaml, line {line}" if line else "memory.yaml"


def test_a_tag_runs_nothing(tmp_path: Path) -> None:
    target = tmp_path / "made"
    with pytest.raises(InvalidInput):
        loaded(tmp_path, f"memory: !!python/object/apply:os.mkdir ['{target}']\n")
    assert not target.exists()


def test_aliases_do_not_multiply(tmp_path: Path) -> None:
    """Ten levels of ten aliases are 10 billion items if a loader expands them."""
    levels = "".join(f"  - &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 11))
    text = f"memory:\n a:\n  scope:\n  - &l0 [x]\n{levels}"
    started = time.process_time()
    with pytest.raises(InvalidInput, match="scope"):
        loaded(tmp_path, text)
    assert time.process_time() - started < 5


def test_a_large_or_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="1,048,576 is the most"):
        loaded(tmp_path, "#" * (1 << 20) + "\n")
    with pytest.raises(NotFound, match="No such file"):
        load_memory(tmp_path / "none.yaml")
    (tmp_path / "memory.yaml").write_bytes(b"memory: \xff")
    with pytest.raises(InvalidInput, match="no YAML"):
        load_memory(tmp_path / "memory.yaml")


def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.yaml"
    path.write_text("memory: {}")
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    with pytest.raises(Unsupported, match=r"'\.\[yaml\]'"):
        load_memory(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memory: " + "[" * 2_000 + "]" * 2_000, "nested too deeply"),
        ("memory:\n  a: {scope: " + "{a: " * 100 + "}" * 101, "nested too deeply"),
        ("memory:\n  a:\n    scope: " + "- " * 3_000 + "x", "no YAML"),
        ("memory: !!omap [a: 1, a: 2]", "twice in an ordered map"),
        ("memory:\n  a: {ttl: " + "9" * 5_000 + "}", "no YAML"),
        ("memory:\n  a: {ttl: 99999999999999999999}", "no YAML"),
        ("memory: !!set {a, b}", "memory"),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Brackets take quadratic time, and a tag of YAML raised an error of Python's."""
    with pytest.raises(InvalidInput, match=message):
        loaded(tmp_path, text)


def test_a_file_takes_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of less than 1 MB may still take minutes."""
    monkeypatch.setattr(spec_yaml, "_SECONDS_MAX", 1)
    names = "".join(f"  a{n}: *x\n" for n in range(40_000))
    with pytest.raises(InvalidInput, match="too much time"):
        loaded(tmp_path, f"memory:\n  a: &x {{{'b: 1, ' * 10}}}\n{names}")
