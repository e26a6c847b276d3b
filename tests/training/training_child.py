"""A short training in a run folder, for tests that kill it.

    python -m tests.training.training_child FOLDER KILL

KILL is "never", "batch:N" (after the Nth batch of this process) or "MODULE.FUNCTION:N" (instead of
the Nth call of that function, such as os.replace:2). When it ends, it writes all variables.
"""

import importlib
import os
import pathlib
import signal
import sys

import keras
import numpy as np

import keras_arch as ka
from tests.training import tiny


class KillAfter(keras.callbacks.Callback):
    """Kills this process after a number of batches."""

    def __init__(self, batches):
        super().__init__()
        self.left = batches

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def kill_instead(name, call):
    """Replaces a function by one that kills this process at its Nth call."""
    module, _, function = name.rpartition(".")
    module = importlib.import_module(module)
    original = getattr(module, function)
    calls = []

    def counted(*args, **kwargs):
        calls.append(None)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)

    setattr(module, function, counted)


def main(folder, kill):
    keras.utils.set_random_seed(3)
    name, _, count = kill.partition(":")
    if name not in ("never", "batch"):
        kill_instead(name, int(count))
    run = ka.training.RunFolder(folder, {"seed": 3})
    schedule = ka.training.WarmupCosine(0.01, 0.001, 2, 12)
    model = tiny.model(dropout=0.3)
    model.compile(
        ka.training.AdamW(schedule, global_clipnorm=1.0, use_ema=True, ema_momentum=0.9),
        ka.objectives.TokenCrossentropy(),
        weighted_metrics=[ka.objectives.TokenNats(name="nats")],
        jit_compile=keras.backend.backend() == "jax",
    )
    if name == "batch":
        fit = model.fit
        extra = [KillAfter(int(count))]
        model.fit = lambda *a, **k: fit(*a, **k | {"callbacks": k["callbacks"] + extra})
    ka.training.fit(
        model,
        tiny.dataset,
        tiny.dataset(1 << 20).take(2),
        run,
        schedule=schedule,
        steps=12,
        evaluate_every=4,
        log_every=2,
    )
    np.savez(
        pathlib.Path(folder) / "end.npz", *tiny.variables(model), *tiny.variables(model.optimizer)
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
