"""The documentation site: `make docs` builds it from the pages that stand in the repository.

The sources are the repository's own pages, where they are: nothing is copied. Docstrings are read
as they are written, with single backquotes for code.
"""

import re
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

ROOT = Path(__file__).parents[1]

project = "fedassay"
author = "The fedassay developers"
copyright = "2026, the fedassay developers"  # noqa: A001  # Sphinx's name for it
version = release = installed("fedassay")

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "experiments/*.md",
    "benchmarks/README.md",
    "examples/**/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = [".*", "src", "tests", "build", "dist", "**/node_modules", "**/__pycache__"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
nitpicky = False

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence"]
default_role = "code"
highlight_language = "none"
lexers["layers"] = TextLexer()

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80

html_theme = "pydata_sphinx_theme"
html_title = f"fedassay {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars: dict[str, list[str]] = {"docs/index": []}

FRONT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>fedassay</title>
<meta http-equiv="refresh" content="0; url=docs/index.html"></head>
<body><a href="docs/index.html">fedassay: the documentation</a></body></html>
"""


def write_front(app: Sphinx, error: Exception | None) -> None:
    """The site's first address leads to its first page."""
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "index.html").write_text(FRONT, "utf-8")


def plain_bars(*given: Any) -> None:
    """Bars of absolute values stay bars; Sphinx would look for what to put in their place."""
    lines: list[str] = given[-1]
    lines[:] = [
        line if line.lstrip().startswith(">>>") else line.replace("|", r"\|") for line in lines
    ]


ARRAY = re.compile(
    r"~?numpy\.ndarray\[~?tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?numpy\.dtype\[(~?numpy\.\w+)\]\]"
)


def short_arrays(*given: Any) -> tuple[str, str] | None:
    """Arrays by their element alone; that they may have any shape goes without saying."""
    signature, returned = given[-2:]
    if signature is None:
        return None
    return tuple(text and ARRAY.sub(r"~numpy.ndarray[\1]", text) for text in (signature, returned))


def setup(app: Sphinx) -> None:
    """What Sphinx calls before it builds."""
    app.connect("autodoc-process-docstring", plain_bars)
    app.connect("autodoc-process-signature", short_arrays)
    app.connect("build-finished", write_front)
