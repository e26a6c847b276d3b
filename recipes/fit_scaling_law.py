"""Trains a grid of small GPTs on a text and fits the scaling law L(N, D) = E + A/N^a + B/D^b.

    KERAS_BACKEND=jax python recipes/fit_scaling_law.py --data my.txt --width 16 32 64
    python recipes/fit_scaling_law.py --steps 250 500 1000 2000 --budget 1e13 1e14

Each pair of width and steps is a run of recipes/train_gpt.py with a learning rate that falls to its
end, in a run folder of its own, without samples and export; the other flags are those of that
recipe. The same command goes on where it stood. `law.json` has the constants with their intervals,
and parameters and tokens of the least loss for each budget of FLOPs; `law.png` the fit. N counts
all parameters, D the tokens seen: of a text that is read again and again the law says too much.
"""

import dataclasses
import itertools
import json
import pathlib

import numpy as np
import train_gpt
from parts import text_model
from parts.training_run import command, train_in_folder

import keras_arch as ka
from keras_arch.checks import check_count, check_positive_number


@dataclasses.dataclass(frozen=True)
class Settings(train_gpt.Settings):
    """Settings of a grid."""

    run_folder: pathlib.Path = pathlib.Path("runs/scaling")  # Where everything goes
    width: tuple[int, ...] = (16, 32, 64, 128)  # Widths of the residual stream
    steps: tuple[int, ...] = (250, 500, 1000, 2000)  # Updates
    resamples: int = 200  # Draws for the intervals
    budget: tuple[float, ...] = (1e13, 1e14, 1e15)  # Training FLOPs to find the best model for

    def check_grid(self):
        """Raises ValueError for a grid that no law can be fitted to, before anything is trained."""
        check_count(resamples=self.resamples)
        for flops in self.budget:
            check_positive_number(budget=flops)
        for name in ("width", "steps"):
            values = getattr(self, name)
            if len(set(values)) < max(2, len(values)):
                raise ValueError(
                    f"{name} must be two different values or more; received {name}={values}."
                )
        if len(self.width) * len(self.steps) < 6:
            raise ValueError(
                "a law of 5 constants needs 6 runs or more; received "
                f"width={self.width}, steps={self.steps}."
            )

    def runs(self):
        """Returns the settings of each run."""
        shared = {field.name: getattr(self, field.name) for field in _fields()}
        return [
            train_gpt.Settings(
                **shared | {"width": width, "steps": steps},
                run_folder=self.run_folder / f"width_{width}_steps_{steps}",
            )
            for width, steps in itertools.product(self.width, self.steps)
        ]


def _fields():
    fields = dataclasses.fields(train_gpt.Settings)
    return [field for field in fields if field.name != "run_folder"]


def main(settings):
    """Trains what is not trained yet, fits the law, writes and prints it."""
    settings.check_grid()
    strategy = ka.training.strategy(settings.strategy)
    runs = settings.runs()
    for run in runs:
        run.check(strategy)
    files = ka.text.find_corpus(settings.data)
    for number, run in enumerate(runs, start=1):
        if strategy.chief:
            print(f"Run {number} of {len(runs)}: width {run.width}, {run.steps} updates.")
        train(run, strategy, files)
    if not strategy.chief:
        return
    points = [point(run) for run in runs]
    fitted = ka.analysis.fit_scaling_law(
        *(np.array([each[name] for each in points]) for name in ("parameters", "tokens", "loss")),
        resamples=settings.resamples,
        seed=settings.seed,
    )
    report = {name: dataclasses.asdict(getattr(fitted, name)) for name in ("law", "low", "high")}
    report["optimal"] = [optimum(fitted.law, flops) for flops in settings.budget]
    report["points"] = points
    text = json.dumps(report, indent=2)
    ka.training.write_text(settings.run_folder / "law.json", text + "\n")
    plot(fitted.law, points, settings.run_folder / "law.png")
    print(text)


def train(run, strategy, files):
    """Trains one model in its run folder, or goes on."""

    def work(folder):
        model, progress, row, data = text_model.train(run, strategy, folder, files)
        if strategy.chief:
            return text_model.report(run, strategy, folder, model, progress, row, data)
        return None

    train_in_folder(run, strategy, text_model.describe(files), work)


def point(run):
    """Returns N, D and L of a finished run."""
    report = json.loads((run.run_folder / "report.json").read_text())
    return {
        "parameters": report["parameters"],
        "tokens": report["steps"] * run.batch_size * run.context,
        "loss": report["validation_loss"],
    }


def optimum(law, flops):
    """Returns what the law says of a budget."""
    parameters, tokens = law.optimal(flops)
    loss = float(law.loss(parameters, tokens))
    return {"flops": flops, "parameters": parameters, "tokens": tokens, "loss": loss}


def plot(law, points, path):
    """Draws the losses over the tokens, a colour for each size, and the law as lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    tokens = np.array(sorted({each["tokens"] for each in points}))
    line = np.geomspace(tokens[0], tokens[-1])
    for index, parameters in enumerate(sorted({each["parameters"] for each in points})):
        own = [each for each in points if each["parameters"] == parameters]
        colour = f"C{index}"
        axes.plot([p["tokens"] for p in own], [p["loss"] for p in own], "o", color=colour)
        label = f"{parameters:,} parameters"
        axes.plot(line, law.loss(parameters, line), color=colour, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("tokens seen")
    axes.set_ylabel("validation loss, nats per token")
    axes.legend(frameon=False)
    axes.set_title(
        f"{law.irreducible:.2f} + {law.parameter_scale:.3g} / N^{law.parameter_power:.2f}"
        f" + {law.token_scale:.3g} / D^{law.token_power:.2f}"
    )
    figure.savefig(path)


if __name__ == "__main__":
    command(main, Settings, __doc__)
