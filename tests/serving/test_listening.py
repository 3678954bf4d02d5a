"""Beyond loopback there is a token."""

import pytest

from pipeline.errors import UserError
from pipeline.serving.listening import bound, token_for


def test_on_loopback_there_may_be_no_token() -> None:
    assert token_for("127.0.0.1", None, "t") is None
    assert token_for("localhost", "a-token-of-some-length\n", "t") == "a-token-of-some-length"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "head.node"])
def test_beyond_loopback_there_is_one(host: str) -> None:
    with pytest.raises(UserError, match="beyond loopback expected --token-file"):
        token_for(host, None, "t")
    assert token_for(host, "a-token-of-some-length", "t") == "a-token-of-some-length"


@pytest.mark.parametrize("token", ["", "short", "two lines of\nsome length", "ünguessable-and-long"])
def test_a_token_is_not_easily_guessed(token: str) -> None:
    with pytest.raises(UserError, match="t: expected one line of at least 16 ASCII characters"):
        token_for("127.0.0.1", token, "t")


def test_a_port_that_is_taken_is_one_line() -> None:
    with bound("127.0.0.1", 0) as taken, pytest.raises(UserError, match="--port "):
        bound("127.0.0.1", taken.getsockname()[1])
