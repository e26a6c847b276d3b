"""The Transformer, T5 and BART, beside what the contracts and the parity tests say of them."""

import numpy as np
import pytest
from keras import ops

import keras_arch as ka
from keras_arch.analysis import attention_weights
from keras_arch.models import (
    BARTConfig,
    MarianConfig,
    T5Config,
    TransformerConfig,
    bart,
    marian,
    t5,
    transformer,
)
from tests.contracts.tiny import CONFIGS, CONTEXT, V, build, inputs_of
from tests.layers import oracle
from tests.layers.test_decoder_block import reference_feedforward, reference_residual
from tests.references.positions import sinusoidal, token_positions

SHAPE = {"vocabulary_size": V, "width": 8, "encoder_layers": 1, "decoder_layers": 2, "heads": 2}
VALID = np.array([[0, 0, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]], "bool")
TOKEN_IDS = np.arange(12, dtype="int32").reshape(3, 4)


def test_the_transformers_sizes_count_as_its_equations_do():
    for size in ka.models.SIZES["transformer"].values():
        d, h, layers = size.width, size.hidden_width, size.encoder_layers
        # Four matrices of attention without biases, the network of section 3.3 with them.
        attention, feedforward, norm = 4 * d * d, 2 * d * h + h + d, 2 * d
        encoder = attention + feedforward + 2 * norm
        decoder = 2 * attention + feedforward + 3 * norm
        count = size.vocabulary_size * d + layers * (encoder + decoder)
        assert ka.analysis.count_parameters(size) == count


@pytest.mark.parametrize(
    "options",
    [{}, {"norm_order": "pre", "tied": False, "source_vocabulary_size": V}],
    ids=["printed", "pre"],
)
def test_the_transformer_equals_the_reference(options):
    config = TransformerConfig(**SHAPE, **options)
    model = build(config, scale=0.3)
    values = inputs_of(model, TOKEN_IDS, VALID)
    ids, source_valid = values["source_ids"], values["source_valid"]
    layer = model.get_layer

    def embedded(name, ids, valid):
        table = np.array(layer(name).get_weights()[0], "float64")
        places = sinusoidal(token_positions(valid), config.width, 10000.0)
        return config.width**0.5 * table[ids] + places

    def of_tokens(block, x, valid):
        attend = oracle.attention_sublayer(block.attention.sublayer, token_positions(valid), valid)
        return reference_residual(block.attention, x, attend)

    def of_feedforward(block, x):
        network = reference_feedforward(block.feedforward.sublayer)
        return reference_residual(block.feedforward, x, network)

    def ended(name, x):
        return oracle.norm(layer(name))(x) if config.norm_order == "pre" else x

    x = embedded("source_tokens" if "tied" in options else "tokens", ids, source_valid)
    block = layer("encoder_block_0")
    memory = ended("encoder_norm", of_feedforward(block, of_tokens(block, x, source_valid)))
    x = embedded("tokens", TOKEN_IDS, VALID)
    for i in range(2):
        block = layer(f"decoder_block_{i}")
        x = of_tokens(block, x, VALID)
        cross = block.cross_attention

        def gather(x, cross=cross):
            return oracle.cross_attention(cross.sublayer, x, memory, source_valid)[0]

        x = of_feedforward(block, reference_residual(cross, x, gather))
    head = layer("tokens").get_weights()[0].T if config.tied else layer("head").get_weights()[0]
    expected = ended("decoder_norm", x) @ head
    found = ops.convert_to_numpy(model(values))
    np.testing.assert_allclose(found[VALID], expected[VALID], rtol=0, atol=5e-5)


def test_t5_has_two_bias_tables_and_no_other_bias():
    model = t5(T5Config(**SHAPE, buckets=8))
    biases = [w.path for w in model.weights if "bias" in w.path]
    assert biases == ["encoder_bias/table", "decoder_bias/table"]
    assert [model.get_layer(f"{side}_bias").bidirectional for side in ("encoder", "decoder")] == [
        True,
        False,
    ]


def test_barts_count_has_the_rows_that_no_position_reads():
    published, plain = (
        bart(BARTConfig(**SHAPE, context_length=10, position_offset=n)) for n in (2, 0)
    )
    assert published.count_params() - plain.count_params() == 2 * 2 * SHAPE["width"]
    assert ka.generation.Stepper(published).context_length == 10


def test_marians_context_is_that_of_its_source_too():
    config = MarianConfig(**SHAPE, context_length=10, source_vocabulary_size=40)
    model = marian(config)
    stepper = ka.generation.Stepper(model)
    assert stepper.context_length == stepper.source_length == 10
    assert model.get_layer("source_tokens").table.shape == (40, 8)


