#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The millrace authors

"""usage: scripts/plot.py OUTPUT_DIRECTORY FILE.json ...

Draws what the benches wrote (BUILD/bench/*.json) as bars, an SVG and a PNG for each file. Knows the
shapes they have: a comparison of programs (test/bench/bench.py), drawn with all its files in one
picture, a list of rows with a number each (the C benches), ways to send by burst (sched_nolock), and
requests beside forwarding (test/bench/control.py). Needs python3-matplotlib.
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "millrace"})
from matplotlib import pyplot  # noqa: E402  (the backend comes first)


def save(figure, directory, name):
    figure.tight_layout()
    for kind in ("svg", "png"):
        path = directory / f"{name}.{kind}"
        figure.savefig(path, dpi=100, metadata={"Date": None} if kind == "svg" else None)
        if kind == "svg":  # fit to be kept beside sources: no white space at the ends of lines
            lines = path.read_text(encoding="utf-8").splitlines()
            path.write_text("".join(line.rstrip() + "\n" for line in lines), encoding="utf-8")
        print(path)
    pyplot.close(figure)


def bars(axes, labels, values):
    axes.barh(labels, values, color="#4a7ba6")
    axes.invert_yaxis()
    for i, value in enumerate(values):
        axes.text(value, i, f" {value:.3g}", va="center", fontsize=7)
    axes.tick_params(labelsize=7)


def programs(runs, directory):
    """Median cycles a packet of each program, a group a row, with the spread of the runs."""
    figure, axes = pyplot.subplots(figsize=(8, 1.2 + 0.8 * len(runs)))
    names = list(runs[0]["programs"])
    for k, name in enumerate(names):
        cycles = [run["programs"][name]["cycles"] for run in runs]
        at = [i + 0.38 * k for i in range(len(runs))]
        medians = [c["median"] for c in cycles]
        low = [c["median"] - min(c["values"]) for c in cycles]
        high = [max(c["values"]) - c["median"] for c in cycles]
        axes.barh(at, medians, 0.36, xerr=[low, high], label=name, error_kw={"lw": 0.8})
        for y, value in zip(at, medians):
            axes.text(value, y, f"  {value:.0f}", va="center", fontsize=7)
    axes.set_yticks([i + 0.19 for i in range(len(runs))], [run["name"] for run in runs])
    axes.invert_yaxis()
    axes.set_xlabel("TSC cycles a packet, median; the line is the range of the runs")
    axes.legend(fontsize=8)
    save(figure, directory, "programs")


def label_of(row):
    return " ".join(str(value) if not isinstance(value, (int, float)) else f"{key} {value}"
                    for key, value in row.items() if key not in ("cycles", "value", "jain", "added"))


def rows_of(data):
    rows = data.get("rows") or data.get("values") or []
    return [row for row in rows if "cycles" in row or "value" in row]


def table(data, directory):
    rows = rows_of(data)
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.2 * len(rows)))
    bars(axes, [f"{i:2} {label_of(row)}" for i, row in enumerate(rows)],
         [row.get("cycles", row.get("value")) for row in rows])
    axes.set_xlabel(data.get("unit", "TSC cycles a packet"))
    axes.set_title(data["bench"], fontsize=9)
    save(figure, directory, data["bench"])


def sched(data, directory):
    """The tables of doc/sched_nolock.md: a group of bars a burst, a colour a way, a picture a device."""
    figure, panels = pyplot.subplots(2, 2, figsize=(11, 7))
    tables = [(1, "added", "one worker: added to a bare rte_eth_tx_burst"),
              (2, "cycles", "two workers on one queue, both together")]
    colours = {way: f"C{k}" for k, way in enumerate(dict.fromkeys(row["way"] for row in data["rows"]))}
    for line, device in zip(panels, ("net_null", "net_ring")):
        for axes, (workers, key, title) in zip(line, tables):
            rows = [row for row in data["rows"]
                    if row["device"] == device and row["workers"] == workers
                    and not row["way"].startswith("bare")
                    and (workers == 1 or "own" not in row["way"] and "shareable" not in row["way"])]
            ways = list(dict.fromkeys(row["way"] for row in rows))
            bursts = sorted({row["burst"] for row in rows})
            for k, way in enumerate(ways):
                found = {row["burst"]: max(row[key], 0) for row in rows if row["way"] == way}
                at = [i + k * 0.8 / len(ways) for i in range(len(bursts))]
                drawn = axes.bar(at, [found[burst] for burst in bursts], 0.75 / len(ways), label=way,
                                 color=colours[way])
                axes.bar_label(drawn, [f"{found[b]:.0f}" if found[b] >= 10 else f"{found[b]:.1f}" for b in bursts],
                               fontsize=6, rotation=90, padding=2)
            axes.set_yscale("symlog", linthresh=1)
            axes.set_ylim(0, axes.get_ylim()[1] * 12)
            axes.set_xticks([i + 0.4 for i in range(len(bursts))], [f"burst {b}" for b in bursts])
            axes.set_title(f"{device}, {title}", fontsize=8)
            axes.set_ylabel("TSC cycles a packet", fontsize=7)
            axes.tick_params(labelsize=7)
            axes.legend(fontsize=6, ncols=2)
    save(figure, directory, data["bench"])


def requests(data, directory):
    """What a request takes, of the server's processor and of the client's patience."""
    shown = [(f"{row['row']}: {text}", row[key]) for row in data["rows"]
             for key, text in (("cpu_us", "server's CPU"), ("p50_us", "p50"), ("p99_us", "p99"))]
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.25 * len(shown)))
    bars(axes, [text for text, _ in shown], [value for _, value in shown])
    axes.set_xlabel("us a request, "
                    + ", ".join(f"{row['row']}: forwarding {row['forwarding_percent']:+} %"
                                for row in data["rows"]))
    save(figure, directory, data["bench"])


def main(argv):
    if len(argv) < 3 or argv[1].startswith("-"):
        print("\n".join(__doc__.splitlines()[:1]), file=sys.stderr)
        return 1
    directory = pathlib.Path(argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    compared = []
    for name in argv[2:]:
        try:
            data = json.loads(pathlib.Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as why:
            print(f"plot.py: {name}: {why}", file=sys.stderr)
            return 1
        if "programs" in data:
            compared.append(data)
        elif data.get("bench") == "control":
            requests(data, directory)
        elif data.get("bench") == "sched_nolock":
            sched(data, directory)
        elif "bench" in data and rows_of(data):
            table(data, directory)
        else:
            print(f"plot.py: {name}: nothing in it that can be drawn", file=sys.stderr)
            return 1
    if compared:
        programs(compared, directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
