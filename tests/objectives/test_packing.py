import numpy as np
import pytest
from keras import ops

from keras_arch import models
from keras_arch.objectives import next_token, pack
from tests.references import objectives as reference


def test_lays_documents_end_to_end():
    packed = pack([[1, 2, 3], [4], [5, 6, 7]], length=4, separator_id=9)
    np.testing.assert_array_equal(packed.token_ids, [[1, 2, 3, 9], [4, 9, 5, 6], [7, 9, 0, 0]])
    np.testing.assert_array_equal(packed.segment_ids, [[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]])
    np.testing.assert_array_equal(packed.valid, [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]])
    assert [array.dtype for array in packed] == ["int32", "bool", "int32"]


def random_documents(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 12, rng.integers(1, 8))
    return [rng.integers(0, 50, size).tolist() for size in lengths]


@pytest.mark.parametrize("separator_id", [None, 50])
@pytest.mark.parametrize("seed", range(10))
def test_loses_nothing_and_equals_the_reference(seed, separator_id):
    documents, length = random_documents(seed), 3 + seed
    packed = pack(documents, length, separator_id)
    expected = reference.pack(documents, length, separator_id)
    assert packed.token_ids.shape == (len(expected), length)
    pieces = {}
    for row, (ids, valid, segments) in enumerate(zip(*packed, strict=True)):
        size = len(expected[row])
        # Pads stand at the end of the last row only.
        assert size == length or row == len(expected) - 1
        np.testing.assert_array_equal(valid, np.arange(length) < size)
        assert (ids[size:] == 0).all()
        assert (segments[size:] == segments[size - 1]).all()
        assert ids[:size].tolist() == [token for token, _ in expected[row]]
        # Segments number the documents of the row from 0.
        order = list(dict.fromkeys(document for _, document in expected[row]))
        assert segments[:size].tolist() == [order.index(d) for _, d in expected[row]]
        for token, segment in zip(ids[:size].tolist(), segments.tolist(), strict=False):
            pieces.setdefault(order[segment], []).append(token)
    end = [] if separator_id is None else [separator_id]
    rebuilt = [pieces.get(i, []) for i in range(len(documents))]
    assert rebuilt == [document + end for document in documents]


@pytest.mark.parametrize("documents", [[], [[]], iter([])])
def test_packs_nothing_into_no_rows(documents):
    packed = pack(documents, 4)
    assert [array.shape for array in packed] == [(0, 4)] * 3


def test_takes_any_iterable_of_arrays():
    packed = pack((np.array(ids) for ids in ([1, 2], [3])), 3)
    np.testing.assert_array_equal(packed.token_ids, [[1, 2, 3]])
    np.testing.assert_array_equal(packed.segment_ids, [[0, 0, 1]])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1]], 0), "length=0"),
        (([[1]], 2.5), "length=2.5"),
        (([[1], [2, -7]], 4), "-7 in document 1"),
        (([[1]], 4, -1), "-1 in document 0"),
    ],
)
def test_names_the_bad_argument(arguments, words):
    with pytest.raises(ValueError, match=words):
        pack(*arguments)


CONFIGS = {
    "gpt2": models.GPT2Config(vocabulary_size=13, width=8, layers=2, heads=2, context_length=8),
    "llama": models.LlamaConfig(
        vocabulary_size=13, width=8, layers=2, heads=2, context_length=8, hidden_width=12
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_packed_row_gives_the_logits_of_each_document_alone(name):
    config, build = CONFIGS[name], models.catalog[name][1]
    documents, length = [[1, 2, 3], [4, 5], [6, 7, 8, 9], [1, 2, 3]], 8
    packed_model, plain_model = build(config, packed=True), build(config)
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=w.shape, scale=0.4) for w in packed_model.get_weights()]
    packed_model.set_weights(weights)
    plain_model.set_weights(weights)

    def logits(model, **inputs):
        tensors = {key: ops.convert_to_tensor(value) for key, value in inputs.items()}
        return ops.convert_to_numpy(model(tensors))

    packed = pack(documents, length)
    found = logits(packed_model, **packed._asdict())
    pieces = [[1, 2, 3], [4, 5], [6, 7, 8], [9], [1, 2, 3]]
    alone = pack([piece + [0] * (length - len(piece)) for piece in pieces], length)
    valid = np.arange(length) < np.array([[len(piece)] for piece in pieces])
    expected = logits(plain_model, token_ids=alone.token_ids, valid=valid)
    np.testing.assert_allclose(found[packed.valid], expected[valid], atol=1e-5)
    # As one running text the second document sees the first.
    running = logits(plain_model, token_ids=packed.token_ids, valid=packed.valid)
    assert abs(running - found)[0, 3].max() > 1e-2


def test_a_packed_row_predicts_within_its_documents_only():
    packed = pack([[1, 2, 3], [4, 5]], 5)
    _, targets, weights = next_token(packed.token_ids, packed.valid, packed.segment_ids)
    np.testing.assert_array_equal(targets[weights], [2, 3, 5])
