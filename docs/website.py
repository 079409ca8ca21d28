"""Build the documentation as a site: the README, every page of docs/, and a reference of the Python functions.

`make site` runs this and writes site/, which needs no server and fetches nothing: open site/index.html. The reference is
made from the docstrings. Sphinx does the work, with Markdown by MyST: of the generators that can make such a reference it is
the one that is kept up (MkDocs has had no release since 2024, and what is to follow it is not finished).
"""

from __future__ import annotations

import inspect
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import unround

ROOT = Path(__file__).parents[1]
COPIED = ("CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "docs", "examples", "bench/results.json")
"""What the site is made of, besides the README, at the places that links between them expect."""

CHAPTERS: Mapping[str, Sequence[str]] = {
    "Use": (
        "docs/users",
        "docs/solve",
        "docs/tables",
        "docs/describe",
        "docs/audit",
        "docs/checks",
        "docs/figures",
        "docs/linked",
        "docs/notebook",
        "docs/scale",
    ),
    "Publish more safely": (
        "docs/review",
        "docs/protect",
        "docs/reconcile",
        "docs/cellkeys",
        "docs/compare",
        "docs/calibration",
        "docs/honest",
        "docs/whatif",
        "docs/reconstruct",
    ),
    "Reference": (
        "docs/glossary",
        "docs/mechanisms",
        "docs/audit-reference",
        "docs/linked-methods",
        "docs/cli",
        "docs/api",
        "docs/paper",
        "docs/speed",
        "docs/hardening",
    ),
    "Project": ("CONTRIBUTING", "docs/licences", "CHANGELOG"),
}
"""The pages, in the order of the list beside every one of them."""

REFERENCE: Mapping[str, Sequence[str]] = {
    "One system": ("solve", "expect", "parse", "check_proof", "Solution", "System", "Cell", "Sum", "Proof"),
    "A table": ("read", "describe", "check", "audit", "Release", "Check", "AuditFolder"),
    "An audit": ("explain", "serve", "view", "verify", "diff", "Explanation", "Posterior"),
    "Publishing": (
        *("review", "protect", "compare", "reconcile", "rate_steps", "simulate", "reconstruct"),
        *("publish_counts", "parse_protection", "mechanism", "Mechanism"),
    ),
    "Errors": ("UnroundError", "InputError", "Infeasible", "InternalError"),
}
"""The public names; those that no chapter names come last."""

MEMBERS: Mapping[str, Sequence[str]] = {
    "Solution": ("to_polars", "to_pandas", "save", "to_json"),
    "AuditFolder": ("open", "findings", "areas", "explain", "posterior", "to_polars", "to_pandas", "save"),
    "Explanation": ("to_polars", "to_pandas", "save", "to_json"),
    "Posterior": ("to_polars", "to_pandas", "save"),
    "Check": ("verdict", "to_polars", "to_pandas", "save", "to_json"),
    "Mechanism": ("window", "likelihood", "publish"),
    "Release": ("blocks", "index"),
}
"""What a class can do that users want; the rest is for unround itself."""

SETTINGS = {
    "project": "unround",
    "author": "The unround developers",
    "version": unround.__version__,
    "release": unround.__version__,
    "extensions": ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"],
    "exclude_patterns": ["docs/templates"],
    "html_theme": "furo",
    "html_title": f"unround {unround.__version__}",
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    "myst_heading_anchors": 3,
    "default_role": "code",  # single backticks in our docstrings are code, as in Markdown
    "autodoc_typehints": "none",  # types stand with the parameters
    "autodoc_member_order": "bysource",
    "napoleon_google_docstring": False,
    "napoleon_use_ivar": True,
    "smartquotes_action": "D",  # dashes only: what is to be typed keeps its quotes
}


def build(out: Path) -> None:
    """Write the site into a folder; whatever Sphinx warns about, such as a link that leads nowhere, is an error."""
    from sphinx.application import Sphinx

    with tempfile.TemporaryDirectory(prefix="unround-site-") as scratch:
        source, trees = Path(scratch) / "source", Path(scratch) / "trees"
        assemble(source)
        made = Sphinx(
            source,
            None,
            out,
            trees,
            "html",
            confoverrides=dict(SETTINGS),
            status=None,
            warning=sys.stderr,
            freshenv=True,
            warningiserror=True,
        )
        made.build()
        if made.statuscode:
            sys.exit("The site has faults: see above.")


def assemble(source: Path) -> None:
    """Lay out what the site is made of in a folder: the README is its first page."""
    for name in COPIED:
        there, here = ROOT / name, source / name
        here.parent.mkdir(parents=True, exist_ok=True)
        if there.is_dir():
            shutil.copytree(there, here, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
        else:
            shutil.copyfile(there, here)
    (source / "docs" / "api.md").write_text(reference(), encoding="utf-8")
    contents = "\n".join(_chapter(title, pages) for title, pages in CHAPTERS.items())
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (source / "index.md").write_text(f"{readme}\n{contents}", encoding="utf-8")


def reference() -> str:
    """Return the page about the Python functions and classes, which Sphinx fills from their docstrings."""
    named = {name for names in REFERENCE.values() for name in names}
    rest = [name for name in unround.__all__ if name not in named and name != "__version__"]
    parts = ["# Python reference", "```{eval-rst}\n.. automodule:: unround\n   :no-members:\n```"]
    for title, names in (*REFERENCE.items(), *([("More", rest)] if rest else [])):
        parts += [f"## {title}", *(f"```{{eval-rst}}\n{_directive(name)}\n```" for name in names)]
    return "\n\n".join(parts) + "\n"


def _directive(name: str) -> str:
    what = getattr(unround, name)
    if not isinstance(what, type):
        return f".. autofunction:: unround.{name}"
    kind = "autoexception" if issubclass(what, Exception) else "autoclass"
    members = "".join(f"\n\n   .. {_kind(what, one)}:: {one}" for one in MEMBERS.get(name, ()))
    return f".. {kind}:: unround.{name}{members}"


def _kind(owner: type, member: str) -> str:
    found = inspect.getattr_static(owner, member)
    return "autoproperty" if isinstance(found, property | cached_property) else "automethod"


def _chapter(title: str, pages: Sequence[str]) -> str:
    return "\n".join(("```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```", ""))


def main() -> None:
    """Write site/, or the folder that is named."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"
    shutil.rmtree(out, ignore_errors=True)
    build(out)
    print(f"Written: {out / 'index.html'}")


if __name__ == "__main__":
    main()
