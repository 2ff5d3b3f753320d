"""Files of tests are found by their names alone."""

import pytest

from cerata.memory.search.signals import is_test_file


@pytest.mark.parametrize(
    "uri",
    [
        *(
            "file:lib/test/heapq.py",
            "tests/conftest.py",
            "/a/b/test_heapq.py",
            "C:\\x\\tests\\a.cs",
        ),
        *("pkg/heap_test.go", "src/heap.test.ts", "src/heap.spec.js", "spec/heap_spec.rb"),
        *("src/HeapTest.java", "src/HeapTests.cs", "__tests__/heap.js", "test_a.py#L3"),
    ],
)
def test_names_that_test_runners_collect(uri: str) -> None:
    assert is_test_file(uri)


@pytest.mark.parametrize(
    "uri",
    [
        *("lib/heapq.py", "a/latest/b.py", "contest.py", "src/attest.go", "test", "a/test"),
        *("notes/testament.md", "protest/a.md", "Test.java", "https://test.example/a.html", ""),
    ],
)
def test_other_names_are_no_tests(uri: str) -> None:
    assert not is_test_file(uri)
