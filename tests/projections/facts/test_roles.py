"""Who is who as of any event: the index says what a replay of the acts by then says."""

import random

import pytest

from cerata.projections.facts.entity_resolution import (
    Act,
    ActRow,
    EntityRoles,
    RoleHistory,
    RolesAt,
)

TENANTS, ENTITIES, ROWS, PREDICATES, SCOPES = (1, 2), range(1, 9), range(5), (1, 2), (1, 2, 3)

Scoped = tuple[int, ActRow]


def tenant_of(scope: int) -> int:
    return 1 if scope < 3 else 2


def acts(seed: int, count: int) -> list[Scoped]:
    """Acts that a fold takes, each with its scope; two rows of a split share an event."""
    choose, roles, found = random.Random(seed), EntityRoles(), list[Scoped]()
    for seq in range(1, count + 1):
        scope = choose.choice(SCOPES)
        tenant = tenant_of(scope)
        one, other = choose.sample(ENTITIES, 2)
        what = choose.choice([Act.MERGE, Act.MERGE, Act.SPLIT, Act.END, Act.PREDICATE])
        if what == Act.PREDICATE:
            made = [ActRow(seq, tenant, what, choose.choice(PREDICATES), 0, choose.randrange(2))]
        elif what == Act.END:
            made = [ActRow(seq, tenant, what, 0, 0, choose.randint(1, seq))]
        elif what == Act.SPLIT:
            rows = choose.choices(ROWS, k=2)
            made = [ActRow(seq, tenant, what, one, other, row) for row in rows]
        else:
            made = [ActRow(seq, tenant, what, one, other, 0)]
        for act in made:
            if roles.is_valid(act):
                roles.take(act)
                found.append((scope, act))
    return found


def replayed(every: list[Scoped], n: int, scopes: frozenset[int] | None) -> EntityRoles:
    roles = EntityRoles()
    for scope, act in every:
        if act.seq <= n and (scopes is None or act.kind == Act.END or scope in scopes):
            roles.take(act)
    return roles


@pytest.mark.parametrize("seed", range(12))
def test_roles_at_any_event_are_those_of_a_replay(seed: int) -> None:
    every = acts(seed, 60)
    history = RoleHistory()
    history.follow(len(every), every.__getitem__)
    for n in range(0, 62, 3):
        for scopes in (None, frozenset({1}), frozenset({1, 2}), frozenset({3})):
            expected, found = replayed(every, n, scopes), RolesAt(history, n, scopes)
            held = expected.merged or expected.split_rows
            assert found.is_plain is not bool(held)
            for seq in range(1, 61):
                assert found.holds(seq) is expected.holds(seq)
            for tenant in TENANTS:
                for entity in ENTITIES:
                    assert found.root(tenant, entity) == expected.root(tenant, entity)
                    assert found.names_of(tenant, entity) == expected.names_of(tenant, entity)
                    for row in ROWS:
                        key = (tenant, row, entity)
                        assert found.named(*key) == expected.named(*key)
                    for other in ENTITIES:
                        leads = other in set(chain(expected, tenant, entity))
                        assert found.leads_to(tenant, entity, other) is leads
                        assert expected.leads_to(tenant, entity, other) is leads
                for one in PREDICATES:
                    assert found.is_functional(tenant, one) is expected.is_functional(tenant, one)


def chain(roles: EntityRoles, tenant: int, entity: int) -> list[int]:
    """An entity, and what it is merged into, and so on."""
    found = [entity]
    while (following := roles.into(tenant, found[-1])) is not None:
        found.append(following)
    return found


def test_related_are_those_that_a_merge_or_split_that_holds_names() -> None:
    every: list[Scoped] = [
        (1, ActRow(1, 1, Act.MERGE, 1, 2, 0)),
        (3, ActRow(2, 2, Act.MERGE, 2, 3, 0)),
        (1, ActRow(3, 1, Act.SPLIT, 3, 4, 0)),
        (1, ActRow(4, 1, Act.END, 0, 0, 3)),
    ]
    history = RoleHistory()
    history.follow(len(every), every.__getitem__)
    assert RolesAt(history, 1, None).related(1) == {1, 2}
    assert RolesAt(history, 3, None).related(1) == {1, 2, 3, 4}
    assert RolesAt(history, 4, None).related(4) == {4}
    assert RolesAt(history, 4, frozenset({1})).related(2) == {1, 2}


def test_an_act_that_is_followed_again_changes_nothing() -> None:
    """An interrupt may come between an act and the note that it was followed."""
    every = acts(5, 80)
    once, again = RoleHistory(), RoleHistory()
    once.follow(len(every), every.__getitem__)
    for count in range(1, len(every) + 1):
        again.follow(count, every.__getitem__)
        again._followed -= 1  # pyright: ignore[reportPrivateUsage]
    again.follow(len(every), every.__getitem__)
    kept = [{k: v for k, v in vars(one).items() if k != "_lock"} for one in (once, again)]
    assert kept[0] == kept[1]
