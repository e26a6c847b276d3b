import itertools
from collections import Counter

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_arch.text import (
    CharacterTokenizer,
    consecutive_windows,
    pipeline,
    split,
    stream,
    windows,
)


def take(dataset, count):
    return list(itertools.islice(dataset.as_numpy_iterator(), count))


def rows_of(batches):
    """Puts the first token back before the targets: int `[rows, T + 1]`."""
    return np.concatenate(
        [np.hstack([inputs["token_ids"][:, :1], targets]) for inputs, targets, _ in batches]
    )


def assert_same(batches, others):
    assert len(batches) == len(others)
    for batch, other in zip(batches, others, strict=True):
        keras.tree.map_structure(np.testing.assert_array_equal, batch, other)


class TestSplit:
    def test_the_parts_are_the_beginning_and_the_end(self):
        train, validation = split(np.arange(1_115_394))
        # nanoGPT: int(n * 0.9).
        assert len(train) == 1_003_854
        np.testing.assert_array_equal(np.concatenate([train, validation]), np.arange(1_115_394))

    @pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5])
    def test_a_fraction_out_of_range_is_refused(self, fraction):
        with pytest.raises(ValueError, match=f"received validation_fraction={fraction}"):
            split(np.arange(10), fraction)

    @pytest.mark.parametrize("count", [0, 1])
    def test_too_few_ids_are_refused(self, count):
        with pytest.raises(ValueError, match="too few to split"):
            split(np.arange(count))


class TestWindows:
    def test_rows_are_pieces_of_the_text(self):
        for inputs, targets, weights in take(windows(np.arange(100, 150), 8, 4, seed=0), 20):
            first = inputs["token_ids"][:, :1]
            np.testing.assert_array_equal(inputs["token_ids"], first + np.arange(8))
            np.testing.assert_array_equal(targets, first + np.arange(1, 9))
            assert inputs["valid"].all()
            assert weights.all()
            assert (targets.dtype, weights.dtype) == (np.int32, bool)

    def test_every_start_comes_up_and_no_other(self):
        rows = rows_of(take(windows(np.arange(12), 8, 16, seed=1), 20))
        # The last window ends with the last token: 12 - 8 starts.
        assert set(rows[:, 0]) == {0, 1, 2, 3}

    def test_the_one_window_of_a_short_text(self):
        rows = rows_of(take(windows(np.arange(9), 8, 2, seed=0), 3))
        np.testing.assert_array_equal(rows, np.tile(np.arange(9), (6, 1)))

    def test_start_step_continues_the_same_batches(self):
        ids = np.arange(1000)
        batches = take(windows(ids, 8, 4, seed=5), 10)
        assert_same(take(windows(ids, 8, 4, seed=5, start_step=7), 3), batches[7:])

    def test_the_batches_depend_on_the_seed_alone(self):
        ids = np.arange(10_000)
        batches = take(windows(ids, 8, 4, seed=5), 3)
        keras.utils.set_random_seed(123)
        assert_same(take(windows(ids, 8, 4, seed=5), 3), batches)
        assert (rows_of(take(windows(ids, 8, 4, seed=6), 3)) != rows_of(batches)).any()

    @pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64])
    def test_ids_may_lie_in_a_file(self, tmp_path, dtype):
        ids = np.random.default_rng(0).integers(60_000, size=500).astype(dtype)
        ids.tofile(tmp_path / "ids.bin")
        mapped = np.memmap(tmp_path / "ids.bin", dtype=dtype, mode="r")
        assert_same(take(windows(mapped, 8, 4, seed=0), 3), take(windows(ids, 8, 4, seed=0), 3))

    def test_ids_may_be_a_list(self):
        ids = np.arange(50)
        batches = take(windows(ids, 8, 4, seed=0), 3)
        assert_same(take(windows(ids.tolist(), 8, 4, seed=0), 3), batches)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"context": 0}, "context must be a positive integer; received context=0"),
            ({"batch_size": -1}, "batch_size must be a positive integer; received batch_size=-1"),
            ({"seed": -1}, "seed must be an integer, 0 or more; received seed=-1"),
            (
                {"start_step": -2},
                "start_step must be an integer, 0 or more; received start_step=-2",
            ),
            ({"context": 10}, "below the number of ids, 10; received context=10"),
            ({"ids": np.array([1, -1, 2])}, "must not be negative; received -1"),
            ({"ids": np.zeros(1, int)}, "at least 2 tokens; received 1"),
            ({"ids": np.ones(10)}, "dtype float64"),
            ({"ids": np.ones((5, 5), int)}, r"shape \(5, 5\)"),
            ({"vocabulary_size": 9}, "below vocabulary_size=9; received 9"),
        ],
    )
    def test_wrong_arguments_are_refused(self, change, message):
        arguments = {"ids": np.arange(10), "context": 2, "batch_size": 1, "seed": 0, **change}
        with pytest.raises(ValueError, match=message):
            windows(**arguments)


