"""What the format may grow into, and bugs of the file that outside eyes found: each its story."""

from .words import Disk, put, texts


def test_a_mark_from_before_a_seal_is_not_cut() -> None:
    """It bears the seq of the event that comes next, and stands behind what was sealed."""
    disk = Disk()
    with disk.log() as log:
        log.append([put("a")])
    with disk.log() as log:
        log.seal()
    for _ in range(2):
        with disk.log() as log:
            assert log.report.is_clean
            assert texts(log) == ["a"]
