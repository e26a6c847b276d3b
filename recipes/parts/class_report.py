"""How well classes are told: accuracy, F1 and calibration, as numbers and as plots."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from parts.table import write_table

import keras_arch as ka

BINS = 15
BLUE, RED, INK = "#8fa8c8", "#b5402a", "#444444"


def confusion(truth, found, classes):
    """Returns how often each class was taken for each, int `[C, C]`: rows are the truth.

    Args:
        truth: int `[n]`.
        found: int `[n]`.
        classes: C.
    """
    counts = np.zeros((classes, classes), int)
    np.add.at(counts, (truth, found), 1)
    return counts


def f1_scores(counts):
    """Returns the F1 of each class, `2 TP / (2 TP + FP + FN)`; 0 where there is nothing.

    Args:
        counts: int `[C, C]`, from `confusion`.
    """
    right, total = np.diag(counts), counts.sum(axis=0) + counts.sum(axis=1)
    return np.divide(2 * right, total, out=np.zeros(len(counts)), where=total > 0)


def calibration(probabilities, right, bins=BINS):
    """Returns of each bin of confidence how many fall into it, their mean confidence and accuracy.

    Bins are of one width, each with its upper end (Guo et al. 2017, section 2). An empty one has
    zeros.

    Args:
        probabilities: float `[n]`, of the classes that were chosen.
        right: bool `[n]`, whether they are true.
        bins: How many.

    Returns:
        `(counts, confidence, accuracy)`, each `[bins]`.
    """
    place = np.clip(np.ceil(probabilities * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    sums = [np.bincount(place, x, minlength=bins) for x in (probabilities, right)]
    means = [np.divide(x, counts, out=np.zeros(bins), where=counts > 0) for x in sums]
    return counts, *means


def calibration_error(probabilities, right, bins=BINS):
    """Returns the expected calibration error: the bins' mean gap, weighed by what is in them.

    Source: Guo et al. 2017, section 2, equation 3; arguments as in `calibration`.
    """
    counts, confidence, accuracy = calibration(probabilities, right, bins)
    return float((counts * abs(accuracy - confidence)).sum() / counts.sum())


def figures(truth, probabilities, labels):
    """Returns the figures for the report.

    Args:
        truth: int `[n]`.
        probabilities: float `[n, C]`.
        labels: Names of the C classes.
    """
    found = probabilities.argmax(axis=-1)
    counts = confusion(truth, found, len(labels))
    scores = f1_scores(counts)
    return {
        "accuracy": float((found == truth).mean()),
        "macro_f1": float(scores.mean()),
        "f1": dict(zip(labels, scores.tolist(), strict=True)),
        "calibration_error": calibration_error(probabilities.max(axis=-1), found == truth),
        "confusion": counts.tolist(),
    }


def write_predictions(truth, probabilities, labels, folder):
    """Writes the plots, and `predictions.tsv`: each true class, and what was found instead.

    Args:
        truth: As for `figures`; so are the others.
        probabilities: float `[n, C]`.
        labels: Names of the C classes.
        folder: The run folder.
    """
    found, best = probabilities.argmax(axis=-1), probabilities.max(axis=-1)
    plot_confusion(confusion(truth, found, len(labels)), labels, folder / "confusion.png")
    plot_reliability(best, found == truth, folder / "reliability.png")
    rows = [(labels[i], labels[k], f"{p:.6f}") for i, k, p in zip(truth, found, best, strict=True)]
    write_table(folder / "predictions.tsv", ["true", "found", "probability"], rows)


def plot_confusion(counts, labels, path):
    """Writes a PNG: rows are the truth, columns what was found; shades are shares of a row.

    Args:
        counts: int `[C, C]`, from `confusion`.
        labels: Names of the classes.
        path: File to write.
    """
    size = 2.5 + 0.6 * len(labels)
    figure, axes = _figure(size, size)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(*counts.shape):
        color = "white" if shares[i, j] > 0.5 else INK
        axes.text(j, i, str(counts[i, j]), ha="center", va="center", color=color, fontsize=9)
    axes.set_xticks(range(len(labels)), labels, rotation=45, ha="right")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlabel("found")
    axes.set_ylabel("true")
    _save(figure, path)


def plot_reliability(probabilities, right, path):
    """Writes a PNG: how often the model is right, by how sure it is; arguments of `calibration`."""
    counts, confidence, accuracy = calibration(probabilities, right)
    figure, axes = _figure(5, 5)
    filled = counts > 0
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle="--")
    sizes = 20 + 200 * counts[filled] / counts.sum()
    axes.scatter(confidence[filled], accuracy[filled], s=sizes, color=BLUE, zorder=2)
    axes.plot(confidence[filled], accuracy[filled], color=RED, linewidth=1.2)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="probability", ylabel="share that is right")
    error = calibration_error(probabilities, right)
    axes.set_title(f"expected calibration error {error:.3f}", loc="left", color=INK, fontsize=11)
    _save(figure, path)


def _figure(width, height):
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _save(figure, path):
    with ka.training.replacing(path) as temporary:
        figure.savefig(temporary, format="png")