class TestConsecutiveWindows:
    @pytest.mark.parametrize("count", [2, 3, 8, 9, 10, 16, 17, 49, 50])
    @pytest.mark.parametrize(("context", "batch_size"), [(8, 2), (3, 5), (1, 1), (100, 3)])
    def test_every_target_counts_once(self, count, context, batch_size):
        ids = np.random.default_rng(count).integers(1, 100, size=count)
        dataset = consecutive_windows(ids, context, batch_size)
        batches = list(dataset.as_numpy_iterator())
        rows = -(-(count - 1) // context)
        assert len(batches) == len(dataset) == -(-rows // batch_size)
        sources, counted = [], []
        for inputs, targets, weights in batches:
            assert targets.shape == weights.shape == (batch_size, context)
            assert (inputs["token_ids"][~inputs["valid"]] == 0).all()
            assert (targets[~weights] == 0).all()
            sources.extend(inputs["token_ids"][weights])
            counted.extend(targets[weights])
        np.testing.assert_array_equal(counted, ids[1:])
        np.testing.assert_array_equal(sources, ids[:-1])

    def test_a_second_pass_gives_the_same_batches(self):
        dataset = consecutive_windows(np.arange(1, 50), 8, 4)
        assert_same(list(dataset.as_numpy_iterator()), list(dataset.as_numpy_iterator()))

    @pytest.mark.parametrize(
        ("ids", "message"),
        [([3], "at least 2 tokens; received 1"), ([1, -1], "received -1"), ([1, 9], "received 9")],
    )
    def test_wrong_ids_are_refused(self, ids, message):
        with pytest.raises(ValueError, match=message):
            consecutive_windows(np.array(ids), 8, 4, vocabulary_size=9)


class EndingTokenizer(CharacterTokenizer):
    """Characters and, as the highest id, an end token."""

    vocabulary_size = property(lambda self: len(self.characters) + 2)
    special_ids = property(lambda self: {"end": len(self.characters) + 1})


@pytest.fixture
def corpus(tmp_path):
    """Five files, each of one character that no other has, 7 to 11 times."""
    files = []
    for i, character in enumerate("abcde"):
        files.append(tmp_path / f"{character}.txt")
        files[-1].write_text(character * (7 + i))
    return files


class TestStream:
    def test_documents_are_packed_without_gaps(self, corpus):
        tokenizer = EndingTokenizer("abcde")
        documents = {i: [i] * (6 + i) + [6] for i in range(1, 6)}
        epoch = sum(map(len, documents.values()))
        batches = take(stream(corpus, tokenizer, 6, 5, seed=0, buffer_rows=1), 8)
        tokens = rows_of(batches).ravel()
        assert len(tokens) == 280
        orders = []
        for start in range(0, 280 - epoch, epoch):
            order = list(dict.fromkeys(tokens[start : start + epoch]))
            order.remove(6)
            expected = np.concatenate([documents[document] for document in order])
            np.testing.assert_array_equal(tokens[start : start + epoch], expected)
            orders.append(tuple(order))
        assert len(orders) == 5
        assert len(set(orders)) > 1
        assert all(inputs["valid"].all() and weights.all() for inputs, _, weights in batches)

    def test_a_tokenizer_without_end_token_joins_documents(self, corpus):
        rows = rows_of(take(stream(corpus[:1], CharacterTokenizer("abcde"), 6, 5, seed=0), 2))
        assert (rows == 1).all()

    def test_rows_are_shuffled_within_groups(self, tmp_path):
        text = "".join(map(chr, range(0x4E00, 0x4E00 + 400)))
        (tmp_path / "text").write_text(text, encoding="utf-8")
        arguments = ([tmp_path / "text"], CharacterTokenizer.from_text(text), 4, 2)
        plain = rows_of(take(stream(*arguments, seed=0, buffer_rows=1), 40))
        mixed = rows_of(take(stream(*arguments, seed=0, buffer_rows=20), 40))
        np.testing.assert_array_equal(plain, np.arange(1, 401).reshape(80, 5))
        orders = []
        for start in range(0, 80, 20):
            group = mixed[start : start + 20]
            order = np.argsort(group[:, 0])
            np.testing.assert_array_equal(group[order], plain[start : start + 20])
            orders.append(tuple(order))
        assert len(set(orders)) == 4

    @pytest.mark.parametrize("start_step", [1, 7])
    def test_start_step_continues_the_same_batches(self, corpus, byte_pair, start_step):
        batches = take(stream(corpus, byte_pair, 3, 2, seed=3, buffer_rows=5), 12)
        dataset = stream(corpus, byte_pair, 3, 2, seed=3, start_step=start_step, buffer_rows=5)
        assert_same(take(dataset, 12 - start_step), batches[start_step:])

    def test_the_batches_depend_on_the_arguments_alone(self, corpus, byte_pair):
        dataset = stream(corpus, byte_pair, 3, 2, seed=3)
        batches = take(dataset, 5)
        assert_same(take(dataset, 5), batches)
        keras.utils.set_random_seed(123)
        assert_same(take(stream(corpus, byte_pair, 3, 2, seed=3), 5), batches)
        other = take(stream(corpus, byte_pair, 3, 2, seed=4), 5)
        assert (rows_of(other) != rows_of(batches)).any()

    def test_a_document_without_end_is_streamed(self, corpus, monkeypatch):
        monkeypatch.setattr(pipeline, "read_blocks", lambda path: itertools.repeat("abc\n"))
        tokenizer = CharacterTokenizer("abc\n")
        rows = rows_of(take(stream(corpus, tokenizer, 7, 2, seed=0, buffer_rows=4), 3))
        assert Counter(rows.ravel()) == {1: 12, 2: 12, 3: 12, 4: 12}

    def test_a_file_that_is_not_utf8_is_named(self, tmp_path):
        (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
        dataset = stream([tmp_path / "latin.txt"], CharacterTokenizer("caf"), 2, 1, seed=0)
        with pytest.raises(tf.errors.OpError, match=r"latin\.txt must be UTF-8.* at offset 3"):
            take(dataset, 1)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"context": 0}, "received context=0"),
            ({"batch_size": 0}, "received batch_size=0"),
            ({"buffer_rows": 0}, "received buffer_rows=0"),
            ({"seed": -1}, "received seed=-1"),
            ({"start_step": -1}, "received start_step=-1"),
            ({"files": "a.txt"}, "must be a list of paths; received 'a.txt'"),
            ({"files": []}, r"must hold some text; received \[\]"),
        ],
    )
    def test_wrong_arguments_are_refused(self, corpus, change, message):
        arguments = {"files": corpus, "tokenizer": CharacterTokenizer("a"), "context": 2}
        with pytest.raises(ValueError, match=message):
            stream(**{**arguments, "batch_size": 1, "seed": 0, **change})

    def test_missing_and_empty_files_are_refused(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"missing\.txt"):
            stream([tmp_path / "missing.txt"], CharacterTokenizer("a"), 2, 1, seed=0)
        (tmp_path / "empty.txt").touch()
        with pytest.raises(ValueError, match=r"must hold some text; received .*empty\.txt"):
            stream([tmp_path / "empty.txt"], CharacterTokenizer("a"), 2, 1, seed=0)


