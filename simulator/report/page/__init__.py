"""Self-contained pages: one HTML file that fetches nothing, with the style and the script that all pages share.

A page is its own `body`, `style` and `script` files, kept beside the module that makes it, in the shell of this package.
`base.css` gives colours (light, dark, by the reader's choice), type, buttons, fields, chips, tables and print; `base.js` gives
`$`, `make`, `DATA` (what `make_page` was given as data) and the choice of colours. A script that a page needs stands in it, after
the base's.

    make_page("Title", body=part("simulator.report", "x.html"), style=..., script=..., data={...})
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from simulator.reading import printable


def make_page(title: str, *, body: str, style: str = "", script: str = "", data: Any = None) -> str:
    """The page's text. `body` is HTML, `title` is text; `data` is what the script finds in `DATA`."""
    parts = {
        "TITLE": text_of(title),
        "STYLE": part(__name__, "base.css") + style,
        "BODY": body,
        "DATA": script_data(data),
        "SCRIPT": part(__name__, "base.js") + script,
    }
    return fill(part(__name__, "shell.html"), parts)


def part(package: str, name: str) -> str:
    """A file that lies beside a module of this package."""
    return (resources.files(package) / name).read_text("utf-8")


def fill(template: str, parts: Mapping[str, str]) -> str:
    """A template with its `@@NAME@@` replaced. What is put in is not looked through again. Raises KeyError for an unknown name."""
    out = []
    while template:
        before, mark, template = template.partition("@@")
        out.append(before)
        if mark:
            name, _, template = template.partition("@@")
            out.append(parts[name])
    return "".join(out)


def text_of(text: str) -> str:
    """Text for a page; a control character is none that a page can have."""
    return "\n".join(html.escape(printable(line)) for line in text.split("\n"))


def script_data(data: Any) -> str:
    """Data as JSON that may stand in a script element."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
