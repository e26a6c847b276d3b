import dataclasses

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.layers import TokenEmbedding
from tests.contracts.tiny import CONFIGS, V, build, context_of, inputs_of, logits, naive_greedy

#: Stacks of one block; that of a decoder with a source has three sublayers.
SMALL = {name: dataclasses.replace(CONFIGS[name], layers=1) for name in ("gpt2", "llama", "bert")}
SMALL |= {name: dataclasses.replace(CONFIGS[name], decoder_layers=1) for name in ("t5", "bart")}
#: XLA is not worth its compiling for two updates.
JIT = keras.backend.backend() == "jax"
TOKENS = np.random.default_rng(3).integers(1, V, (3, 6)).astype("int32")


def values(model):
    return {v.path: keras.ops.convert_to_numpy(v) for v in model.variables}


def frozen(model):
    """Freezes all of it, for PyTorch rounds otherwise where there are gradients; returns it."""
    ka.models.freeze(model, "*")
    return model


def train(model):
    """Two updates: the first moves the second matrix alone, for that is zero."""
    if isinstance(model.output, dict):
        model = ka.models.span_answers(model)
        inputs, targets, weights = inputs_of(model, TOKENS), np.array([[1, 2]] * 3), None
    else:
        inputs, targets, weights = ka.objectives.next_token(TOKENS, TOKENS > 0)
        inputs |= context_of(model, 3)
    optimizer, loss = keras.optimizers.Adam(0.05), ka.objectives.TokenCrossentropy()
    model.compile(optimizer, loss, jit_compile=JIT)
    model.fit(inputs, targets, sample_weight=weights, epochs=2, batch_size=3, verbose=0)


def hosts(label, placement):
    """The paths of the residual parts that get one."""
    parts = {"block_0": ["attention", "feedforward"]}
    if label == "t5":
        parts = {"encoder_block_0": parts["block_0"]}
        parts["decoder_block_0"] = ["attention", "cross_attention", "feedforward"]
    paths = {f"{block}/{part}" for block, names in parts.items() for part in names}
    return {p for p in paths if placement == "houlsby" or p.endswith("feedforward")}


@pytest.mark.parametrize(
    ("label", "placement"),
    [("llama", "houlsby"), ("t5", "houlsby"), ("bert", "pfeiffer")],
)
def test_adapters_alone_are_trained_and_saved(label, placement, tmp_path):
    model = frozen(build(SMALL[label]))
    before, weights = logits(model, TOKENS), values(model)
    adapted = ka.models.add_adapters(model, 4, placement)
    np.testing.assert_array_equal(logits(adapted, TOKENS), before)
    names = ["norm/scale", "norm/offset", "down/kernel", "down/bias", "up/kernel", "up/bias"]
    trained = {v.path for v in adapted.trainable_variables}
    expected = {f"{h}/adapter/{name}" for h in hosts(label, placement) for name in names}
    assert trained == expected

    fresh = values(adapted)
    kernels = [fresh[path] for path in trained if path.endswith("down/kernel")]
    assert all(not np.array_equal(kernels[0], kernel) for kernel in kernels[1:])
    train(adapted)
    after, found = logits(frozen(adapted), TOKENS), values(adapted)
    assert np.abs(after - before).max() > 1e-2
    for path, value in weights.items():
        np.testing.assert_array_equal(found[path], value, err_msg=path)
    assert all(not np.array_equal(found[path], fresh[path]) for path in trained)
    np.testing.assert_array_equal(logits(model, TOKENS), before)

    adapted.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_array_equal(logits(frozen(loaded), TOKENS), after)


@pytest.mark.parametrize("label", ["gpt2", "bart"])
def test_an_adapted_decoder_generates_as_it_scores(label):
    model = ka.models.add_adapters(build(SMALL[label]), 4)
    random = np.random.default_rng(5)
    for variable in model.trainable_variables:
        variable.assign(random.normal(scale=0.4, size=variable.shape))
    rows = [[1, 2, 3, 4, 5], [7], [9, 8, 7]]
    found = ka.generate(model, rows, max_new_tokens=6, context=context_of(model, 3))
    np.testing.assert_array_equal(found.token_ids, naive_greedy(model, rows, 6))


def test_a_head_and_norms_that_are_named_are_trained_too():
    encoder = build(CONFIGS["distilbert"])
    model = ka.models.sequence_classification(encoder, 3)
    adapted = ka.models.add_adapters(model, 4, trained=["classes/*", "block_*/norm/*"])
    others = {v.path for v in adapted.trainable_variables if "/adapter/" not in v.path}
    sublayers = ("block_0/attention", "block_0/feedforward")
    norms = {f"{host}/norm/{name}" for host in sublayers for name in ("scale", "offset")}
    assert others == {"classes/kernel", "classes/bias"} | norms


def test_a_quantised_model_takes_float_adapters(tmp_path):
    model = build(SMALL["gpt2"])
    model.quantize(
        config=keras.quantizers.Int8QuantizationConfig(activation_quantizer=None),
        filters=lambda layer: isinstance(layer, keras.layers.Dense | TokenEmbedding),
    )
    before, weights = logits(frozen(model), TOKENS), values(model)
    adapted = ka.models.add_adapters(model, 4)
    np.testing.assert_array_equal(logits(adapted, TOKENS), before)
    assert {v.dtype for v in adapted.trainable_variables} == {"float32"}
    train(adapted)
    after, found = logits(frozen(adapted), TOKENS), values(adapted)
    assert np.abs(after - before).max() > 1e-2
    for path, value in weights.items():
        assert found[path].dtype == value.dtype
        np.testing.assert_array_equal(found[path], value, err_msg=path)
    assert sum(value.dtype == "int8" for value in found.values()) == 5
    adapted.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_array_equal(logits(frozen(loaded), TOKENS), after)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: ka.models.add_adapters(m, 0), "width must be a positive integer; .*width=0"),
        (
            lambda m: ka.models.add_adapters(m, 4, "parallel"),
            r"one of \['houlsby', 'pfeiffer'\]; received placement='parallel'",
        ),
        (lambda m: ka.models.add_adapters(m, 4, trained=["no*"]), "variables; received 'no\\*'"),
        (
            lambda m: ka.models.add_adapters(ka.models.add_adapters(m, 4, "pfeiffer"), 4),
            "adapters already; received one in 'feedforward'",
        ),
        (
            lambda m: ka.models.add_lora(m, 2) and ka.models.add_adapters(m, 4),
            "has updates of low rank; merge them first",
        ),
        (
            lambda m: ka.models.add_adapters(build(CONFIGS["lstm_lm"]), 4),
            "'lstm_lm' has no blocks of residual parts, .* received layers token_ids, tokens",
        ),
    ],
)
def test_what_cannot_be_adapted_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        change(build(SMALL["gpt2"]))


@pytest.mark.once
def test_an_adapted_model_is_no_checkpoint(tmp_path):
    model = ka.models.add_adapters(build(CONFIGS["gpt2"]), 4)
    with pytest.raises(ValueError, match="the layer block_0 of gpt2 is not that of"):
        ka.checkpoints.save(model, tmp_path / "folder")
