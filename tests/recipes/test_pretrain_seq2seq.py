"""The road from a text to a pretrained encoder-decoder."""

import importlib
import json
import pathlib
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_arch as ka

PROJECT = pathlib.Path(__file__).parents[2]
TEXT = "a red dog runs. the cat sleeps.\n" * 60


@pytest.fixture
def recipe(monkeypatch):
    """The recipe, with the export (tested in tests/serving) noted down instead."""
    monkeypatch.syspath_prepend(str(PROJECT / "recipes"))
    road, module = (
        importlib.import_module(name) for name in ("parts.text_model", "pretrain_seq2seq")
    )
    exports = []
    monkeypatch.setattr(module, "export_model", lambda _, **options: exports.append(options))
    return types.SimpleNamespace(
        main=road.main, Settings=module.Settings, module=module, exports=exports
    )


def settings(recipe, tmp_path, **changes):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(TEXT)
    small = {"vocabulary_size": 280, "width": 8, "layers": 1, "heads": 2, "context": 21}
    small |= {"batch_size": 4, "evaluation_batch_size": 2, "evaluation_batches": 2, "samples": 2}
    small |= {"steps": 2, "evaluate_every": 1, "warmup_steps": 1}
    jit = "auto" if keras.backend.backend() == "jax" else "no"
    small |= {"data": str(corpus), "jit_compile": jit}
    return recipe.Settings(run_folder=tmp_path / "run", **(small | changes))


def samples(folder):
    """The samples: each a source, what was written, what that restores, and the original."""
    blocks = (folder / "samples.txt").read_text().removesuffix("\n").split("\n\n----\n\n")
    names = ("source:   ", "written:  ", "restored: ", "original: ")
    for block in blocks:
        begins = [block.index(name) for name in names]
        parts = [block[a:b] for a, b in zip(begins, [*begins[1:], len(block)], strict=True)]
        yield [part[10:].removesuffix("\n") for part in parts]


def test_t5_learns_to_write_what_was_dropped(recipe, tmp_path):
    recipe.main(settings(recipe, tmp_path, ema=0.5))
    folder = tmp_path / "run"
    report = json.loads((folder / "report.json").read_text())
    # 20 tokens: 3 are noise, one span; two sentinels and the end are targets too.
    assert report["validation_tokens"] == 4 * 6
    assert report["validation_loss"] == pytest.approx(validation_loss(recipe, folder), rel=1e-4)
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    end = tokenizer.special_ids["end"]
    assert recipe.exports == [{"max_new_tokens": 5, "source_end": [end]}]
    assert set(tokenizer.special_ids) == {"begin", "end", "sentinel_0", "sentinel_1"}
    for source, written, restored, original in samples(folder):
        before, after = source.split("<extra_id_0>")
        assert original in TEXT
        for text in (restored, original):
            assert text.startswith(before)
            assert text.endswith(after)
        span = written.partition("<extra_id_0>")[2].partition("<extra_id_")[0]
        assert restored == before + (span if "<extra_id_0>" in written else "<extra_id_0>") + after
    assert (folder / "curves.png").stat().st_size > 1000


def validation_loss(recipe, folder):
    """The saved model's mean cross-entropy on pairs corrupted here, by numpy."""
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    special = tokenizer.special_ids
    ids = np.array(tokenizer.encode(TEXT), "int32")
    ids = ids[int(len(ids) * 0.9) :]
    nats = []
    for batch in range(2):
        random = np.random.default_rng([0, batch])
        for _ in range(2):
            begin = random.integers(len(ids) - 20 + 1)
            source, target = ka.objectives.span_corruption(
                ids[begin : begin + 20], random, [special["sentinel_0"], special["sentinel_1"]]
            )
            source = np.append(source, special["end"])
            inputs = {
                "source_ids": source[None],
                "token_ids": np.array([[special["begin"], *target]]),
            }
            inputs |= {"source_valid": np.ones((1, len(source)), bool)}
            inputs |= {"valid": np.ones((1, len(target) + 1), bool)}
            logits = keras.ops.convert_to_numpy(model(inputs))[0].astype("float64")
            logits -= logits.max(-1, keepdims=True)
            truth = [*target, special["end"]]
            nats += list(np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(truth)), truth])
    return np.mean(nats)


@pytest.mark.once
@pytest.mark.parametrize("kind", ["byte_pair", "sentence_piece"])
def test_bart_restores_a_text(recipe, tmp_path, monkeypatch, kind):
    # Spans of length 1, and of 0: many a source would be longer than the text.
    asked = settings(recipe, tmp_path, model="bart", mean_length=1.0, tokenizer=kind, seed=3)
    tokenizer = asked.make_tokenizer([tmp_path / "corpus.txt"])
    mask, begin, end = (tokenizer.special_ids[role] for role in ("mask", "begin", "end"))
    ids = np.array(tokenizer.encode(TEXT))
    batches = [*asked.batches(tokenizer, ids, 0).take(3)]
    (again,) = asked.batches(tokenizer, ids, 2).take(1)
    assert_equal(again, batches[2])
    for inputs, targets, weights in batches:
        inputs = {name: value.numpy() for name, value in inputs.items()}
        assert weights.numpy().all()
        assert (inputs["source_ids"] == mask).any(axis=1).all()
        last = inputs["source_valid"].sum(axis=1) - 1
        assert (inputs["source_ids"][np.arange(4), last] == end).all()
        for target in targets.numpy():
            assert tokenizer.decode(target[:-1]) in TEXT
        np.testing.assert_array_equal(inputs["token_ids"][:, 1:], targets[:, :-1])
        assert (inputs["token_ids"][:, 0] == begin).all()
        assert (targets.numpy()[:, -1] == end).all()
    stops = recipe.module.denoising.full_stops(tokenizer)
    assert all(tokenizer.decode([i]).endswith(".") for i in stops)
    assert tokenizer.encode("a.")[-1] in stops
    # The samples are the first pairs of the evaluation.
    _, targets, _ = next(iter(asked.validation(tokenizer, ids)))
    monkeypatch.setattr(recipe.module, "predict_ids", lambda *_: [[5, end], [6, 5]])
    asked.write_samples(None, tokenizer, ids, tmp_path)
    written = [tokenizer.decode([5]), tokenizer.decode([6, 5])]
    for i, (source, *others) in enumerate(samples(tmp_path)):
        assert "<mask>" in source
        assert others == [written[i], written[i], tokenizer.decode(targets[i, :-1].numpy())]
    assert asked.figures(tokenizer, ids) == {"validation_tokens": 4 * 21, "tokens_per_step": 84}
    assert asked.max_new_tokens() == 20


def assert_equal(batch, expected):
    pairs = zip(tf.nest.flatten(batch), tf.nest.flatten(expected), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary_size": 259}, "at least 260 for tokenizer='byte_pair'; received .*=259"),
        ({"rate": 0.0}, "rate=0.0"),
        ({"mean_length": 0.5}, "mean_length=0.5"),
        ({"model": "bart", "mean_length": 0.5}, "mean_length=0.5"),
        ({"model": "bart", "rate": 1.0}, "rate=1.0"),
        ({"context": 2}, "context=2"),
        ({"heads": 3, "model": "bart"}, "width=8, heads=3"),
        ({"evaluation_batches": 0}, "evaluation_batches=0"),
        ({"samples": 0}, "samples=0"),
        ({"data": "no such text"}, "no such text"),
    ],
)
def test_bad_settings_are_named_before_anything_is_written(recipe, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        recipe.main(settings(recipe, tmp_path, **changes))
    assert not (tmp_path / "run").exists()
