# Where the extra langchain is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""LangChain's standard tests of a vector store, a retriever and a store of bytes; none is skipped.

The async tests need pytest's option ``-o asyncio_mode=auto``.
"""

from collections.abc import Iterator
from typing import Any

import pytest

suites: Any = pytest.importorskip(
    "langchain_tests.integration_tests", reason="needs the extra langchain-conformance"
)

import cerata  # noqa: E402
from cerata.integrations.langchain import (  # noqa: E402
    CerataByteStore,
    CerataRetriever,
    CerataVectorStore,
)

pytestmark = pytest.mark.langchain


@pytest.fixture
def memory() -> Iterator[cerata.Store]:
    with cerata.open(":memory:") as store:
        yield store
        assert store.verify().ok


def test_no_standard_test_is_missing() -> None:
    """Of each suite all tests run, sync and async, with a guard against overridden tests."""
    counts = {TestVectorStore: 24, TestRetriever: 4, TestByteStore: 11, TestAsyncByteStore: 11}
    for kind, count in counts.items():
        assert len([name for name in dir(kind) if name.startswith("test_")]) == count + 1
    suite = TestVectorStore()
    assert suite.has_sync
    assert suite.has_async
    assert suite.has_get_by_ids


class TestVectorStore(suites.VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, memory: cerata.Store) -> CerataVectorStore:
        return CerataVectorStore(memory, self.get_embeddings())


class TestRetriever(suites.RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _texts(self, memory: cerata.Store) -> None:
        memory.put_frames([f"The fox number {number} sleeps." for number in range(5)])
        self.memory = memory

    @property
    def retriever_constructor(self) -> type[CerataRetriever]:
        return CerataRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"store": self.memory}

    @property
    def retriever_query_example(self) -> str:
        return "Where does the fox sleep?"


class TestByteStore(suites.BaseStoreSyncTests):
    @pytest.fixture
    def kv_store(self, memory: cerata.Store) -> CerataByteStore:
        return CerataByteStore(memory)

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"foo", b"bar", b""


class TestAsyncByteStore(suites.BaseStoreAsyncTests):
    @pytest.fixture
    async def kv_store(self, memory: cerata.Store) -> CerataByteStore:
        return CerataByteStore(memory)

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"foo", b"bar", b"\0"
