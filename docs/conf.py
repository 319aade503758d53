"""Sphinx reads this file: `make docs` builds the pages of this folder."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"

import docstrings
import reference_pages

import bert_tf

project = "bert_tf"
author = "The bert_tf maintainers"
project_copyright = "the bert_tf maintainers, Apache License 2.0"
version = release = bert_tf.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# "--flag" stays as it is.
smartquotes = False
copybutton_prompt_text = "$ "
html_theme = "pydata_sphinx_theme"
html_title = "bert_tf"
html_static_path = ["style"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages without pages below them.
html_sidebars = {name: [] for name in ("index", "start", "what_bert_does")}
html_show_sourcelink = False


def setup(app):
    """Writes the generated pages, before Sphinx looks for pages."""
    app.connect("doctree-read", leave_out_of_search)
    # Before napoleon, which has the priority 500.
    app.connect(
        "autodoc-process-docstring", docstrings.to_restructured_text, priority=400
    )
    reference_pages.write(pathlib.Path(__file__).parent / "reference")


def leave_out_of_search(app, _):
    """Hides the current page from the search if it is about the past."""
    if app.env.docname.startswith(("changes", "decisions/")):
        app.env.metadata[app.env.docname]["nosearch"] = ""
