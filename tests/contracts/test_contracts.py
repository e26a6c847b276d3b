"""What every model of the catalog must keep."""

import dataclasses
import functools
import inspect
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from tests.contracts.tiny import (
    CONFIGS,
    DECODERS,
    ENCODERS,
    V,
    build,
    context_of,
    inputs_of,
    logits,
    naive_greedy,
    shared,
    stepped_logits,
    tokens_output,
)

ROOT = Path(__file__).parents[2]
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
every_decoder = pytest.mark.parametrize("config", DECODERS.values(), ids=DECODERS.keys())
every_encoder = pytest.mark.parametrize("config", ENCODERS.values(), ids=ENCODERS.keys())


@pytest.fixture(autouse=True, scope="module")
def forget_shared_models():
    """Lets the models of this file go: each holds several compiled programs."""
    yield
    shared.cache_clear()


@pytest.fixture
def token_ids():
    return np.random.default_rng(1).integers(0, V, (3, 12)).astype("int32")


@pytest.fixture
def ragged():
    """Left pads, none, right pads."""
    valid = np.ones((3, 12), "bool")
    valid[0, :5] = False
    valid[2, 9:] = False
    return valid


def test_configs_cover_the_catalog():
    assert {label.split("-")[0] for label in CONFIGS} == set(ka.models.catalog)


@every_config
def test_keras_file_round_trip(config, token_ids, tmp_path):
    model = shared(config)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits(again, token_ids), logits(model, token_ids))


def test_keras_file_of_another_backend(token_ids, tmp_path):
    np.save(tmp_path / "token_ids.npy", token_ids)
    for label, config in CONFIGS.items():
        model = shared(config)
        model.save(tmp_path / f"{label}.keras")
        np.save(tmp_path / f"{label}.npy", logits(model, token_ids))
    others = {"tensorflow", "jax", "torch"} - {keras.backend.backend()}
    for backend in sorted(others):
        pytest.importorskip(backend)
        subprocess.run(
            [sys.executable, "-m", "tests.contracts.load_elsewhere", str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "KERAS_BACKEND": backend},
            check=True,
            timeout=300,
        )


@every_decoder
@pytest.mark.parametrize("chunks", [[1] * 12, [3] * 4, [12]], ids=["1", "3", "all"])
def test_steps_equal_the_full_pass(config, chunks, token_ids, ragged):
    model = shared(config)
    stepped = stepped_logits(model, token_ids, ragged, chunks)
    full = logits(model, token_ids, ragged)
    np.testing.assert_allclose(stepped[ragged], full[ragged], rtol=0, atol=1e-5)


@every_decoder
def test_ragged_generation_equals_naive(config):
    model = shared(config)
    rows = [[1, 2, 3, 4, 5], [7], [9, 8, 7]]
    generated = ka.generate(model, rows, max_new_tokens=10, context=context_of(model, 3))
    np.testing.assert_array_equal(generated.token_ids, naive_greedy(model, rows, 10))


@every_encoder
def test_encoders_are_not_decoded(config):
    message = r"one output; received 2, of the layers \['block_0', 'pooler'\]|'block_0'.*token_ids"
    with pytest.raises(ValueError, match=message):
        ka.generate(shared(config), [[1, 2, 3]], max_new_tokens=2)


@every_decoder
def test_later_tokens_change_nothing_before_them(config, token_ids):
    model = shared(config)
    changed = token_ids.copy()
    changed[:, 7:] = (changed[:, 7:] + 1) % V
    before, after = logits(model, token_ids), logits(model, changed)
    np.testing.assert_array_equal(before[:, :7], after[:, :7])
    assert not np.allclose(before[:, 7:], after[:, 7:])


@every_config
def test_pads_change_nothing(config, token_ids):
    model = shared(config)
    alone = logits(model, token_ids[:, :6])
    for left, right in ((0, 6), (6, 0), (1, 5)):
        padded = np.full((3, 12), 17, "int32")
        padded[:, left : 12 - right] = token_ids[:, :6]
        valid = np.zeros((3, 12), "bool")
        valid[:, left : 12 - right] = True
        inside = logits(model, padded, valid)[:, left : 12 - right]
        np.testing.assert_allclose(inside, alone, rtol=0, atol=1e-5)


@every_config
def test_packed_documents_are_apart(config, token_ids):
    if "packed" not in inspect.signature(ka.models.builder(config)).parameters:
        pytest.skip("the model takes one document a row")
    packed = build(config, packed=True)
    plain = shared(config)
    segment_ids = np.repeat([[0] * 5 + [1] * 7], 3, axis=0).astype("int32")
    values = {"token_ids": token_ids, "valid": np.ones((3, 12), "bool")}
    together = ops.convert_to_numpy(packed({**values, "segment_ids": segment_ids}))
    np.testing.assert_allclose(together[:, :5], logits(plain, token_ids[:, :5]), atol=1e-5)
    np.testing.assert_allclose(together[:, 5:], logits(plain, token_ids[:, 5:]), atol=1e-5)


