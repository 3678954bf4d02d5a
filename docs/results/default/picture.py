"""Draw the README's picture of short runs and streams from the confirming jobsets of this folder.

python docs/results/default/picture.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "images" / "short_runs_and_streams.png"
PANELS = {"online": "short runs: arrivals end, the cluster drains", "streams": "streams: jobs keep arriving"}
STYLES = {
    "deeprm3": ("#d62728", "-", 2.4),
    "deeprm2": ("#ff9896", "-", 1.4),
    "deeprm": ("#e377c2", "-", 1.4),
    "linear": ("#1f77b4", "--", 1.6),
    "hold_long": ("#9467bd", "--", 1.6),
    "hold_until": ("#17becf", "--", 1.2),
    "hold": ("#2ca02c", "--", 1.6),
    "sjf": ("#444444", ":", 1.8),
}


def main() -> None:
    """Draw both panels, loads to the right and mean slowdown upwards."""
    found = pd.read_csv(HERE / "jobsets.csv.gz")
    means = found.groupby(["scenario", "policy", "load"])["cost"].mean()
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for panel, (scenario, title) in zip(panels, PANELS.items(), strict=True):
        for policy, (colour, line, width) in STYLES.items():
            if (scenario, policy) in means.index.droplevel("load"):
                curve = means[scenario, policy]
                panel.plot(
                    curve.index, curve, line, color=colour, linewidth=width, marker="o", markersize=3, label=policy
                )
        panel.set(title=title, xlabel="load, percent of the cluster", yscale="log")
        panel.yaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:g}"))
        panel.yaxis.set_minor_formatter(plt.NullFormatter())
        panel.set_yticks([1, 2, 5, 10] if scenario == "online" else [3, 5, 10, 20, 50, 100])
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("mean slowdown (lower is better)")
    panels[0].legend(fontsize=8, loc="upper left")
    figure.savefig(OUT, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
