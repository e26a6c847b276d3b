"""Trains on one device and on eight, by rows and by heads; prints the differences as JSON.

    python -m tests.models.layout_child CONFIG

CONFIG is a label of `CONFIGS`. The devices are forced on the CPU. The rows have unequal lengths.
"""

import json
import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = " ".join(
    ["--xla_force_host_platform_device_count=8", os.environ.get("XLA_FLAGS", "")]
)

import keras
import numpy as np

import keras_arch as ka

SHAPE = {"width": 32, "layers": 1, "heads": 8, "context_length": 8}
CONFIGS = {
    "gpt2": ka.models.GPT2Config(vocabulary_size=19, **SHAPE),
    "llama": ka.models.LlamaConfig(
        vocabulary_size=24, key_value_heads=4, use_bias=True, hidden_width=48, **SHAPE
    ),
}


def train(config, distribution=None):
    """Returns the weights after five steps of AdamW, and the model."""
    if distribution is not None:
        keras.distribution.set_distribution(distribution)
    keras.utils.set_random_seed(0)
    model = ka.models.builder(config)(config)
    ids = np.random.default_rng(0).integers(0, config.vocabulary_size, (8, 9)).astype("int32")
    valid = np.arange(9) < np.array([9, 3, 5, 9, 2, 7, 9, 4])[:, None]
    inputs, targets, weights = ka.objectives.next_token(ids, valid)
    model.compile(ka.training.AdamW(0.001, global_clipnorm=0.1), ka.objectives.TokenCrossentropy())
    model.fit(inputs, targets, 8, 5, sample_weight=weights, shuffle=False, verbose=0)
    keras.distribution.set_distribution(None)
    return model.get_weights(), model


def main(label):
    config = CONFIGS[label]
    devices = keras.distribution.list_devices()
    mesh = keras.distribution.DeviceMesh((2, 4), ("batch", "model"), devices)
    layouts = ka.models.layout_map(config, mesh)
    keras.utils.set_random_seed(0)
    start = ka.models.builder(config)(config).get_weights()
    one, _ = train(config)
    rows, _ = train(config, keras.distribution.DataParallel(devices=devices))
    heads, model = train(config, keras.distribution.ModelParallel(layout_map=layouts))
    shards = {v.path: v.value.addressable_shards[0].data.shape for v in model.trainable_variables}
    print(
        json.dumps(
            {
                "rows": difference(one, rows),
                "heads": difference(one, heads),
                "moved": difference(one, start),
                "shards": shards,
            }
        )
    )


def difference(some, others):
    """Returns the largest difference of two lists of arrays."""
    return max(float(np.abs(a - b).max()) for a, b in zip(some, others, strict=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
