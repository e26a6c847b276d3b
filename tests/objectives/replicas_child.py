"""Trains on two replicas with a label outside the vocabulary; prints what that did."""

import os

if os.environ.get("KERAS_BACKEND") == "jax":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import keras
import numpy as np
import tensorflow as tf

import keras_arch as ka

if keras.backend.backend() == "tensorflow":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


def loss_or_error(model, targets):
    """Returns "finite" or "nan", or the error's text."""
    inputs = np.zeros_like(targets)
    try:
        loss = model.evaluate(inputs, targets, batch_size=4, verbose=0)
    except tf.errors.InvalidArgumentError as error:
        return str(error)
    return "finite" if np.isfinite(loss) else "nan"


def main():
    strategy = ka.training.strategy("mirrored")
    targets = np.zeros((4, 3), "int32")
    wrong = targets.copy()
    wrong[3, 1] = 77
    with strategy.scope():
        model = keras.Sequential([keras.Input((3,), dtype="int32"), keras.layers.Embedding(5, 5)])
        model.compile("sgd", ka.objectives.TokenCrossentropy())
        before, then, after = (loss_or_error(model, y) for y in (targets, wrong, targets))
    promised = then == "nan" if keras.backend.backend() == "jax" else "] [77]" in then
    then = "as promised" if promised else then
    print(f"replicas {strategy.replicas}, before {before}, then {then}, after {after}")


if __name__ == "__main__":
    main()
