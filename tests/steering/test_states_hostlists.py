"""Lists of nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.steering.rows import OddError
from pipeline.steering.states import MOST_NODES, expand_hostlist


@pytest.mark.parametrize(
    "text", ["n[1", "n1]", "n[3-1]", "n[a]", "n[1-99999]", "n1,,n2", ",", "n[1-200]x[1-200]", "n[]"]
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(OddError, match=r"^(expected a list of nodes, found '|a list of more than 20000 nodes)"):
        expand_hostlist(text)


def test_no_node_is_an_empty_list() -> None:
    assert expand_hostlist("") == []


@given(text=st.text(alphabet="n[]0123456789-,x", max_size=14))
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        found = expand_hostlist(text)
    except OddError:
        return
    assert len(found) <= MOST_NODES
    assert all(name and not set(name) & set("[],") for name in found)
