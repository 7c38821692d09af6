"""Self-contained pages: nothing that is put into one can become part of it, and nothing is fetched."""

import json
import re

import pytest

from simulator.report.page import fill, make_page, text_of


def made(**more):
    return make_page("A <title>", body="<main>body</main>", **more)


def test_a_page_fetches_nothing():
    """Neither an address nor an import: everything stands in the file, and its policy forbids the rest."""
    text = made(style="p { color: red; }", script="make('p');")
    assert not re.search(r"https?://|@import|url\(|<link(?! rel=\"icon\" href=\"data:)", text)
    assert "default-src 'none'" in text


def test_title_and_data_cannot_become_the_page():
    text = made(data={"text": "</script><script>alert(1)</script> @@BODY@@"})
    assert "<title>A &lt;title&gt;</title>" in text
    assert text.count("<script") == 3
    data = re.search(r'id="data">(.*?)</script>', text)[1]
    assert json.loads(data)["text"] == "</script><script>alert(1)</script> @@BODY@@"


def test_what_is_put_in_is_not_looked_through_again():
    assert fill("a @@X@@ c", {"X": "@@Y@@"}) == "a @@Y@@ c"


def test_an_unknown_part_is_an_error():
    with pytest.raises(KeyError):
        fill("@@X@@", {})


def test_control_characters_are_written_out():
    assert text_of("a\x1bb\n<") == "a\\x1bb\n&lt;"


def test_own_style_and_script_stand_after_the_shared_ones():
    text = made(style="/* mine */", script="/* also mine */")
    assert text.index(":root") < text.index("/* mine */")
    assert text.index("const DATA") < text.index("/* also mine */")
