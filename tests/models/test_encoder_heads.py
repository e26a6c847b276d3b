"""Heads on encoders, each by its own formula from the encoder's vectors."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_arch import layers, models, objectives
from tests.contracts.tiny import CONFIGS, V, inputs_of, shared
from tests.layers import rows
from tests.references.feedforward import gelu
from tests.references.norms import layer_norm

TOKEN_IDS = np.random.default_rng(3).integers(0, V, (3, 6)).astype("int32")
VALID = np.array([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], "bool")
#: Columns of the first real tokens.
FIRST = [2, 0, 0]
EACH = np.arange(3)


@functools.cache
def vectors(label):
    """What the encoder of a label gives, numpy."""
    encoder = shared(CONFIGS[label])
    return {k: ops.convert_to_numpy(x) for k, x in encoder(values(encoder)).items()}


@pytest.fixture(autouse=True, scope="module")
def forget():
    yield
    vectors.cache_clear()
    shared.cache_clear()


def values(model, **more):
    given = inputs_of(model, TOKEN_IDS, VALID) | more
    return {x.name: given[x.name] for x in model.inputs}


def of_head(model, name):
    """Gives a layer of the head random weights and returns them, float64."""
    weights = rows.randomize(model.get_layer(name)).get_weights()
    return [weight.astype("float64") for weight in weights]


def run(model, **more):
    return ops.convert_to_numpy(model(values(model, **more)))


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_rows_are_classified_by_the_pooler_or_the_first_token():
    for label in ("bert", "distilbert"):
        model = models.sequence_classification(shared(CONFIGS[label]), 3)
        kernel, bias = of_head(model, "classes")
        found = vectors(label)
        x = found["pooled"] if label == "bert" else found["hidden"][EACH, FIRST]
        close(run(model), x @ kernel + bias)


def test_bert_pools_the_first_token():
    kernel, bias = shared(CONFIGS["bert"]).get_layer("pooler").get_weights()
    found = vectors("bert")
    close(found["pooled"], np.tanh(found["hidden"][EACH, FIRST] @ kernel + bias))


def test_the_next_sentence_is_told_whatever_the_pads():
    model = models.next_sentence(shared(CONFIGS["bert"]))
    kernel, bias = of_head(model, "next_sentence")
    expected = vectors("bert")["pooled"] @ kernel + bias
    assert expected.shape == (3, 2)
    close(run(model), expected)
    padded = {name: np.pad(x, ((0, 0), (0, 5))) for name, x in values(model).items()}
    close(ops.convert_to_numpy(model(padded)), expected)


def test_tokens_are_classified():
    model = models.token_classification(shared(CONFIGS["roberta"]), 5)
    kernel, bias = of_head(model, "classes")
    expected = vectors("roberta")["hidden"] @ kernel + bias
    close(run(model)[VALID], expected[VALID])


def test_answers_are_scored_at_real_tokens():
    model = models.span_answers(shared(CONFIGS["bert"]))
    kernel, bias = of_head(model, "span_scores")
    scores = (vectors("bert")["hidden"] @ kernel + bias).transpose(0, 2, 1)
    scores[~np.repeat(VALID[:, None], 2, axis=1)] = -np.inf
    answers = np.array([[2, 5], [0, 0], [-1, -1]])
    logs = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    expected = -np.mean([logs[i, side, answers[i, side]] for i in (0, 1) for side in (0, 1)])
    found = objectives.TokenCrossentropy()(answers, run(model))
    assert float(ops.convert_to_numpy(found)) == pytest.approx(expected, rel=1e-5)


def test_replaced_tokens_are_told():
    model = models.replaced_tokens(shared(CONFIGS["electra"]))
    (inner, inner_bias), (kernel, bias) = (
        of_head(model, name) for name in ("replaced_dense", "replaced_score")
    )
    expected = gelu(vectors("electra")["hidden"] @ inner + inner_bias) @ kernel + bias
    close(run(model)[VALID], expected[..., 0][VALID])


def test_electras_published_count_with_its_head():
    def size_of_head(width):
        return width * width + width + width + 1

    encoder = shared(CONFIGS["electra"])
    size = models.replaced_tokens(encoder).count_params() - encoder.count_params()
    assert size == size_of_head(16)
    # The small discriminator's body is counted in `test_models.py`.
    assert 13_483_008 + size_of_head(256) == 13_549_057


@pytest.mark.parametrize("label", ["bert", "electra"])
def test_masks_are_told_where_asked(label):
    model = models.masked_lm(shared(CONFIGS[label]))
    kernel, bias = of_head(model, "prediction_dense")
    scale, offset = of_head(model, "prediction_norm")
    (vocabulary_bias,) = of_head(model, "prediction_bias")
    (table,) = model.get_layer("tokens").get_weights()
    assert [w.path for w in model.weights if w.shape[0] == V and len(w.shape) == 2] == [
        "tokens/table"
    ]
    places = np.array([[2, 5], [4, 4], [0, 1]], "int32")
    x = gelu(vectors(label)["hidden"][EACH[:, None], places] @ kernel + bias)
    expected = layer_norm(x, scale, offset, 1e-12) @ table.T + vocabulary_bias
    np.testing.assert_allclose(run(model, masked_positions=places), expected, atol=1e-4)


def test_both_heads_of_pretraining_share_the_encoder():
    encoder = shared(CONFIGS["bert"])
    both = models.bert_pretraining(encoder)
    given = values(both, masked_positions=np.array([[2], [1], [0]], "int32"))
    found = both(given)
    assert {name: tuple(x.shape) for name, x in found.items()} == {
        "tokens": (3, 1, V),
        "next_sentence": (3, 2),
    }
    # Width 16: two matrices, a norm, the two biases.
    assert both.count_params() - encoder.count_params() == 16 * 17 + 2 * 16 + V + 2 * 17


@pytest.mark.parametrize("pooling", [None, layers.FirstToken, layers.MaxTokens])
def test_texts_become_unit_vectors(pooling):
    pooling = pooling and pooling(name="pooling")
    model = models.sentence_embedding(shared(CONFIGS["distilbert"]), pooling)
    hidden = vectors("distilbert")["hidden"]
    take = {"FirstToken": lambda x: x[0], "MaxTokens": lambda x: x.max(axis=0)}
    take = take.get(type(pooling).__name__, lambda x: x.mean(axis=0))
    expected = np.stack([take(x[real]) for x, real in zip(hidden, VALID, strict=True)])
    close(run(model), expected / np.linalg.norm(expected, axis=-1, keepdims=True))


def test_pairs_are_compared_by_their_cosine():
    embedding = models.sentence_embedding(shared(CONFIGS["bert"]))
    model = models.pair_similarity(embedding)
    given = inputs_of(embedding, TOKEN_IDS, VALID)
    # Each text with itself and with the next one, which may be of another length.
    for turn in (0, 1):
        other = {name: np.roll(x, turn, axis=0)[:, :6] for name, x in given.items()}
        pairs = {f"first_{name}": x for name, x in given.items()}
        pairs |= {f"second_{name}": x for name, x in other.items()}
        units = run(embedding)
        expected = (units * np.roll(units, turn, axis=0)).sum(axis=-1)
        close(ops.convert_to_numpy(model(pairs)), expected)
    np.testing.assert_array_less(expected, 1.0)


def test_choices_are_scored_alone():
    model = models.multiple_choice(shared(CONFIGS["bert"]), choices=2)
    model.set_weights(rows.randomize(model, seed=4).get_weights())
    single = model.get_layer("bert_classification")
    given = inputs_of(single, TOKEN_IDS, VALID)
    expected = ops.convert_to_numpy(single(given))[:, 0]
    pairs = {name: np.stack([x, np.roll(x, 1, axis=0)], axis=1) for name, x in given.items()}
    found = ops.convert_to_numpy(model(pairs))
    close(found, np.stack([expected, np.roll(expected, 1)], axis=1))


def test_models_with_heads_are_saved(tmp_path):
    places = {"masked_positions": np.zeros((3, 2), "int32")}
    pairs = {n: x[:, None] for n, x in inputs_of(shared(CONFIGS["bert"]), TOKEN_IDS).items()}
    for make, more in (
        (models.masked_lm, places),
        (lambda encoder: models.multiple_choice(encoder, 1), pairs),
    ):
        model = make(shared(CONFIGS["bert"]))
        model.save(tmp_path / "model.keras")
        again = keras.saving.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(run(again, **more), run(model, **more))


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
        getattr(models, head)(shared(CONFIGS["distilbert"]), **options)


def test_a_model_that_is_no_encoder_is_named():
    with pytest.raises(ValueError, match=r"'hidden'.*received encoder\.output=<KerasTensor"):
        models.span_answers(shared(CONFIGS["gpt2"]))
