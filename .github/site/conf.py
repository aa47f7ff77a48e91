"""The site of `make site`: the pages where they stand, and the interfaces of `server/methods/YOUR_OWN.md`."""

import re
import subprocess
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

project = html_title = "Caucus"
root_doc = ".github/site/index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["**/templates", "simulations/laboratory/results/[am]*.md"]
myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_member_order = "bysource"
ROOT = Path(__file__).parents[2]
COMMAND = ["/usr/bin/env", "git", "ls-files", "*.md"]
pages = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, check=True)
include_patterns = pages.stdout.split()  # and no page of a run that lies in this folder
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Repository"]


def link_to_repository(app: Sphinx, page: nodes.document) -> None:
    """Let links to files and folders that are no pages lead to the repository; a link to no file fails the build."""
    folder = Path(app.env.doc2path(app.env.docname)).parent
    for node in list(page.findall(lambda each: isinstance(each, addnodes.pending_xref | addnodes.download_reference))):
        target = (folder / node["reftarget"]).resolve()
        if node["refdomain"] is None and target.exists():
            address = f"{REPOSITORY}/{'tree' if target.is_dir() else 'blob'}/main/{target.relative_to(ROOT)}"
            node.replace_self(nodes.reference("", "", *node.children, refuri=address))


def add_interfaces(_: Sphinx, page: str, source: list[str]) -> None:
    """Add the names of the page's table, by module, to `api.md`."""
    if page == ".github/site/api":
        table = (ROOT / "server" / "methods" / "YOUR_OWN.md").read_text("utf-8").partition("## What stays as it is")[2]
        for module, names in re.findall(r"^\| `([\w.]+)` \| (.*) \|", table, re.MULTILINE):
            members = ", ".join(re.findall(r"`(\w+)`", names))
            home = "simulations.api.api" if module == "simulations" else module  # imported when first used
            source[0] += f"\n## {module}\n```{{eval-rst}}\n.. automodule:: {home}\n   :members: {members}\n```\n"


def setup(app: Sphinx) -> None:
    """Change pages while Sphinx reads them."""
    app.connect("source-read", add_interfaces)
    app.connect("doctree-read", link_to_repository, priority=100)  # before Sphinx copies the files
