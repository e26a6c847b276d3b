"""A picture of a training."""

from keras_arch.training import files

TRAIN = "#8fa8c8"
VALIDATION = "#b5402a"
INK = "#444444"


def plot_curves(progress, path, title):
    """Writes a PNG: losses in nats per token over the steps, the learning rate below.

    Args:
        progress: Progress with at least one row.
        path: file to write.
        title: heading.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    losses, rates = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    plot_losses(losses, progress)
    losses.set_title(title, loc="left", color=INK, fontsize=11)
    steps = [row["step"] for row in progress.rows]
    rates.plot(steps, [row["learning_rate"] for row in progress.rows], color=INK, linewidth=1.2)
    rates.set_ylim(bottom=0)
    rates.set_ylabel("learning rate")
    rates.set_xlabel("step")
    for axes in (losses, rates):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(colors=INK, labelsize=9)
    with files.replacing(path) as temporary:
        figure.savefig(temporary, format="png")


def plot_losses(axes, progress):
    """Draws the training and the validation loss; labels the last validation value."""
    steps = [row["step"] for row in progress.rows]
    train = [row["train_loss"] for row in progress.rows]
    axes.plot(steps, train, color=TRAIN, linewidth=1.5, label="training")
    evaluations = progress.evaluations()
    if evaluations:
        steps = [row["step"] for row in evaluations]
        values = [row["validation_loss"] for row in evaluations]
        axes.plot(steps, values, "o-", color=VALIDATION, markersize=4, label="validation")
        axes.annotate(
            f"{values[-1]:.3f}",
            (steps[-1], values[-1]),
            xytext=(0, 8),
            textcoords="offset points",
            ha="right",
            color=VALIDATION,
        )
    axes.set_ylabel("loss (nats per token)")
    axes.legend(frameon=False, labelcolor=INK)
