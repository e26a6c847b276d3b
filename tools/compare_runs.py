"""Prints the reports of several run folders as one table, the best first.

python tools/compare_runs.py runs/counted runs/rnn runs/demo --plot compared.png
"""

import argparse
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
    """Returns the reports by the folders' names, lowest bits per character first.

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
    return dict(sorted(reports.items(), key=lambda item: item[1]["bits_per_character"]))


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
    """Draws bits per character as bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.5 * len(reports) + 1.5), layout="constrained")
    axes = figure.subplots()
    names = list(reports)[::-1]
    axes.barh(names, [reports[name]["bits_per_character"] for name in names])
    axes.set_xlabel("bits per character of the validation split")
    figure.savefig(path)


def main():
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=pathlib.Path, help="run folders")
    parser.add_argument("--plot", type=pathlib.Path, help="PNG file to draw the table into")
    arguments = parser.parse_args()
    try:
        reports = read_reports(arguments.folders)
    except ValueError as error:
        sys.exit(f"compare_runs: {error}")
    print_table(reports)
    if arguments.plot is not None:
        plot(reports, arguments.plot)


if __name__ == "__main__":
    main()
