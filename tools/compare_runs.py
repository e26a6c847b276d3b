"""Prints the reports of several run folders as one table, the best first.

python tools/compare_runs.py runs/counted runs/rnn runs/demo --plot compared.png
python tools/compare_runs.py runs/finetuned runs/scratch --curves curves.png
"""

import argparse
import csv
import json
import pathlib
import sys

COLUMNS = {
    "parameters": "{:,}",
    "steps": "{:,}",
    "train_seconds": "{:.0f}",
    "validation_loss": "{:.3f}",
    "bits_per_character": "{:.3f}",
}


def read_reports(folders):
    """Returns the reports by the folders' names, lowest of the `measure` first.

    Raises:
        ValueError: If a folder has no report, or they are not all about one text.
    """
    reports = {}
    for folder in folders:
        path = folder / "report.json"
        if not path.is_file():
            raise ValueError(f"{folder} has no report.json; is the run finished?")
        reports[folder.name] = json.loads(path.read_text())
    texts = {report["corpus"]["sha256"] for report in reports.values()}
    if len(texts) > 1:
        raise ValueError(f"folders must hold runs on one text; received {len(texts)} texts.")
    name = measure(reports)
    return dict(sorted(reports.items(), key=lambda item: item[1][name]))


def measure(reports):
    """Returns the figure to compare: bits per character where all have it, else nats per token."""
    per_character = all("bits_per_character" in report for report in reports.values())
    return "bits_per_character" if per_character else "validation_loss"


def print_table(reports):
    """Prints a row for each report; "-" where a figure is missing."""
    width = max(map(len, reports)) + 2
    print(f"{'run':<{width}}" + "".join(f"{name:>20}" for name in COLUMNS))
    for name, report in reports.items():
        cells = [
            form.format(report[key]) if key in report else "-" for key, form in COLUMNS.items()
        ]
        print(f"{name:<{width}}" + "".join(f"{cell:>20}" for cell in cells))


def plot(reports, path):
    """Draws the measure as bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.5 * len(reports) + 1.5), layout="constrained")
    axes = figure.subplots()
    names, compared = list(reports)[::-1], measure(reports)
    axes.barh(names, [reports[name][compared] for name in names])
    axes.set_xlabel(f"{compared.replace('_', ' ')} of the validation split")
    figure.savefig(path)


def plot_curves(folders, path):
    """Draws the validation losses over the steps, a line a run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for folder in folders:
        with open(folder / "log.csv", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["validation_loss"]]
        steps, losses = ([float(row[key]) for row in rows] for key in ("step", "validation_loss"))
        axes.plot(steps, losses, "o-", markersize=4, label=folder.name)
    axes.set_xlabel("step")
    axes.set_ylabel("validation loss (nats per token)")
    axes.legend(frameon=False)
    figure.savefig(path)


def main():
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=pathlib.Path, help="run folders")
    parser.add_argument("--plot", type=pathlib.Path, help="PNG file to draw the table into")
    parser.add_argument("--curves", type=pathlib.Path, help="PNG file to draw the losses into")
    arguments = parser.parse_args()
    try:
        reports = read_reports(arguments.folders)
    except ValueError as error:
        sys.exit(f"compare_runs: {error}")
    print_table(reports)
    if arguments.plot is not None:
        plot(reports, arguments.plot)
    if arguments.curves is not None:
        plot_curves(arguments.folders, arguments.curves)


if __name__ == "__main__":
    main()
