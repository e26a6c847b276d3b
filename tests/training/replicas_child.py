"""Trains on one device and on two replicas in one process; prints the differences as JSON.

    python -m tests.training.replicas_child OPTIMIZER FOLDER

The two devices are two halves of the CPU. Rows have unequal numbers of tokens, 9 on the first
replica and 7 on the second.
"""

import json
import os
import sys

if os.environ["KERAS_BACKEND"] == "jax":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import keras
import numpy as np
import tensorflow as tf

import keras_arch as ka
from keras_arch.training.averages import EvaluateAverages
from tests.training import tiny

if keras.backend.backend() == "tensorflow":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(1.0),
    "adamw": lambda: ka.training.AdamW(0.01, global_clipnorm=0.1, use_ema=True, ema_momentum=0.5),
}
STEPS = {"sgd": 1, "adamw": 3}


def train(strategy, optimizer, folder=None):
    """Returns the variables after some steps, the loss shown and the evaluation."""
    keras.utils.set_random_seed(0)
    data = tf.data.Dataset.from_tensors(tiny.batch(4, (6, 3, 2, 5))).repeat()
    data = strategy.batches(data)
    with strategy.scope():
        model = tiny.model()
        model.compile(
            OPTIMIZERS[optimizer](),
            ka.objectives.TokenCrossentropy(),
            weighted_metrics=[ka.objectives.TokenNats(name="nats")],
            jit_compile=strategy.jit_compile(),
        )
        history = model.fit(data, steps_per_epoch=STEPS[optimizer], shuffle=False, verbose=0)
        callbacks = [EvaluateAverages()] if optimizer == "adamw" else []
        evaluation = model.evaluate(data, steps=1, verbose=0, return_dict=True, callbacks=callbacks)
        trained = tiny.variables(model)
        if folder is not None:
            restored = restore_into_fresh(model, strategy, optimizer, folder)
            for a, b in zip(trained, restored, strict=True):
                np.testing.assert_array_equal(a, b)
    return trained, history.history["loss"][0], evaluation["nats"]


def restore_into_fresh(model, strategy, optimizer, folder):
    """Saves the model, and returns the variables of another one that loaded it."""
    ka.training.Checkpoints(folder).save(model, ka.training.Progress(step=1))
    fresh = tiny.model()
    fresh.compile(OPTIMIZERS[optimizer](), ka.objectives.TokenCrossentropy())
    ka.training.Checkpoints(folder).restore(fresh)
    return tiny.variables(fresh)


def main(optimizer, folder):
    strategies = {name: ka.training.strategy(name) for name in ("one", "mirrored")}
    one = train(strategies["one"], optimizer)
    two = train(strategies["mirrored"], optimizer, folder)
    found = {
        "replicas": strategies["mirrored"].replicas,
        "weights": max(float(np.abs(a - b).max()) for a, b in zip(one[0], two[0], strict=True)),
        "loss": abs(one[1] - two[1]),
        "nats": abs(one[2] - two[2]),
        "moved": abs(one[2] - one[1]),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
