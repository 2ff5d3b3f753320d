"""The check of commit messages: an imperative subject of at most 72 characters, and a body.

``python tools/commits.py`` reads the commits of the change in the repository of the current folder:
those that ``origin/main`` lacks. In a clone without it, and on ``origin/main`` itself, those after
the commit that added this file. Merges have no message of their own. Without a repository or
without commits there is nothing to check, and the exit code is 0.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

SUBJECT_MAX: Final = 72
COMMITS_MAX: Final = 200
THIS_FILE: Final = "tools/commits.py"

VERBS: Final = """
abort accept add adjust admit adopt align allow anchor answer append apply archive ask assert
assign attach avoid back balance batch begin bind bisect block bound break bring budget build bump
cache call cancel cap carry catch change check choose clamp clean clear close collapse collect
combine compact compare compress compute configure connect copy correct count cover create cut
deal decline decode deduplicate defer define delay delete deny deprecate derive describe detect
digest disable display distinguish divide document draw drop embed enable encode encrypt end
enforce ensure erase escape estimate exclude expand expect explain export expose extend extract
fail fetch fill filter find finish fit fix fold follow forbid force forget fork format free freeze
gather generate give go group grow guard handle harden hash help hide hold honour ignore import
improve include increase index infer inline insert install introduce isolate join judge keep label
land lay lead learn leave let lift limit link lint list load locate lock log look lower make map
mark match measure mention merge migrate mirror mock move name narrow need normalise note number
offer omit open order organise pack parse pass pin place plan point prefer prepare preserve
prevent print probe promise protect prove provide prune publish pull purge push put raise rank
read rebuild recall receive recognise record recover reduce refer refine refold refuse register
reject relax release rely remember remove rename render reorder repair repeat replace replay
report require rerun reset reshape resolve respect restore restrict resume retire retry return
reuse revert review rewrite rotate round route run save say scan schedule seal search seed select
send separate serve set settle shard share shorten show shrink sign simplify skip slow sort speed
spell split stabilise start state stop store stream strengthen strip support suppress sweep switch
sync tag take teach test tidy tie tighten time track train treat trim try tune turn type undo
unify unlink update upgrade use validate verify view wait warn watch weigh widen wire wrap write
"""
"""The verbs that may begin a subject, in their order; add a verb that is missing."""


class Commit(NamedTuple):
    """A commit's name and message."""

    name: str
    subject: str
    body: str


def faults(commit: Commit) -> Iterator[str]:
    """Yield what is wrong with the message, with the remedy; nothing if all is well."""
    subject = commit.subject
    if len(subject) > SUBJECT_MAX:
        yield f"the subject has {len(subject)} characters; use at most {SUBJECT_MAX}"
    match = re.fullmatch(r"(?:[\w.*/-]+(?:, [\w.*/-]+)*: )?(?P<verb>\S+)(?: .*\S)?", subject)
    if match is None:
        yield 'the subject is not "area: verb ..." or "Verb ..."; write "engine: refuse a write"'
    elif (verb := match["verb"]).lower() not in VERBS.split():
        yield f"{verb!r} is no imperative verb of VERBS in {THIS_FILE}; begin with a verb"
    if subject.endswith("."):
        yield "the subject ends with a period; remove the period"
    if not commit.body.strip():
        yield "the body is missing; give the cause in a line or two"


def git(*arguments: str) -> str | None:
    """Return the output of git; None if git fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def base_of_change() -> str | None:
    """Return the commit before the first of the change; None if no history says."""
    main = git("merge-base", "origin/main", "HEAD")
    if main and main != git("rev-parse", "HEAD"):
        return main
    # In a shallow clone this may be the oldest commit that is there; what follows is checked.
    return git("log", "-1", "--diff-filter=A", "--format=%H", "--", THIS_FILE) or None


def commits(base: str) -> list[Commit]:
    """Return the commits from ``base``, excluded, to the head, newest first, without merges."""
    form = "--format=%h%x1f%s%x1f%b%x1e"
    limit = f"--max-count={COMMITS_MAX}"
    text = git("log", "--no-merges", limit, form, f"{base}..HEAD") or ""
    return [Commit(*part.strip("\n").split("\x1f")) for part in text.split("\x1e") if part.strip()]


def main() -> int:
    """Check the commits of the change; the exit code is 1 if a message has a fault."""
    base = base_of_change()
    change = commits(base) if base else []
    lines = [
        f"{commit.name} {commit.subject!r}: {fault}"
        for commit in change
        for fault in faults(commit)
    ]
    # The prefix is that of a failed check in the report of .ci/run.
    sys.stdout.writelines(f"FAILED {line}\n" for line in lines)
    if not lines:
        count = len(change)
        sys.stdout.write(f"commits: {count} checked\n" if count else "commits: none to check\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
