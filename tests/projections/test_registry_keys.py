"""The registry names the checkpoint of a built-in projection without loading its module."""

from cerata.projections.registry import BUILT_IN, Registry, projection_key


def test_each_key_is_that_of_its_projection() -> None:
    """A key that lags behind a version or parameter would name another projection's checkpoint."""
    registry = Registry()
    keys = {name: projection_key(make()) for name, make in BUILT_IN.items()}
    assert {name: registry.key(name) for name in registry.names} == keys
