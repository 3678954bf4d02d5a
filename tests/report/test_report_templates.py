"""What is put into a page is text, and what it is not given is an error."""

import pytest
from jinja2 import UndefinedError

from pipeline.report import template


def test_a_page_without_what_it_shows_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        template("advice.html").render()


def test_text_is_escaped() -> None:
    assert template("advice.html").environment.from_string("{{ name }}").render(name="<b>") == "&lt;b&gt;"