def test_the_source_counts_by_its_own_pads():
    # The source longer or shorter than the target, any pads, any ids at the pads.
    model = build(CONFIGS["bart"])
    source = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [5, 8, 9, 7, 9]], "int32")
    found = []
    for length, pad in ((5, 0), (9, 7), (9, 30), (16, 0)):
        values = inputs_of(model, TOKEN_IDS, VALID)
        values["source_ids"] = np.pad(
            source, ((0, 0), (0, length - 5)), constant_values=pad
        ).astype("int32")
        values["source_valid"] = np.arange(length) < np.full((3, 1), 5)
        found.append(ops.convert_to_numpy(model(values))[VALID])
    np.testing.assert_array_equal(found[1], found[2])
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-5)


def test_the_weights_over_the_source_are_told_by_block_and_head():
    model = build(CONFIGS["transformer"])
    values = inputs_of(model, TOKEN_IDS, VALID)
    found = attention_weights(model, values)
    assert list(found) == ["decoder_block_0", "decoder_block_1"]
    for weights in found.values():
        assert weights.shape == (3, 4, 4, 5)
        real = np.broadcast_to(VALID[:, None], weights.shape[:3])
        np.testing.assert_allclose(weights.sum(axis=-1), real, atol=1e-6)
        assert not weights.transpose(0, 3, 1, 2)[~values["source_valid"]].any()


def test_the_tokens_of_a_generation_are_scored_alike():
    model = build(CONFIGS["bart"])
    context = {"source_ids": [[3, 1, 4], [9]]}
    found = ka.generate(model, [[1], [1]], 4, context=context, return_logprobs=True)
    scored = ka.score(model, found.token_ids, valid=found.valid, bos_id=1, context=context)
    np.testing.assert_allclose(scored.log_probabilities, found.log_probabilities, atol=1e-5)


def test_bad_requests_are_named_before_compute():
    model = build(CONFIGS["bart"])
    too_long = [[1] * (CONTEXT + 1)]
    for prompts, context, message in (
        ([[1] * 20], {"source_ids": [[1]]}, f"{CONTEXT}"),
        ([[1]], {"source_ids": too_long}, f"25 entries, source_length={CONTEXT}"),
        ([[1]], None, r"context must hold \['source_ids', 'source_valid'\]; received \[\]"),
        ([[1]], {"source_ids": [[]]}, "is empty: no entry of it is valid"),
        ([[1]], {"source_ids": [[V]]}, f"{V}"),
    ):
        with pytest.raises(ValueError, match=message):
            ka.generate(model, prompts, 8, context=context)
    # The whole model as well: a table has no more rows.
    ids = np.ones((1, CONTEXT + 1), "int32")
    for name in ("source", "target"):
        values = inputs_of(model, TOKEN_IDS[:1])
        names = ("source_ids", "source_valid") if name == "source" else ("token_ids", "valid")
        values |= dict(zip(names, (ids, ids > 0), strict=True))
        with pytest.raises(ValueError, match=f"length=25, context_length={CONTEXT}"):
            model(values)


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (TransformerConfig, {"heads": 3}, "width=8, heads=3"),
        (TransformerConfig, {"width": 9, "heads": 3}, "width must be even.*width=9"),
        (TransformerConfig, {"width": None}, "width=None"),
        (TransformerConfig, {"norm_order": "both"}, "norm_order='both'"),
        (TransformerConfig, {"source_vocabulary_size": 0}, "source_vocabulary_size=0"),
        (TransformerConfig, {"encoder_layers": 0}, "encoder_layers=0"),
        (TransformerConfig, {"norm_epsilon": 0.0}, r"norm_epsilon=0\.0"),
        (T5Config, {"heads": 3}, "width=8, heads=3"),
        (T5Config, {"head_width": 0}, "head_width=0"),
        (T5Config, {"hidden_width": 2.5}, r"hidden_width=2\.5"),
        (T5Config, {"dropout": 1.0}, r"dropout=1\.0"),
        (T5Config, {"buckets": 7}, "buckets=7"),
        (BARTConfig, {"context_length": 0}, "context_length=0"),
        (BARTConfig, {"context_length": 8, "position_offset": -1}, "position_offset=-1"),
        (BARTConfig, {"context_length": 8, "heads": 5}, "width=8, heads=5"),
        (MarianConfig, {"context_length": 8, "heads": 5}, "width=8, heads=5"),
        (MarianConfig, {"context_length": 0}, "context_length=0"),
        (MarianConfig, {"context_length": 8, "width": 9, "heads": 3}, "width must be even.*=9"),
        (
            MarianConfig,
            {"context_length": 8, "source_vocabulary_size": 0},
            "source_vocabulary_size=0",
        ),
    ],
)
def test_bad_fields_are_named(config, changes, message):
    with pytest.raises(ValueError, match=message):
        config(**{**SHAPE, **changes})


def test_every_block_is_a_node():
    names = [layer.name for layer in transformer(TransformerConfig(**SHAPE)).layers]
    assert {"tokens", "encoder_block_0", "source_memory", "decoder_block_1"} <= {*names}
