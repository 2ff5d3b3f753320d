"""The scopes that a reach admits, by their texts and by an index: equal to `admits`."""

from random import Random

import pytest

from cerata.engine.events import Scope, ScopeValue
from cerata.projections.columnar import scopes as scopes_module
from cerata.projections.columnar.columns import Columns, decode_columns, encode_columns
from cerata.projections.columnar.names import Names
from cerata.projections.columnar.scopes import (
    AdmittedCodes,
    Reach,
    ScopeNames,
    admits,
    by_name,
    scope_text,
)

VALUES: tuple[ScopeValue, ...] = (
    *("u1", "u10", "1", 'a"],["user_id","u1', "[", "\\", "é", "\0", "true"),
    *(1, 0, True, False, 10),
)
NAMES = ("user_id", "org", 'na"me', "user")


def drawn_scope(drawn: Random) -> Scope:
    names = drawn.sample(NAMES, drawn.randint(0, 3))
    pairs = tuple((name, drawn.choice(VALUES)) for name in names)
    return by_name((("tenant", drawn.choice(("default", "t", 1, True))), *pairs))


@pytest.mark.parametrize("seed", range(8))
def test_codes_by_text_and_by_index_equal_the_rule(seed: int) -> None:
    """Hostile values hold the text of other pairs; a text within a value is escaped."""
    drawn = Random(seed)
    names = Names("scopes")
    known: list[Scope] = []
    admitted = AdmittedCodes(names)
    for seq in range(1, 120):
        scope = drawn_scope(drawn)
        code = names.code(scope_text(scope), seq)
        if code > len(known):
            known.append(scope)
        if drawn.random() < 0.5:
            scope = drawn_scope(drawn)
            pairs = scope if drawn.random() < 0.8 else scope[:1]
            reach = Reach(pairs, shared=drawn.random() < 0.3)
            expected = {code for code, each in enumerate(known, start=1) if admits(each, reach)}
            assert admitted.codes(reach) == expected, reach


def chunk_of(names: ScopeNames, through: int) -> Columns:
    return decode_columns(encode_columns(names.effects(0, through)))


def test_a_load_decodes_a_scope_for_each_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand sessions have a scope each, of which a reader asks for one."""
    written = ScopeNames()
    for seq in range(1, 501):
        tenant = "a" if seq <= 250 else "b"
        written.scope_code((("tenant", tenant), ("user_id", f"u{seq}")), seq)
    decoded: list[str] = []
    read = scopes_module.read_scope

    def counted(text: str) -> Scope:
        decoded.append(text)
        return read(text)

    monkeypatch.setattr(scopes_module, "read_scope", counted)
    loaded = ScopeNames()
    loaded.load(loaded.read(chunk_of(written, 500), 0, 500))
    assert len(decoded) == 2
    assert loaded.tenants == written.tenants
    assert loaded.tenant_number('"b"') == 2
    reach = Reach((("tenant", "b"), ("user_id", "u300")))
    assert loaded.admitted(reach) == frozenset((300,))
    assert len(decoded) == 3
