"""Draw the README's picture of short runs and streams from the confirming jobsets of this folder.

python docs/results/default/picture.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "images" / "short_runs_and_streams.png"
PANELS = {"online": "short runs: arrivals end, the cluster drains", "streams": "streams: jobs keep arriving"}
BASE = "sjf"
STYLES = {  # distinct in grey as well: colours of different lightness, and a marker each
    "deeprm3": ("#000000", "-", "o", 2.4),
    "hold_long": ("#d55e00", "--", "s", 1.8),
    "linear": ("#0072b2", "-.", "^", 1.6),
    "easy": ("#56b4e9", (0, (8, 2, 1, 2, 1, 2)), "D", 1.6),
    "tetris": ("#999999", ":", "v", 1.6),
}


def main() -> None:
    """Draw both panels, loads to the right and the mean slowdown relative to SJF's upwards."""
    found = pd.read_csv(HERE / "jobsets.csv.gz")
    means = found.groupby(["scenario", "policy", "load"])["cost"].mean()
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    for panel, (scenario, title) in zip(panels, PANELS.items(), strict=True):
        for policy, (colour, line, marker, width) in STYLES.items():
            curve = 100 * (means[scenario, policy] / means[scenario, BASE] - 1)
            look = {"color": colour, "linestyle": line, "linewidth": width, "marker": marker, "markersize": 5}
            panel.plot(curve.index, curve, label=policy, **look)
        panel.axhline(0, color="#444444", linewidth=0.8)
        panel.set(title=title, xlabel="load (% of the cluster)")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("mean slowdown compared with SJF\n(%; lower is better)")
    panels[1].legend(fontsize=9, loc="lower left")
    figure.savefig(OUT, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
