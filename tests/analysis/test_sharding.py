import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.analysis.costs import stack
from keras_arch.analysis.sharding import (
    activation_bytes_of,
    parameters_of,
    sent_bytes,
    share,
    training_flops_of,
)
from keras_arch.models import GPT2Config, LlamaConfig

CONFIG = GPT2Config(vocabulary_size=10, width=8, layers=2, heads=2, context_length=6)
SIZES = stack(CONFIG)
PARAMETERS = 1888
FLOPS = 24 * 10848  # of four rows of six tokens


def figures(sharding, devices=2, sizes=SIZES):
    """Parameters, FLOPs, activations and sent bytes of a device, of four rows of six tokens."""
    part = share(sizes, 4, 6, devices, sharding)
    return (
        parameters_of(sizes, part),
        training_flops_of(sizes, part, 6),
        activation_bytes_of(sizes, part, 6, 4),
        sent_bytes(sizes, part, devices, sharding, 4),
    )


@pytest.mark.once
def test_rows():
    # Two rows; a ring sends an array's half twice.
    assert figures("data") == (PARAMETERS, FLOPS / 2, 12 * 1744, 4 * PARAMETERS)
    assert figures("data", devices=4)[3] == 2 * 3 / 4 * 4 * PARAMETERS


@pytest.mark.once
def test_heads_and_units():
    # Halved: matrices 768, their biases 56, the table 80. Whole: vectors, positions, last norm.
    parameters = (2 * (768 + 56) + 80) / 2 + 2 * 48 + 48 + 16
    # 6 * 8 numbers of a token are whole; 24 + 8 + 96, and one head's scores, are not.
    token = 2 * (4 * (48 + 64) + 2 * 4 * 6) + 3 * 4 * 6
    # Four sums of the stream a block and two outside, of 24 tokens of 8 float32.
    assert figures("tensor") == (parameters, FLOPS / 2, 24 * token, 10 * 24 * 8 * 4)


@pytest.mark.once
def test_a_table_that_does_not_divide_is_whole():
    sizes = stack(GPT2Config(vocabulary_size=11, width=8, layers=2, heads=2, context_length=6))
    parameters, flops, _, sent = figures("tensor", sizes=sizes)
    assert parameters == 2 * (768 + 56) / 2 + 88 + 2 * 48 + 48 + 16
    assert flops == 3 * 24 * (2 * (2 * 768 + 4 * 8 * 6) / 2 + 2 * 88)
    assert sent == 8 * 24 * 8 * 4


@pytest.mark.once
def test_tokens():
    # Each device keeps the other's keys and values, 2 * 8 float32 a token and block.
    token = 1744 + 2 * 2 * 8 * 4
    keys_and_values = 2 * 24 * 2 * 8 * 4
    sent = 4 * PARAMETERS + keys_and_values
    assert figures("sequence") == (PARAMETERS, FLOPS / 2, 12 * token, sent)


@pytest.mark.once
@pytest.mark.parametrize("sharding", ["data", "tensor", "sequence"])
def test_one_device_sends_nothing(sharding):
    assert figures(sharding, devices=1) == (PARAMETERS, FLOPS, 24 * 1744, 0)


@pytest.mark.once
@pytest.mark.parametrize(
    ("sharding", "devices", "message"),
    [
        ("data", 3, "divide batch_size .*devices=3, batch_size=4"),
        ("sequence", 4, "divide length .*devices=4, length=6"),
        ("tensor", 4, "divide heads .*devices=4, heads=2"),
    ],
)
def test_what_does_not_divide_is_named(sharding, devices, message):
    with pytest.raises(ValueError, match=message):
        share(SIZES, 4, 6, devices, sharding)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="XLA counts on JAX")
@pytest.mark.parametrize(
    "config",
    [
        GPT2Config(vocabulary_size=2048, width=128, layers=4, heads=4, context_length=128),
        LlamaConfig(
            vocabulary_size=512,
            width=128,
            layers=4,
            heads=8,
            key_value_heads=2,
            hidden_width=344,
            context_length=128,
        ),
    ],
)
def test_activations_are_those_that_xla_keeps(config):
    import jax

    model = ka.models.builder(config)(config)
    ids = np.zeros((4, 128), "int32")

    def loss(weights):
        logits, _ = model.stateless_call(weights, [], {"token_ids": ids, "valid": ids == 0})
        return ka.objectives.TokenCrossentropy()(ids, logits)

    weights = [v.value for v in model.trainable_variables]
    kept = jax.jit(jax.grad(loss)).lower(weights).compile().memory_analysis().temp_size_in_bytes
    sizes = stack(config)
    expected = activation_bytes_of(sizes, share(sizes, 4, 128, 1, "data"), 128, 4)
    assert expected == pytest.approx(kept, rel=0.15)
