"""Fonts of figures: matplotlib's own are there, whatever its cached list of fonts says."""

import pytest

from pipeline.comparing import plots


def test_a_list_of_fonts_without_matplotlibs_own_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a list was in a cache: for each of the fonts, a power of ten on an axis wrote a line to stderr."""
    from matplotlib import font_manager

    known = [font for font in font_manager.fontManager.ttflist if "mpl-data" not in font.fname]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", known)
    figure, axes = plots.canvas("powers")
    axes.set_yscale("log")
    axes.plot([1, 2], [1e-3, 1e3])
    plots.png(figure)
    assert {"STIXGeneral", "cmr10"} <= {font.name for font in known}
