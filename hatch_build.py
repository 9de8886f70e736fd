"""The readme of the distribution: README.md with the relative links made absolute, since an index shows it alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A relative link or picture of Markdown.
LINK = re.compile(r"(?P<start>!?\[[^\]]*\]\()(?P<target>(?![a-z]+:|#)[^)\s]+)\)")


def absolute_links(page: str, repository: str, revision: str) -> str:
    """A page whose links lead to a revision of the repository."""

    def absolute(link: re.Match[str]) -> str:
        view = "raw" if link["start"].startswith("!") else "blob"
        return f"{link['start']}{repository}/{view}/{revision}/{link['target']})"

    return LINK.sub(absolute, page)


class Readme(MetadataHookInterface):
    """Adds the readme to the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme, with links to the tag of the version."""
        version = metadata["version"]
        page = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = absolute_links(page, metadata["urls"]["Repository"], "main" if ".dev" in version else f"v{version}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
