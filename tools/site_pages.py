"""Hooks of MkDocs: the pages of the reference, and links of the pages that leave the docs.

The pages of docs/ are also read in a checkout and in the wheel, so they have no directives of
mkdocstrings, and they link source files. The site has neither; this module makes the pages of the
reference, one for each room with public names, adds the pages of packs to the navigation, and
leaves the text of a link to a source file.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import posixpath
import re
import sys
from pathlib import Path
from typing import Any, Final

import cerata

sys.path.insert(0, str(Path(__file__).parents[1]))
from tools.pack_pages import pages

LINK: Final = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((\.\.?/[^)\s]*)\)")

FENCE: Final = re.compile(r"^( *```+\w+) [^\n`]*$", re.MULTILINE)


def rooms() -> dict[str, list[str]]:
    """Return the full names of the public classes and functions of each room, sorted."""
    names: dict[str, list[str]] = {}
    for name in cerata.__all__:
        public = getattr(cerata, name)
        module = getattr(public, "__module__", None) or ""
        parts = module.split(".")
        if parts[0] == "cerata" and len(parts) > 1:
            # `cerata.open` has another name where it is defined.
            defined = next(
                key for key, value in vars(sys.modules[module]).items() if value is public
            )
            names.setdefault(parts[1], []).append(f"{module}.{defined}")
    return {room: sorted(public) for room, public in names.items()}


def on_config(config: Any) -> Any:
    """Add the pages of packs to the navigation, unless mkdocs.yml has them."""
    listed = str(config.nav)
    for heading, found in pages().items():
        if added := [page for page in found if page not in listed]:
            config.nav.append({heading: added})
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add a page to the site for each room that has public names."""
    from mkdocs.structure.files import File

    for room, names in rooms().items():
        text = f"# Names of {room}\n\n" + "\n".join(f"::: {name}\n" for name in names)
        files.append(File.generated(config, f"api/{room}.md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Leave the text of each link to a file that is no page of the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def linked(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[2].partition("#")[0]))
        return match[1] if target.startswith("..") else match[0]

    # Python-Markdown knows no words behind the language of a block, such as the test that runs it.
    return LINK.sub(linked, FENCE.sub(r"\1", markdown))
