import dataclasses

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.generation.contrastive import generate_contrastive
from tests.contracts.tiny import CONFIGS, CONTEXT, V, build
from tests.references.contrastive import contrastive_search

ROWS = [[1, 2, 3, 4, 5], [7], [9, 8, 7]]


def small(label):
    return build(dataclasses.replace(CONFIGS[label], layers=1))


@pytest.fixture(scope="module")
def model():
    return small("gpt2")


def reference(model, rows, new, k, alpha):
    inside = keras.Model(model.inputs, [model.get_layer("final_norm").output, model.output])

    def run(token_ids):
        # Padded on the right to one shape: a token does not see what follows it.
        length = token_ids.shape[1]
        padded = np.zeros((1, CONTEXT), "int32")
        padded[:, :length] = token_ids
        valid = np.arange(CONTEXT)[None] < length
        # The input order of a model of lists is the one of its names.
        outputs = inside.predict_on_batch([padded, valid])
        return [output[:, :length] for output in outputs]

    return np.array([contrastive_search(run, row, new, k, alpha) for row in rows])


@pytest.mark.parametrize("label", ["gpt2", "llama-window"])
def test_tokens_equal_the_reference(label):
    model = small(label)
    for alpha in (0.6, 0.2):
        found = generate_contrastive(model, ROWS, 8, k=3, alpha=alpha)
        expected = reference(model, ROWS, 8, 3, alpha)
        np.testing.assert_array_equal(found.token_ids, expected)


def test_without_weight_or_choice_it_is_greedy(model):
    expected = ka.generate(model, ROWS, 8, return_logprobs=True)
    for options in ({"k": 3, "alpha": 0.0}, {"k": 1, "alpha": 0.6}):
        found = generate_contrastive(model, ROWS, 8, return_logprobs=True, **options)
        np.testing.assert_array_equal(found.token_ids, expected.token_ids)
        np.testing.assert_allclose(
            found.log_probabilities, expected.log_probabilities, atol=1e-5, rtol=0
        )


def test_rows_end_with_a_stop_id(model):
    free = generate_contrastive(model, ROWS, 12, k=3).token_ids
    stops = [int(free[0, 3])]
    found = generate_contrastive(model, ROWS, 12, k=3, stop_ids=stops)
    for row, kept, unstopped in zip(found.token_ids, found.valid, free, strict=True):
        hits = np.flatnonzero(unstopped == stops[0])
        length = hits[0] + 1 if hits.size else 12
        np.testing.assert_array_equal(row[:length], unstopped[:length])
        np.testing.assert_array_equal(kept, np.arange(12) < length)
        assert not row[length:].any()


def test_no_prompts(model):
    found = generate_contrastive(model, [], 4)
    assert found.token_ids.shape == (0, 4)
    assert found.log_probabilities is None


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([[1]], {"k": 0}, "k=0"),
        ([[1]], {"alpha": 1.5}, r"alpha=1\.5"),
        ([[1]], {"alpha": "high"}, "alpha='high'"),
        ([[1]], {"max_new_tokens": 0}, "max_new_tokens=0"),
        ([[V]], {}, rf"prompts\[0\] has token id {V}"),
        ([[1] * 20], {"max_new_tokens": 5}, rf"20 tokens.*={CONTEXT}"),
        ([[]], {}, r"prompts\[0\] is empty"),
        ([[1]], {"stop_ids": [V]}, f"stop_ids.*received {V}"),
    ],
)
def test_bad_input_is_named(model, prompts, options, message):
    with pytest.raises(ValueError, match=message):
        generate_contrastive(model, prompts, **{"max_new_tokens": 4, **options})


def test_a_model_without_a_head_of_its_own_is_refused(model):
    halves = [model.output, keras.layers.Dense(V, name="other")(model.output)]
    summed = keras.Model(model.inputs, keras.layers.Add(name="summed")(halves))
    with pytest.raises(ValueError, match=r"head.*'summed' \(Add\) from 2 tensors"):
        generate_contrastive(summed, [[1]], 4)
