"""How the documentation is built; no step of it needs a network."""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import pistol

project = "pistol"
author = "The pistol developers"
copyright = author
release = version = pistol.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build", "extra"]
templates_path = ["_templates"]
default_role = "literal"
smartquotes = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"pistol {release}"
html_static_path = ["_static"]
html_extra_path = ["extra"]  # the report of `pistol reproduce`, as it is
html_css_files = ["pistol.css"]
html_copy_source = False
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False


class Subscripts(SphinxTransform):
    """Show c_t and g_{t-1} with subscripts in running text; code, names and titles stay as they are."""

    default_priority = 900
    pattern = re.compile(r"(?<=\S)_(\{[^}]+\}|[^\W_](?![^\W_]))")
    verbatim = (
        nodes.literal,
        nodes.FixedTextElement,
        nodes.title,
        addnodes.desc_signature,
    )

    def apply(self, **kwargs: Any) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if self.pattern.search(text) and not self.is_verbatim(text):
                parts = self.pattern.split(text)  # text, subscript, text, …
                new = [
                    nodes.subscript("", part.strip("{}")) if i % 2 else nodes.Text(part)
                    for i, part in enumerate(parts)
                ]
                text.parent.replace(text, new)

    def is_verbatim(self, node: Any) -> bool:
        while node is not None and not isinstance(node, self.verbatim):
            node = node.parent
        return node is not None


def take_literally(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Our docstrings write |s| for a magnitude and (n_features_in_,) for a shape: neither is markup."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            line = re.sub(r"\|(?=\w)", r"\|", line)
            head, colon, kind = line.partition(" : ")
            lines[i] = head + colon + re.sub(r"(?<=\w)_(?=[,)])", r"\_", kind)


def setup(app: Any) -> None:
    app.add_transform(Subscripts)
    # Before numpydoc, which rearranges the lines.
    app.connect("autodoc-process-docstring", take_literally, priority=100)
