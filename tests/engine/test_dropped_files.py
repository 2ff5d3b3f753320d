"""An interrupt leaves nobody to close a file: what the sweep of exceptions found, told plainly."""

import gc
import os
from pathlib import Path

import pytest

from cerata.engine.disk.storage import OsStorage
from cerata.engine.open import open_log

from .words import RING, put, texts


def test_an_interrupt_after_creation_does_not_lock_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It struck when the file had its name; the lost descriptor kept it locked for good."""
    path = str(tmp_path / "a.cera")
    unlink = OsStorage.unlink

    def interrupted(self: OsStorage, path: str) -> None:
        unlink(self, path)
        raise KeyboardInterrupt

    monkeypatch.setattr(OsStorage, "unlink", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_log(path, ring_bytes=RING)
    monkeypatch.undo()
    gc.collect()
    with open_log(path, ring_bytes=RING, lock_timeout=0) as log:
        log.append([put("a")])


def test_a_handle_that_nobody_holds_gives_its_file_back(tmp_path: Path) -> None:
    """Descriptor and locks went with the process only, however often it was opened and dropped."""
    path = str(tmp_path / "a.cera")
    open_log(path, ring_bytes=RING).close()
    before = len(os.listdir("/dev/fd"))
    log = open_log(path)
    log.append([put("a")])
    del log
    gc.collect()
    assert len(os.listdir("/dev/fd")) == before
    with open_log(path) as log:
        assert log.report.alone
        assert texts(log) == ["a"]
