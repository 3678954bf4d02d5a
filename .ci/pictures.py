"""Draw as PNG files the DVC plots that differ from a revision: python .ci/pictures.py REVISION FOLDER."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import vl_convert

MOST = 12  # pictures in one report


def changed(plots: dict[str, list[dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    """Yield the name and the Vega-Lite specification of each plot whose points changed."""
    for path, drawn in plots.items():
        for plot in drawn[:1]:
            if plot["type"] != "vega":
                continue
            text = plot["content"] if isinstance(plot["content"], str) else json.dumps(plot["content"])
            points: dict[str, list[str]] = {revision: [] for revision in plot["revisions"]}
            for point in json.loads(text)["data"]["values"]:
                values = {key: value for key, value in point.items() if key != "rev"}
                points[point["rev"]].append(json.dumps(values, sort_keys=True))
            if len({tuple(sorted(lines)) for lines in points.values()}) > 1:
                yield re.sub(r"\W", "_", Path(path).stem), text


def main(revision: str, folder: str) -> None:
    """Draw up to MOST plots into a folder."""
    words = [sys.executable, "-m", "dvc", "plots", "diff", revision, "--json"]
    plots = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)["data"]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, text in list(changed(plots))[:MOST]:
        (Path(folder) / f"{name}.png").write_bytes(vl_convert.vegalite_to_png(text, scale=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
