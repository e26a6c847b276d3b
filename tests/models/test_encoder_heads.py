"""Heads on encoders, each by its own formula from the encoder's vectors."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_arch import layers, models, objectives
from tests.contracts.tiny import CONFIGS, V, build, inputs_of
from tests.layers import rows
from tests.references.feedforward import gelu
from tests.references.norms import layer_norm

TOKEN_IDS = np.random.default_rng(3).integers(0, V, (3, 6)).astype("int32")
VALID = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], "bool")
#: Columns of the first real tokens.
FIRST = [2, 0, 0]
EACH = np.arange(3)
PLACES = np.array([[2, 5], [4, 4], [0, 1]], "int32")
#: Label of the encoder -> name -> head on it. The heads of one encoder run as one model.
HEADS = {
    "bert": {
        "classes": lambda encoder: models.sequence_classification(encoder, 3),
        "embedding": models.sentence_embedding,
        "masked_lm": models.masked_lm,
        "next_sentence": models.next_sentence,
        "span_answers": models.span_answers,
    },
    "roberta": {
        "embedding": lambda encoder: models.sentence_embedding(encoder, layers.MaxTokens()),
        "tags": lambda encoder: models.token_classification(encoder, 5),
    },
    "distilbert": {
        "classes": lambda encoder: models.sequence_classification(encoder, 3),
        "embedding": lambda encoder: models.sentence_embedding(
            encoder, layers.FirstToken(name="pooling")
        ),
    },
    "electra": {
        "classes": lambda encoder: models.sequence_classification(
            models.with_pooler(encoder, "gelu"), 4
        ),
        "masked_lm": models.masked_lm,
        "replaced": models.replaced_tokens,
    },
}


@functools.cache
def encoder_of(label):
    return build(CONFIGS[label])


@functools.cache
def headed(label):
    """The heads of an encoder, with random weights, by name; and what all give, numpy."""
    encoder = encoder_of(label)
    heads = {name: put(encoder) for name, put in HEADS[label].items()}
    for head in heads.values():
        for layer in head.layers:
            if layer not in encoder.layers:
                rows.randomize(layer)
    outputs = {**encoder.output, **{name: head.output for name, head in heads.items()}}
    inputs = {x.name: x for head in [encoder, *heads.values()] for x in head.inputs}
    return heads, predicted(keras.Model(inputs, outputs))


@pytest.fixture(autouse=True, scope="module")
def forget():
    yield
    headed.cache_clear()
    encoder_of.cache_clear()


def test_token_vectors_leave_out_the_pooler():
    encoder = encoder_of("bert")
    model = models.token_vectors(encoder)
    assert list(model.output) == ["hidden"]
    assert model.output["hidden"] is encoder.output["hidden"]
    assert model.weights == [x for x in encoder.weights if not x.path.startswith("pooler/")]


def predicted(model, **more):
    given = {**inputs_of(model, TOKEN_IDS, VALID), "masked_positions": PLACES, **more}
    return model.predict_on_batch({x.name: given[x.name] for x in model.inputs})


def weights(head, name):
    return [weight.astype("float64") for weight in head.get_layer(name).get_weights()]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_rows_are_classified_by_the_pooler_or_the_first_token():
    for label in ("bert", "distilbert"):
        heads, found = headed(label)
        kernel, bias = weights(heads["classes"], "classes")
        x = found["pooled"] if label == "bert" else found["hidden"][EACH, FIRST]
        close(found["classes"], x @ kernel + bias)


def test_rows_are_classified_by_a_pooler_put_on():
    heads, found = headed("electra")
    head = heads["classes"]
    inner, inner_bias = weights(head, "pooler")
    kernel, bias = weights(head, "classes")
    x = gelu(found["hidden"][EACH, FIRST] @ inner + inner_bias)
    close(found["classes"], x @ kernel + bias)


def test_bert_pools_the_first_token():
    kernel, bias = weights(encoder_of("bert"), "pooler")
    _, found = headed("bert")
    close(found["pooled"], np.tanh(found["hidden"][EACH, FIRST] @ kernel + bias))


def test_the_next_sentence_is_told_whatever_the_pads():
    heads, found = headed("bert")
    kernel, bias = weights(heads["next_sentence"], "next_sentence")
    expected = found["pooled"] @ kernel + bias
    assert expected.shape == (3, 2)
    close(found["next_sentence"], expected)
    given = inputs_of(heads["next_sentence"], TOKEN_IDS, VALID)
    padded = {name: np.pad(x, ((0, 0), (0, 5))) for name, x in given.items()}
    close(heads["next_sentence"].predict_on_batch(padded), expected)


def test_tokens_are_classified():
    heads, found = headed("roberta")
    kernel, bias = weights(heads["tags"], "classes")
    close(found["tags"][VALID], (found["hidden"] @ kernel + bias)[VALID])


def test_answers_are_scored_at_real_tokens():
    heads, found = headed("bert")
    kernel, bias = weights(heads["span_answers"], "span_scores")
    scores = (found["hidden"] @ kernel + bias).transpose(0, 2, 1)
    scores[~np.repeat(VALID[:, None], 2, axis=1)] = -np.inf
    answers = np.array([[2, 5], [0, 0], [-1, -1]])
    logs = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    expected = -np.mean([logs[i, side, answers[i, side]] for i in (0, 1) for side in (0, 1)])
    loss = objectives.TokenCrossentropy()(answers, found["span_answers"])
    assert float(ops.convert_to_numpy(loss)) == pytest.approx(expected, rel=1e-5)


def test_replaced_tokens_are_told():
    heads, found = headed("electra")
    inner, inner_bias = weights(heads["replaced"], "replaced_dense")
    kernel, bias = weights(heads["replaced"], "replaced_score")
    expected = gelu(found["hidden"] @ inner + inner_bias) @ kernel + bias
    close(found["replaced"][VALID], expected[..., 0][VALID])


def test_electras_published_count_with_its_head():
    def size_of_head(width):
        return width * width + width + width + 1

    encoder = encoder_of("electra")
    size = headed("electra")[0]["replaced"].count_params() - encoder.count_params()
    assert size == size_of_head(16)
    # The small discriminator's body is counted in `test_models.py`.
    assert 13_483_008 + size_of_head(256) == 13_549_057


@pytest.mark.parametrize("label", ["bert", "electra"])
def test_masks_are_told_where_asked(label):
    heads, found = headed(label)
    head = heads["masked_lm"]
    kernel, bias = weights(head, "prediction_dense")
    scale, offset = weights(head, "prediction_norm")
    (table,), (table_bias,) = weights(head, "tokens"), weights(head, "prediction_bias")
    tables = [w.path for w in head.weights if w.shape[0] == V and len(w.shape) == 2]
    assert tables == ["tokens/table"]
    x = gelu(found["hidden"][EACH[:, None], PLACES] @ kernel + bias)
    expected = layer_norm(x, scale, offset, 1e-12) @ table.T + table_bias
    np.testing.assert_allclose(found["masked_lm"], expected, atol=1e-4)


def test_both_heads_of_pretraining_share_the_encoder():
    encoder = encoder_of("bert")
    both = models.bert_pretraining(encoder)
    assert {name: x.shape for name, x in both.output.items()} == {
        "tokens": (None, None, V),
        "next_sentence": (None, 2),
    }
    # Width 16: two matrices, a norm, the two biases.
    assert both.count_params() - encoder.count_params() == 16 * 17 + 2 * 16 + V + 2 * 17


def test_texts_become_unit_vectors():
    takes = {
        "bert": lambda x: x.mean(axis=0),
        "roberta": lambda x: x.max(axis=0),
        "distilbert": lambda x: x[0],
    }
    for label, take in takes.items():
        _, found = headed(label)
        vectors = [take(x[real]) for x, real in zip(found["hidden"], VALID, strict=True)]
        close(found["embedding"], vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def test_pairs_are_compared_by_their_cosine():
    heads, found = headed("bert")
    given = inputs_of(heads["embedding"], TOKEN_IDS, VALID)
    # Each text with the next one.
    pairs = {f"first_{name}": x for name, x in given.items()}
    pairs |= {f"second_{name}": np.roll(x, 1, axis=0) for name, x in given.items()}
    units = found["embedding"]
    expected = (units * np.roll(units, 1, axis=0)).sum(axis=-1)
    model = models.pair_similarity(heads["embedding"])
    close(model.predict_on_batch(pairs), expected)


def test_choices_are_scored_alone_also_after_saving(tmp_path):
    model = models.multiple_choice(encoder_of("distilbert"), choices=2)
    kernel, bias = weights(model.get_layer("distilbert_classification"), "classes")
    _, found = headed("distilbert")
    expected = (found["hidden"][EACH, FIRST] @ kernel + bias)[:, 0]
    given = {"token_ids": TOKEN_IDS, "valid": VALID}
    pairs = {name: np.stack([x, np.roll(x, 1, axis=0)], axis=1) for name, x in given.items()}
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    close(again.predict_on_batch(pairs), np.stack([expected, np.roll(expected, 1)], axis=1))


def test_a_saved_table_stays_tied(tmp_path):
    heads, found = headed("bert")
    heads["masked_lm"].save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert len(again.weights) == len(heads["masked_lm"].weights)
    close(predicted(again), found["masked_lm"])


@pytest.mark.parametrize(
    ("head", "options", "message"),
    [
        ("sequence_classification", {"classes": 0}, "classes=0"),
        ("sequence_classification", {"classes": 2, "dropout": 1.0}, r"dropout=1\.0"),
        ("token_classification", {"classes": 2.5}, r"classes=2\.5"),
        ("multiple_choice", {"choices": 0}, "choices=0"),
    ],
)
def test_bad_arguments_are_named(head, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(models, head)(encoder_of("distilbert"), **options)


def test_a_model_that_is_no_encoder_is_named():
    with pytest.raises(ValueError, match=r"'hidden'.*received encoder\.output=<KerasTensor"):
        models.span_answers(encoder_of("gpt2"))
