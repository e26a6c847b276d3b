import importlib
import pathlib

import numpy as np
import pytest

from keras_arch.text import Pairs

pytestmark = pytest.mark.once


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[3] / "recipes"))
    return importlib.import_module("parts.hard_negatives")


def unit(rows, width, seed):
    x = np.random.default_rng(seed).normal(size=(rows, width))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype("float32")


def test_right_are_all_that_stand_beside_a_text_anywhere(parts):
    pairs = Pairs(["a", "b", "a", "c"], ["one", "two", "two", "three"])
    texts = parts.PairedTexts(pairs)
    assert texts.texts == ["one", "two", "three"]
    assert texts.right == [{0, 1}, {1}, {0, 1}, {2}]
    assert texts.fewest_wrong == 1
    # Cosines of a with one, two, three; of b; of a; of c.
    table = np.array([[0.9, 0.8, 0.1], [0.2, 0.9, 0.7], [0.9, 0.8, 0.1], [0.3, 0.5, 0.9]])
    documents = np.eye(3)
    found = texts.hardest(table, documents, 1, parts.exact_search)
    assert found.tolist() == [[2], [2], [2], [1]]


def many(parts, rows=1500):
    """Each text stands beside one that is right, the first also beside the next one's."""
    sources, targets = ([f"{kind}{i}" for i in range(rows)] for kind in "ab")
    return parts.PairedTexts(Pairs([*sources, sources[0]], [*targets, targets[1]]))


def test_the_hardest_are_those_of_a_whole_sort(parts):
    texts = many(parts, rows=4200)  # more than one block of queries
    queries, documents = unit(4201, 16, 1), unit(4200, 16, 2)
    found = texts.hardest(queries, documents, 20, parts.exact_search)
    assert found.shape == (4201, 20)
    for query, row, right in zip(queries, found, texts.right, strict=True):
        order = np.argsort(-(documents @ query), kind="stable")
        assert row.tolist() == [i for i in order if i not in right][:20]


def test_random_ones_are_wrong_and_each_once(parts):
    texts = many(parts, rows=5)
    found = texts.random(3, seed=1)
    assert all(len({*row} - right) == 3 for row, right in zip(found, texts.right, strict=True))
    np.testing.assert_array_equal(found, texts.random(3, seed=1))
    assert not np.array_equal(found, texts.random(3, seed=2))


def test_what_a_search_does_not_find_repeats(parts):
    texts = parts.PairedTexts(Pairs(["a", "b"], ["one", "two"]))

    def search(queries, documents, count):
        return np.array([[0, 1, -1], [1, -1, -1]])

    assert texts.hardest(None, None, 3, search).tolist() == [[1, 1, 1], [0, 0, 0]]


def test_a_table_lies_in_the_folder_until_the_next_search(parts, tmp_path):
    tables = iter(np.arange(6).reshape(3, 2, 1))
    mined = parts.MinedNegatives(tmp_path, 4, lambda: next(tables))
    assert mined.at(0).tolist() == [[0], [1]]
    assert mined.at(3).tolist() == [[0], [1]]
    assert mined.at(4).tolist() == [[2], [3]]
    # As in a process that goes on: nothing is searched again.
    again = parts.MinedNegatives(tmp_path, 4, None)
    assert again.at(2).tolist() == [[0], [1]]
    assert again.at(4).tolist() == again.at(6).tolist() == [[2], [3]]
    with pytest.raises(ValueError, match=r"negatives-00000008.npy is needed .* after 10 updates"):
        again.at(10)


def test_a_graph_of_neighbours_finds_nearly_all(parts):
    pytest.importorskip("faiss")
    texts = many(parts)
    queries, documents = unit(1501, 16, 1), unit(1500, 16, 2)
    exact, found = (
        texts.hardest(queries, documents, 20, search)
        for search in (parts.exact_search, parts.hnsw_search)
    )
    alike = [len({*a} & {*b}) for a, b in zip(exact, found, strict=True)]
    assert np.mean(alike) > 0.95 * 20
    assert all(not right & {*row} for right, row in zip(texts.right, found, strict=True))
