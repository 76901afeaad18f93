"""The documentation site: `make docs`, then open build/docs/index.html.

The source directory is the repository itself, so that one relative link works
on GitHub and on the site, and nothing is there twice.
"""
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import pages  # noqa: E402
from sphinx.ext import autosummary  # noqa: E402

import pyg_fnri  # noqa: E402

project = 'pyg_fnri'
version = release = pyg_fnri.__version__
root_doc = 'docs/index'
include_patterns = [
    'docs/**', 'results/**.md', 'datasets/README.md', 'CONTRIBUTING.md',
    'CHANGELOG.md'
]
exclude_patterns = [
    '.*', 'build', 'datasets/*/**', 'runs', 'docs/conf.py', 'docs/pages.py'
]
source_suffix = {'.md': 'markdown', '.py': 'markdown'}

extensions = [
    'myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.autosummary',
    'sphinx.ext.mathjax', 'sphinx.ext.napoleon', 'sphinx.ext.viewcode',
    'sphinx_copybutton', 'sphinx_design', 'sphinx-mathjax-offline'
]
myst_enable_extensions = ['colon_fence', 'dollarmath', 'fieldlist']
myst_heading_anchors = 3
# Shell commands and code are copied without what they print.
copybutton_exclude = '.linenos, .gp, .go'

autosummary_generate = False
# Summaries are first sentences, which these do not end.
autosummary.WELL_KNOWN_ABBREVIATIONS += ('eq.', 'eqs.')
autodoc_inherit_docstrings = False
autodoc_member_order = 'bysource'
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
maximum_signature_line_length = 79
add_module_names = False
toc_object_entries_show_parents = 'hide'
python_use_unqualified_type_names = True

# Names of other libraries, of type variables and of modules that users need
# not know: there is no network at build time to look them up.
nitpicky = True
nitpick_ignore_regex = [('py:.*', r'(?s)(?!pyg_fnri\.[a-z]+\.[A-Za-z_]+$).*')]

html_theme = 'furo'
html_title = 'pyg_fnri'
html_static_path = ['static']
html_css_files = ['style.css']
html_additional_pages = {'index': 'redirect.html'}
templates_path = ['templates']
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False


def setup(app):
    app.connect('source-read', pages.show)
    app.connect('autodoc-process-signature', pages.signature)
    app.connect('autodoc-skip-member', pages.skip)