CHANGES = {
    "vocabulary_size": 37,
    "width": 32,
    "layers": 3,
    "heads": 8,
    "context_length": 30,
    "dropout": 0.5,
    "norm_epsilon": 0.1,
    "initializer_range": 0.2,
    "tied": None,  # its opposite
    "hidden_width": 40,
    "activation": "elu",
    "use_bias": None,
    "use_output_bias": None,
    "use_feedforward_bias": None,
    "query_key_norm": None,
    "key_value_heads": 1,
    "rotary_base": 100.0,
    "rotary_layout": "interleaved",
    "rotary_scaling": ka.layers.LinearScaling(4.0),
    "window": 2,
    "order": {"ngram": 4, "attention_seq2seq": "luong"},
    "bottleneck": 20,
    "residual": None,
    "recurrent_dropout": 0.5,
    "normalise": None,
    "encoder_width": 12,
    "decoder_width": 20,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "cell": "gru",
    "bidirectional": None,
    "bridge": "copy",
    "source_vocabulary_size": 40,
    "attention": "general",
    "attention_width": 5,
    "normalised": None,
    "coverage": None,
    "input_feeding": None,
    "max_source_length": 9,
    "norm_order": "pre",
    "head_width": 6,
    "buckets": 4,
    "max_distance": 30,
    "gated": None,
    "position_offset": 0,
    "types": 3,
    "embedding_width": 12,
}
#: (Model, field) -> what other fields must be for it to have an effect.
BASES = {
    ("attention_seq2seq", "window"): {"attention": "local", "window": 1},
    ("attention_seq2seq", "max_source_length"): {"attention": "location", "max_source_length": 7},
    ("attention_seq2seq", "input_feeding"): {"order": "luong"},
}


@pytest.mark.parametrize("name", ka.models.catalog)
def test_every_config_field_has_an_effect(name, token_ids):
    plain = _Observed(CONFIGS[name], token_ids)
    for field in dataclasses.fields(CONFIGS[name]):
        needed = BASES.get((name, field.name), {})
        config = dataclasses.replace(CONFIGS[name], **needed)
        base = _Observed(config, token_ids) if needed else plain
        value = CHANGES[field.name]
        value = value[name] if isinstance(value, dict) else value
        value = not getattr(config, field.name) if value is None else value
        changed = _Observed(dataclasses.replace(config, **{field.name: value}), token_ids)
        # The cheap ones first: most fields show in the shapes, and no model runs.
        assert any(
            not np.array_equal(getattr(base, what), getattr(changed, what))
            for what in ("shapes", "limit", "logits", "trained", "scale")
        ), f"{field.name} changes nothing"


class _Observed:
    """What a config can change, each found when it is asked for."""

    def __init__(self, config, token_ids):
        self.config, self.token_ids = config, token_ids

    @functools.cached_property
    def model(self):
        return shared(self.config)

    @functools.cached_property
    def shapes(self):
        return str([tuple(w.shape) for w in self.model.weights])

    @functools.cached_property
    def limit(self):
        return [getattr(layer, "context_length", None) for layer in self.model.layers]

    @functools.cached_property
    def logits(self):
        return logits(self.model, self.token_ids)

    @functools.cached_property
    def trained(self):
        inputs = inputs_of(self.model, self.token_ids)
        return ops.convert_to_numpy(tokens_output(self.model(inputs, training=True)))

    @functools.cached_property
    def scale(self):
        initial = ka.models.builder(self.config)(self.config)
        return ops.convert_to_numpy(initial.weights[0]).std().round(2)


#: Post-norm without warmup wants smaller steps (Xiong et al. 2020, section 3).
RATES = dict.fromkeys((ka.models.TransformerConfig, ka.models.MarianConfig), 0.02)


@every_decoder
def test_one_batch_is_learned(config, token_ids):
    model = ka.models.builder(config)(config)
    model.compile(
        optimizer=keras.optimizers.Adam(RATES.get(type(config), 0.05)),
        loss=ka.objectives.TokenCrossentropy(),
    )
    valid = np.ones(token_ids.shape, "bool")
    inputs, targets, weights = ka.objectives.next_token(token_ids, valid)
    inputs |= context_of(model, 3)
    arguments = {"sample_weight": weights, "batch_size": 3, "verbose": 0}
    history = model.fit(inputs, targets, epochs=120, shuffle=False, **arguments)
    losses = history.history["loss"]
    assert losses[0] == pytest.approx(np.log(V), abs=0.3)
    assert losses[-1] < 0.15


@every_encoder
def test_masked_tokens_of_one_batch_are_learned(config, token_ids):
    model = ka.models.masked_lm(ka.models.builder(config)(config))
    model.compile(
        optimizer=keras.optimizers.Adam(0.02),
        loss=ka.objectives.TokenCrossentropy(),
    )
    valid = np.ones(token_ids.shape, "bool")
    inputs, targets, weights = ka.objectives.mask_for_mlm(token_ids, valid, 0, 0, V, rate=0.3)
    inputs = {**inputs_of(model, inputs["token_ids"]), **inputs}
    arguments = {"sample_weight": weights, "batch_size": 3, "verbose": 0}
    losses = model.fit(inputs, targets, epochs=60, shuffle=False, **arguments).history["loss"]
    assert losses[0] == pytest.approx(np.log(V), abs=0.3)
    assert losses[-1] < 0.15


@every_config
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_is_close(config, policy, token_ids, ragged):
    full = logits(shared(config, scale=0.2), token_ids, ragged)
    keras.config.set_dtype_policy(policy)
    mixed = logits(build(config, scale=0.2), token_ids, ragged).astype("float32")
    assert np.isfinite(mixed).all()
    tolerance = {"mixed_bfloat16": 2**-6, "mixed_float16": 2**-9}[policy]
    np.testing.assert_allclose(mixed[ragged], full[ragged], rtol=0, atol=tolerance * 4)


@every_config
def test_parameters_are_counted_without_the_model(config):
    assert ka.analysis.count_parameters(config) == shared(config).count_params()
