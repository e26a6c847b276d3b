"""A short training as one worker of the cluster in TF_CONFIG, or without one.

    python -m tests.training.workers_child FOLDER NAME KILL

KILL is "never" or after how many batches this process kills itself. In the end it writes its
variables to FOLDER/../NAME.npz.
"""

import pathlib
import sys

import keras
import numpy as np

import keras_arch as ka
from tests.training import tiny
from tests.training.training_child import KillAfter


def main(folder, name, kill):
    strategy = ka.training.strategy("auto")
    keras.utils.set_random_seed(3)
    schedule = ka.training.WarmupCosine(0.01, 0.001, 2, 10)
    with ka.training.shared_run_folder(strategy, folder, {"seed": 3}) as run:
        with strategy.scope():
            model = tiny.model()
        trained = strategy.trainable(model)
        if kill != "never":
            fit = trained.fit
            trained.fit = lambda *args, callbacks, **kwargs: fit(
                *args, callbacks=[*callbacks, KillAfter(int(kill))], **kwargs
            )
        with strategy.scope():
            trained.compile(
                ka.training.AdamW(schedule, global_clipnorm=0.1),
                ka.objectives.TokenCrossentropy(label_smoothing=0.1),
                weighted_metrics=[ka.objectives.TokenNats(name="nats")],
                jit_compile=strategy.jit_compile(False),
            )
            ka.training.fit(
                trained,
                lambda step: strategy.batches(tiny.dataset(step)),
                strategy.batches(tiny.dataset(1 << 20).take(2)),
                run,
                schedule=schedule,
                steps=10,
                evaluate_every=5,
                log_every=5,
                chief=strategy.chief,
            )
        np.savez(
            pathlib.Path(folder).parent / f"{name}.npz",
            *tiny.variables(model),
            *tiny.variables(trained.optimizer),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
