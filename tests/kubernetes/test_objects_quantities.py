"""Amounts as Kubernetes writes them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.kubernetes.objects import amount


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("250m", 0.25),
        (".5", 0.5),
        ("1Ki", 1024.0),
        ("1k", 1000.0),
        ("2Gi", 2.0**31),
        ("1E", 1e18),
        ("1e3", 1000.0),
        ("1E3", 1000.0),
        ("100n", 1e-7),
    ],
)
def test_an_amount_is_read(text: str, value: float) -> None:
    assert amount(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["", "-1", "1 Gi", "1mi", "1ki", "inf", "nan", "1e999", "0x10", "1;ls", None, "1" * 50]
)
def test_what_is_no_amount_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="expected an amount"):
        amount(text)


@given(st.text(max_size=12))
def test_any_text_is_an_amount_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert amount(text) >= 0
