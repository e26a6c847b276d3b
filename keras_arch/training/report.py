"""The figures of a finished training, the same for every recipe."""

import importlib.metadata
import json
import math
import platform

import keras

from keras_arch.training import files
from keras_arch.training.progress import perplexity

PACKAGES = ("keras-arch", "keras", "tensorflow", "jax", "torch", "numpy")


def write_report(path, model, progress, *, seed, row, validation_tokens, tokens_per_step, **more):
    """Writes report.json and returns its content.

    Args:
        path: file to write.
        model: the trained model.
        progress: its Progress.
        seed: seed of the run.
        row: the log row of the weights reported, with `step` and `validation_loss`.
        validation_tokens: target tokens in the validation split.
        tokens_per_step: target tokens of one update.
        more: further figures, such as `validation_characters`, from which bits per character
            follow: nats * tokens / (characters * ln 2).
    """
    nats = row["validation_loss"]
    ms_per_step = progress.ms_per_step()
    report = {
        "backend": keras.backend.backend(),
        "seed": seed,
        "steps": row["step"],
        "parameters": model.count_params(),
        "train_seconds": round(progress.train_seconds, 3),
        "ms_per_step": ms_per_step and round(ms_per_step, 3),
        "tokens_per_second": ms_per_step and round(1000 * tokens_per_step / ms_per_step, 1),
        "validation_loss": nats,
        "validation_tokens": validation_tokens,
        "perplexity": perplexity(nats),
    }
    characters = more.get("validation_characters")
    if characters:
        report["bits_per_character"] = nats * validation_tokens / (characters * math.log(2))
    report |= more | {"python": platform.python_version(), "versions": versions()}
    files.write_text(path, json.dumps(report, indent=2) + "\n")
    return report


def versions():
    """Returns the versions of the installed packages that shape a result."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
