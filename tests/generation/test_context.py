import dataclasses

import keras
import numpy as np
import pytest

import keras_arch as ka
from keras_arch.generation import Stepper, generate_contrastive, generate_speculative
from keras_arch.generation.context import read_context
from keras_arch.generation.score import score
from tests.contracts.tiny import CONFIGS, CONTEXT, V, naive_greedy
from tests.contracts.tiny import build as build_decoder
from tests.generation.encoder_decoder import SOURCES, build, padded
from tests.references.contrastive import contrastive_search

ROWS = [[1, 2, 3], [7], [9, 8]]
RAGGED = {"source_ids": SOURCES}


@pytest.fixture(scope="module")
def model():
    return build()


def decoder():
    return build_decoder(dataclasses.replace(CONFIGS["gpt2"], layers=1))


def changed(model, scale):
    """A model near another: its draft."""
    draft = keras.models.clone_model(model)
    random = np.random.default_rng(3)
    for new, old in zip(draft.weights, model.get_weights(), strict=True):
        new.assign(old + random.normal(scale=scale, size=old.shape))
    return draft


def test_tokens_equal_naive_recomputation(model):
    expected = naive_greedy(model, ROWS, 8, padded())
    for context in (RAGGED, padded(), padded(length=5)):
        found = ka.generate(model, ROWS, 8, context=context)
        np.testing.assert_array_equal(found.token_ids, expected)
    # The sources matter, and the tokens are not those of one source.
    other = ka.generate(model, ROWS, 8, context={"source_ids": SOURCES[::-1]})
    assert not np.array_equal(other.token_ids, expected)


def test_source_lengths_of_one_bucket_share_a_program(traces):
    model = build()
    for length in range(6, 11):
        ka.generate(model, ROWS[:1], 4, context={"source_ids": [[3] * length]})
    assert len(traces) == 1
    ka.generate(model, ROWS[:1], 4, context={"source_ids": [[3] * 17]})
    assert len(traces) == 2


def test_scores_are_the_generated_tokens_own(model):
    generated = ka.generate(model, ROWS, 6, context=RAGGED, return_logprobs=True)
    rows = [row + ids.tolist() for row, ids in zip(ROWS, generated.token_ids, strict=True)]
    # Three windows, read by two: in the second batch one row is empty.
    found = score(model, rows, batch_size=2, context=RAGGED)
    for i, row in enumerate(ROWS):
        got = found.log_probabilities[i, len(row) : len(row) + 6]
        np.testing.assert_allclose(got, generated.log_probabilities[i], rtol=0, atol=1e-5)


def test_a_draft_reads_what_it_has_inputs_for(model):
    expected = ka.generate(model, ROWS, 10, context=RAGGED)
    accepted = []
    for draft in (changed(model, 0.02), decoder()):
        found = generate_speculative(model, draft, ROWS, 10, 2, context=RAGGED)
        np.testing.assert_array_equal(found.token_ids, expected.token_ids)
        accepted.append(found.accepted)
    # The one that has read the source agrees more.
    assert accepted[0] > accepted[1] + 0.5
    with pytest.raises(ValueError, match=r"no other inputs.*'source_ids'.*and \[\]"):
        generate_speculative(decoder(), model, ROWS, 4)


def test_contrastive_search_reads_candidates_beside_one_memory(model):
    found = generate_contrastive(model, ROWS, 5, k=3, context=RAGGED)
    inside = keras.Model(model.inputs, [model.get_layer("final_norm").output, model.output])
    for i, row in enumerate(ROWS):
        source = {name: array[i : i + 1] for name, array in padded().items()}

        def run(token_ids, source=source):
            # Padded on the right to one shape: a token does not see what follows it.
            length = token_ids.shape[1]
            ids = np.pad(token_ids, ((0, 0), (0, CONTEXT - length))).astype("int32")
            inputs = {"token_ids": ids, "valid": np.arange(CONTEXT)[None] < length, **source}
            return [output[:, :length] for output in inside.predict_on_batch(inputs)]

        expected = contrastive_search(run, row, 5, 3, 0.6)
        np.testing.assert_array_equal(found.token_ids[i], expected)


def test_no_prompts(model):
    for context in ({"source_ids": []}, padded([])):
        assert ka.generate(model, [], 4, context=context).token_ids.shape == (0, 4)
        assert score(model, [], context=context).perplexity == 1.0


