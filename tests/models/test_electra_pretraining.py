"""ELECTRA's pretraining: labels, gradients, shared tables, training by `fit`."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_arch import models, objectives
from tests.contracts.tiny import CONFIGS, V, build

CONFIG = CONFIGS["electra"]
SMALLER = dataclasses.replace(CONFIG, width=8, heads=2)
MASK, PAD = 0, 1


def make(scale=None):
    encoder = models.electra(CONFIG) if scale is None else build(CONFIG, scale=scale)
    discriminator = models.replaced_tokens(encoder)
    generator = models.masked_lm(models.electra(SMALLER, tables_of=discriminator))
    return generator, discriminator, models.electra_pretraining(generator, discriminator, seed=0)


def batch(rows=4):
    random = np.random.default_rng(0)
    valid = np.arange(10) < np.linspace(6, 10, rows).astype(int)[:, None]
    ids = np.where(valid, random.integers(2, V, valid.shape), PAD)
    masked = objectives.mask_for_mlm(
        ids, valid, 0, MASK, V, [PAD], rate=0.3, mask_share=1.0, random_share=0.0
    )
    inputs, targets, weights = objectives.replaced_token_batch(*masked)
    return ids, ({**inputs, "type_ids": 0 * inputs["token_ids"]}, targets, weights)


def run(model, inputs, *names):
    """Returns the outputs and those of layers, all of one draw."""
    outputs = {**model.output, **{name: model.get_layer(name).output for name in names}}
    model = keras.Model({x.name: x for x in model.inputs}, outputs)
    return model.predict_on_batch({name: inputs[name] for name in model.input})


def binary_crossentropy(labels, logits):
    """`-y log sigmoid(x) - (1 - y) log(1 - sigmoid(x))`."""
    return np.log1p(np.exp(logits)) - labels * logits


def test_a_label_says_whether_the_token_is_another():
    _, discriminator, model = make(scale=0.4)
    ids, (inputs, targets, weights) = batch()
    found = run(model, inputs, "corrupted", "original")
    corrupted, masked = found["corrupted"], inputs["token_ids"] == MASK
    np.testing.assert_array_equal(corrupted[~masked], ids[~masked])
    np.testing.assert_array_equal(found["original"], ids)
    labels = corrupted != ids
    assert labels[masked].any()
    given = {"token_ids": corrupted, "valid": inputs["valid"], "type_ids": inputs["type_ids"]}
    logits = discriminator.predict_on_batch(given)
    expected = binary_crossentropy(labels, logits)[inputs["valid"]].mean()
    loss = objectives.TokenCrossentropy()
    truth = loss(targets["truth"], found["truth"], weights["truth"])
    assert float(ops.convert_to_numpy(truth)) == pytest.approx(expected, rel=1e-5)


def test_a_generator_that_is_right_gives_no_replaced_token():
    generator, _, model = make(scale=0.4)
    _, (inputs, *_) = batch()
    # All told tokens are 7, and 7 is what the generator always draws.
    inputs["masked_ids"] = np.where(inputs["masked_ids"] < 0, -1, 7)
    bias = generator.get_layer("prediction_bias")
    bias.set_weights([1e4 * (np.arange(V) == 7)])
    found = run(model, inputs, "corrupted", "original")
    np.testing.assert_array_equal(found["corrupted"], found["original"])
    assert (found["corrupted"][inputs["token_ids"] == MASK] == 7).all()


def test_the_discriminator_does_not_train_the_generator():
    generator, discriminator, model = make()
    _, (inputs, targets, weights) = batch()
    model.compile(
        keras.optimizers.SGD(0.1),
        {name: objectives.TokenCrossentropy() for name in ("tokens", "truth")},
        loss_weights={"tokens": 0.0, "truth": 50.0},
    )
    shared = {"tokens/table", "token_types/table", "position_table/table"}
    tables = [w for w in generator.weights if w.path in shared]
    assert len(tables) == 3
    assert {id(w) for w in tables} <= {id(w) for w in discriminator.weights}
    kept = [w for w in generator.weights if w.path not in shared]
    before = [ops.convert_to_numpy(w) for w in kept]
    table = ops.convert_to_numpy(tables[0])
    model.fit(inputs, targets, sample_weight=weights, batch_size=4, verbose=0)
    for weight, old in zip(kept, before, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(weight), old)
    assert np.abs(ops.convert_to_numpy(tables[0]) - table).max() > 0


def test_plain_fit_trains_both(tmp_path):
    generator, discriminator, model = make()
    # Each weight once: three tables are of both.
    count = sum(x.count_params() for x in (generator, discriminator))
    tables = (V + CONFIG.types + CONFIG.context_length) * CONFIG.embedding_width
    assert model.count_params() == count - tables
    _, (inputs, targets, weights) = batch()
    model.compile(
        keras.optimizers.Adam(0.01),
        {name: objectives.TokenCrossentropy() for name in ("tokens", "truth")},
        loss_weights={"tokens": 1.0, "truth": 50.0},
    )
    options = {"sample_weight": weights, "batch_size": 4, "shuffle": False, "verbose": 0}
    history = model.fit(inputs, targets, epochs=40, **options).history
    assert history["tokens_loss"][0] == pytest.approx(np.log(V), abs=0.3)
    for name in ("tokens_loss", "truth_loss"):
        assert history[name][-1] < 0.8 * history[name][0]
    model.save_weights(tmp_path / "all.weights.h5")
    again = make()[2]
    again.load_weights(tmp_path / "all.weights.h5")
    for one, other in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


def test_models_that_do_not_go_together_are_named():
    discriminator = models.replaced_tokens(models.electra(CONFIG))
    wider = dataclasses.replace(CONFIG, embedding_width=12)
    with pytest.raises(ValueError, match="'tokens' has width=8, not 12"):
        models.electra(wider, tables_of=discriminator)
    with pytest.raises(ValueError, match="masked_positions; received generator inputs"):
        models.electra_pretraining(discriminator, discriminator)