@pytest.fixture(params=["windows", "consecutive_windows", "stream"])
def dataset(request, corpus):
    ids = np.arange(100) % 6
    return {
        "windows": lambda: windows(ids, 8, 4, seed=0),
        "consecutive_windows": lambda: consecutive_windows(ids, 8, 4),
        "stream": lambda: stream(corpus, CharacterTokenizer("abcde"), 8, 4, seed=0),
    }[request.param]()


def test_shapes_are_static(dataset):
    inputs, targets, weights = dataset.element_spec
    shape = tf.TensorShape([4, 8])
    assert inputs == {
        "token_ids": tf.TensorSpec(shape, tf.int32),
        "valid": tf.TensorSpec(shape, tf.bool),
    }
    assert (targets, weights) == (tf.TensorSpec(shape, tf.int32), tf.TensorSpec(shape, tf.bool))


def test_nothing_is_tuned_or_reordered(dataset):
    assert dataset.options().autotune.enabled is False
    assert dataset.options().deterministic is True


def test_fit_takes_the_dataset(dataset):
    token_ids = keras.Input((8,), dtype="int32", name="token_ids")
    valid = keras.Input((8,), dtype="bool", name="valid")
    x = keras.layers.Embedding(6, 6)(token_ids) * keras.ops.cast(valid[..., None], "float32")
    model = keras.Model({"token_ids": token_ids, "valid": valid}, keras.layers.Dense(6)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, weighted_metrics=[])
    history = model.fit(dataset, steps_per_epoch=3, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
