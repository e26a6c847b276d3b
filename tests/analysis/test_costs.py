import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.analysis import costs
from keras_arch.models import GPT2Config, LlamaConfig

SMALL = {"vocabulary_size": 10, "width": 8, "layers": 2, "heads": 2, "context_length": 6}


def gpt2(**fields):
    return GPT2Config(**SMALL | fields)


def llama(**fields):
    return LlamaConfig(**SMALL | {"hidden_width": 12} | fields)


CONFIGS = [
    gpt2(),
    gpt2(use_bias=False, tied=False, hidden_width=20),
    llama(),
    llama(key_value_heads=1, use_bias=True, query_key_norm=True, head_width=6, tied=True),
    llama(use_output_bias=True, use_feedforward_bias=True, layers=3, window=4),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_parameters_are_those_of_the_model(config):
    model = ka.models.builder(config)(config)
    assert costs.stack(config).parameters == model.count_params()


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "size", "parameters"),
    [
        ("gpt2", "small", 124_439_808),
        ("gpt2", "xl", 1_557_611_200),
        ("llama", "7b", 6_738_415_616),
        ("llama", "65b", 65_285_660_672),
    ],
)
def test_parameters_are_the_published(name, size, parameters):
    assert costs.stack(ka.models.SIZES[name][size]).parameters == parameters


@pytest.mark.once
def test_flops_by_hand():
    # 8 columns of width 8 by 24 + 8 + 32 + 32 = 96; two blocks, the head, scores and mix of 6.
    assert costs.forward_flops(gpt2(), 6) == 2 * (2 * 8 * 96 + 10 * 8) + 2 * (4 * 8 * 6)
    # One key/value head of 4: columns 8 + 8 + 8, output 8, gate and value 24, down 12.
    config = llama(key_value_heads=1, tied=True)
    forward = 2 * (2 * 8 * (16 + 8 + 24 + 12) + 80) + 2 * (4 * 8 * 3)
    assert costs.forward_flops(config, 3) == forward
    assert costs.training_flops(config, 3) == 3 * forward
    # A head of its own multiplies as the table does, and the lookup multiplies nothing.
    assert costs.forward_flops(llama(key_value_heads=1), 3) == forward


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="XLA counts on JAX")
@pytest.mark.parametrize("kind", [gpt2, llama])
def test_flops_are_those_that_xla_counts(kind):
    import jax

    shape = {"vocabulary_size": 512, "width": 256, "heads": 4, "context_length": 64}
    config = kind(**shape, hidden_width=1024)
    model, inputs, targets = built(config)

    def loss(weights):
        logits, _ = model.stateless_call(weights, [], inputs)
        return ka.objectives.TokenCrossentropy()(targets, logits)

    weights = [v.value for v in model.trainable_variables]
    for function, flops in (
        (loss, costs.forward_flops(config, 64)),
        (jax.grad(loss), costs.training_flops(config, 64)),
    ):
        counted = jax.jit(function).lower(weights).compile().cost_analysis()["flops"]
        assert counted == pytest.approx(2 * 64 * flops, rel=0.04)


def built(config):
    """A model, and two rows of 64 tokens for it."""
    ids = np.random.default_rng(0).integers(0, config.vocabulary_size, (2, 65)).astype("int32")
    inputs = {"token_ids": ids[:, :-1], "valid": np.ones((2, 64), "bool")}
    return ka.models.builder(config)(config), inputs, ids[:, 1:]


@pytest.mark.parametrize("config", CONFIGS)
def test_the_cache_has_the_bytes_of_the_state(config):
    model = ka.models.builder(config)(config)
    blocks = [layer for layer in model.layers if isinstance(layer, ka.layers.DecoderBlock)]
    states = [block.start(3, 5) for block in blocks]
    arrays = [keras.ops.convert_to_numpy(x) for x in keras.tree.flatten(states)]
    assert costs.cache_bytes(config, 3, 5) == sum(array.nbytes for array in arrays)


@pytest.mark.once
def test_half_precision_halves_keys_and_values():
    # Two blocks, three rows, five slots: 2 * 2 * 4 numbers of two bytes, and an int32.
    assert costs.cache_bytes(gpt2(), 3, 5, itemsize=2) == 2 * 3 * 5 * (2 * 8 * 2 + 4)


@pytest.mark.once
def test_other_configs_are_named():
    with pytest.raises(
        ValueError, match="must be a GPT2Config or a LlamaConfig; received config=B"
    ):
        costs.stack(ka.models.BERTConfig(**SMALL))