ARRAY, ALL = np.ones((3, 4), "int32"), np.ones((3, 4), "bool")


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (None, r"must hold \['source_ids', 'source_valid'\]; received \[\]"),
        ([[1]], r"must be a dict.*\[\[1\]\]"),
        ({"source_ids": ARRAY}, r"must hold .* received \['source_ids'\]"),
        ({**RAGGED, "image": ARRAY}, r"received \['image', 'source_ids', 'source_valid'\]"),
        ({"source_ids": SOURCES[:2]}, r"\['source_ids'\].*shape \(3, None\).*\(2, 3\)|\(2, 5\)"),
        ({"source_ids": [[1], [], [2]]}, r"\['source_ids'\]\[1\] is empty"),
        ({"source_ids": ARRAY, "source_valid": ~ALL}, r"\['source_ids'\]\[0\] is empty"),
        ({"source_ids": [[1], [V], [2]]}, rf"\['source_ids'\]\[1\] has token id {V}, outside.*{V}"),
        ({"source_ids": [[1], [-1], [2]]}, r"\['source_ids'\]\[1\] has token id -1"),
        ({"source_ids": [[1], [1.5], [2]]}, r"\['source_ids'\]\[1\].*list of token ids.*1\.5"),
        ({"source_ids": SOURCES, "source_valid": ALL}, r"\['source_ids'\].*array of int32"),
        ({"source_ids": ARRAY, "source_valid": ALL[:, :2]}, r"one length.*\(3, 4\) and \(3, 2\)"),
        ({"source_ids": ARRAY * 1.0, "source_valid": ALL}, r"\['source_ids'\].*array of int32"),
        ({"source_ids": ARRAY, "source_valid": ARRAY}, r"\['source_valid'\].*array of bool"),
        ({"source_ids": ARRAY[0], "source_valid": ALL}, r"\(3, None\).*received \(4,\)"),
    ],
)
def test_bad_context_is_named_before_any_compute(model, traces, context, message):
    with pytest.raises(ValueError, match=message):
        ka.generate(model, ROWS, 4, context=context)
    assert not traces


def test_a_model_without_context_takes_none():
    with pytest.raises(ValueError, match=r"must hold \[\]; received \['source_ids'\]"):
        ka.generate(decoder(), ROWS, 4, context=RAGGED)


def test_the_source_may_be_as_long_as_the_model_takes():
    model = build(source_limit=20)
    context = {"source_ids": [[2] * 20]}
    read = read_context(Stepper(model), context, 1)
    # Its bucket would be 32.
    assert read["source_ids"].shape == (1, 20)
    assert ka.generate(model, ROWS[:1], 2, context=context).valid.all()
    with pytest.raises(ValueError, match=r"\['source_ids'\].*21 entries, source_length=20"):
        ka.generate(model, ROWS[:1], 2, context={"source_ids": [[2] * 21]})


def test_inputs_of_any_kind_are_read_by_their_specs():
    """What has a validity is padded with it; what has none keeps its shape."""
    shapes = {
        "token_ids": ((None,), "int32"),
        "valid": ((None,), "bool"),
        "image_vectors": ((None, 4), "float32"),
        "image_valid": ((None,), "bool"),
        "style": ((3,), "float32"),
        "frames": ((None, 2), "float32"),
    }
    inputs = {n: keras.Input(shape, dtype=t, name=n) for n, (shape, t) in shapes.items()}
    x = ka.layers.TokenEmbedding(V, 8, name="tokens")(inputs["token_ids"])
    parts = [inputs[name] for name in ("image_vectors", "frames", "style")]
    given = [keras.ops.mean(part, axis=(1, 2), keepdims=True) for part in parts[:2]]
    given += [keras.ops.mean(parts[2], axis=1)[:, None, None]]
    given += [keras.ops.cast(inputs["image_valid"], "float32")[:, :1, None]]
    stepper = Stepper(keras.Model(inputs, sum(given, x)))
    context = {
        "image_vectors": np.ones((2, 17, 4)),
        "image_valid": np.ones((2, 17), "bool"),
        "style": np.ones((2, 3), "int64"),
        "frames": np.ones((2, 5, 2), "float32"),
    }
    read = read_context(stepper, context, 2)
    wanted = {"image_vectors": (2, 32, 4), "image_valid": (2, 32), "style": (2, 3)}
    wanted["frames"] = (2, 5, 2)
    assert {name: array.shape for name, array in read.items()} == wanted
    assert read["image_valid"].sum() == 2 * 17
    assert not read["image_vectors"][:, 17:].any()
    assert {array.dtype.name for array in read.values()} == {"float32", "bool"}
    with pytest.raises(ValueError, match=r"\['style'\].*shape \(2, 3\).*received \(2, 4\)"):
        read_context(stepper, {**context, "style": np.ones((2, 4))}, 2)
