"""The road from a pretrained encoder-decoder, or none, to one that does a task."""

import csv
import dataclasses
import importlib
import json
import pathlib
import types

import keras
import numpy as np
import pytest

import keras_arch as ka

PROJECT = pathlib.Path(__file__).parents[2]
LINES = [
    "a red dog\tein roter Hund",
    "a cat\teine Katze",
    "dogs\tHunde",
    "a dog runs\tein Hund rennt",
]
SPECIAL = {"begin": "<s>", "end": "</s>", "sentinel_0": "<extra_id_0>"}
SHAPE = {"model": "t5", "width": 8, "layers": 1, "heads": 2, "initializer_range": 0.1}
SHAPE |= {"context": 40, "vocabulary_size": 270}


@pytest.fixture
def recipe(monkeypatch):
    """The recipe; searches and the export, tested elsewhere, are noted down instead."""
    monkeypatch.syspath_prepend(str(PROJECT / "recipes"))
    names = ("parts.training_run", "parts.pair_model", "finetune_seq2seq", "parts.rouge")
    run, road, module, rouge = map(importlib.import_module, names)
    calls = []

    def evaluate(model, tokenizer, pairs, search, longest, source_end):
        calls.append(("evaluate", search.width, longest, source_end))
        return {"bleu": {"greedy": 1.5}}, {
            "greedy": [*pairs.targets],
            "beam 2": ["", *pairs.targets[1:]],
        }

    monkeypatch.setattr(road, "evaluate", evaluate)
    monkeypatch.setattr(road, "export_model", lambda *_, **options: calls.append(options))
    return types.SimpleNamespace(
        main=module.main,
        Settings=module.Settings,
        shaped=module.shaped,
        rouge=rouge.rouge,
        make_model=run.make_model,
        calls=calls,
    )


def settings(recipe, tmp_path, **changes):
    data = tmp_path / "pairs.tsv"
    if not data.exists():
        data.write_text("\n".join(LINES * 5) + "\n")
    small = {"data": str(data), "tokens": 64, "steps": 2, "evaluate_every": 1, "warmup_steps": 1}
    small |= {"beams": 2, "jit_compile": "auto" if keras.backend.backend() == "jax" else "no"}
    return recipe.Settings(run_folder=tmp_path / "run", **(small | changes))


@pytest.fixture
def pretrained(tmp_path):
    """A run folder as a pretraining leaves it, with the weights it began with."""
    return make_pretrained(tmp_path / "pretrained")


def make_pretrained(folder, special=SPECIAL, **changes):
    shape = SHAPE | changes
    ka.training.RunFolder(folder, shape | {"rate": None}).close()
    texts = [line.replace("\t", " ") for line in LINES]
    tokenizer = ka.text.BytePairTokenizer.train(texts, 270, special)
    tokenizer.save(folder / "tokenizer")
    config_class, build = ka.models.catalog[shape["model"]]
    options = {name: shape[name] for name in ("width", "heads", "initializer_range")}
    if shape["model"] == "bart":
        options["context_length"] = shape["context"]
    options |= {"encoder_layers": 1, "decoder_layers": 1}
    config = config_class(vocabulary_size=tokenizer.vocabulary_size, **options)
    build(config).save(folder / "model.keras")
    return folder


def weights(model):
    return [keras.ops.convert_to_numpy(w.value) for w in model.weights if "seed" not in w.path]


def test_a_run_from_pretrained_weights(recipe, tmp_path, pretrained):
    # No update moves a weight: those of the run in the end are those it began with.
    rates = {"learning_rate": 1e-30, "minimum_learning_rate": 0.0, "weight_decay": 0.0}
    asked = settings(recipe, tmp_path, initial_run=str(pretrained), prefix="say: ", **rates)
    recipe.main(asked)
    folder = tmp_path / "run"
    report = json.loads((folder / "report.json").read_text())
    models = [
        keras.saving.load_model(f / "model.keras", compile=False) for f in (pretrained, folder)
    ]
    for ours, theirs in zip(*map(weights, models), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    tokenizer = ka.text.load_tokenizer(folder / "tokenizer")
    assert tokenizer.special_tokens == SPECIAL
    # Of 20 pairs two are to validate on, the 17th and 18th.
    texts = [line.split("\t") for line in LINES[:2]]
    nats = [pair_nats(models[0], tokenizer, f"say: {source}", target) for source, target in texts]
    assert report["validation_loss"] == pytest.approx(np.concatenate(nats).mean(), rel=1e-4)
    assert report["validation_tokens"] == sum(map(len, nats))
    with open(folder / "predictions.tsv", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == ["source", "reference", "greedy", "beam 2"]
    assert rows == [
        ["say: dogs", "Hunde", "Hunde", ""],
        ["say: a dog runs", "ein Hund rennt", "ein Hund rennt", "ein Hund rennt"],
    ]
    assert report["bleu"] == {"greedy": 1.5}
    # Two words of a text have no pair of words in ROUGE-2.
    assert report["rouge"]["greedy"] == {"rouge1": 100.0, "rouge2": 50.0, "rougeL": 100.0}
    assert report["rouge"]["beam 2"] == {"rouge1": 50.0, "rouge2": 50.0, "rougeL": 50.0}
    end = [tokenizer.special_ids["end"]]
    export = {"max_new_tokens": 39, "beams": 2, "length_penalty": 1.0, "source_end": end}
    assert recipe.calls == [("evaluate", 2, 39, end), export]
    with pytest.raises(ValueError, match="started with prefix='say: '; received prefix=''"):
        recipe.main(dataclasses.replace(asked, prefix=""))
    # What it starts from is part of what a run is; and a finished run may be started from.
    make_pretrained(pretrained, special={"begin": "<s>", "end": "</s>"})
    with pytest.raises(ValueError, match="was started with corpus="):
        recipe.main(asked)
    shape = dataclasses.asdict(recipe.shaped(settings(recipe, tmp_path, initial_run=str(folder))))
    assert {name: shape[name] for name in SHAPE} == SHAPE


def pair_nats(model, tokenizer, source, target):
    """The negative log-likelihood of a target's tokens and its end, by numpy."""
    special, source, target = tokenizer.special_ids, *map(tokenizer.encode, (source, target))
    source.append(special["end"])
    inputs = {"source_ids": [source], "token_ids": [[special["begin"], *target]]}
    inputs = {name: np.array(ids) for name, ids in inputs.items()}
    inputs |= {"source_valid": inputs["source_ids"] >= 0, "valid": inputs["token_ids"] >= 0}
    logits = keras.ops.convert_to_numpy(model(inputs))[0].astype("float64")
    logits -= logits.max(-1, keepdims=True)
    truth = [*target, special["end"]]
    return np.log(np.exp(logits).sum(-1)) - logits[np.arange(len(truth)), truth]


@pytest.mark.once
def test_from_scratch_the_shape_stays_and_the_weights_go(recipe, tmp_path):
    pretrained = make_pretrained(tmp_path / "pretrained", model="bart")
    strategy = ka.training.strategy("one")
    found = {}
    for scratch in (False, True):
        changes = {"initial_run": str(pretrained), "from_scratch": scratch, "dropout": 0.5}
        asked = recipe.shaped(settings(recipe, tmp_path, **changes))
        tokenizer = asked.make_tokenizer(None)
        found[scratch], _ = recipe.make_model(
            asked, strategy, asked.schedule(), tokenizer.vocabulary_size
        )
    model = keras.saving.load_model(pretrained / "model.keras", compile=False)
    expected = weights(model)
    kept, new = (weights(found[scratch]) for scratch in (False, True))
    assert [w.shape for w in kept] == [w.shape for w in new] == [w.shape for w in expected]
    assert all(map(np.array_equal, kept, expected))
    assert not all(map(np.array_equal, new, expected))
    rates = [x.rate for x in found[False].layers if isinstance(x, keras.layers.Dropout)]
    assert set(rates) == {0.5}


@pytest.mark.once
def test_without_an_initial_run_the_pairs_give_the_tokenizer(recipe, tmp_path):
    asked = recipe.shaped(settings(recipe, tmp_path, width=16, context=300))
    assert (asked.model, asked.width, asked.layers, asked.vocabulary_size) == ("t5", 16, 3, 8000)
    assert asked.lengths() == (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 300)
    train, _, _ = asked.find_pairs()
    tokenizer = asked.make_tokenizer(train)
    assert tokenizer.special_tokens == {"begin": "<s>", "end": "</s>"}
    assert len(tokenizer.encode("Hunde")) == 1


@pytest.mark.once
def test_rouge_is_of_words_in_any_letters(recipe):
    # 2 of 3 and of 4 words: 2 * 2 / 7. One of 2 and of 3 pairs: 2 / 5.
    found = recipe.rouge(["Ein schöner Hund", "x"], ["ein SCHÖNER Tag, oder", "y"])
    assert found == {"rouge1": 28.57, "rouge2": 20.0, "rougeL": 28.57}
    assert recipe.rouge(["schöner"], ["schaner"])["rouge1"] == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 16}, "width is the initial run's, 8; received width=16"),
        ({"model": "bart"}, "model is the initial run's, 't5'; received model='bart'"),
        ({"context": 1}, "context=1"),
        ({"tokens": 0}, "tokens=0"),
        ({"beams": 0}, "width=0"),
        ({"initial_run": None, "from_scratch": True}, "from_scratch=True, initial_run=None"),
        ({"initial_run": None, "vocabulary_size": 100}, "vocabulary_size=100"),
        ({"initial_run": "nothing"}, "initial_run='nothing', which has no settings.json"),
        ({"data": "nothing"}, "received 'nothing'"),
    ],
)
@pytest.mark.once
def test_bad_settings_are_named_before_anything_is_written(
    recipe, tmp_path, pretrained, changes, message
):
    with pytest.raises(ValueError, match=message):
        recipe.main(settings(recipe, tmp_path, **({"initial_run": str(pretrained)} | changes)))
    assert not (tmp_path / "run").exists()


@pytest.mark.once
def test_initial_runs_that_will_not_do(recipe, tmp_path):
    other = make_pretrained(tmp_path / "other", special={"end": "<|endoftext|>"})
    with pytest.raises(
        ValueError, match=r"must be of pretrain_seq2seq\.py or finetune_seq2seq\.py"
    ):
        recipe.main(settings(recipe, tmp_path, initial_run=str(other)))
    bart = make_pretrained(tmp_path / "bart", model="bart")
    with pytest.raises(ValueError, match="context is the initial run's, 40; received context=30"):
        recipe.main(settings(recipe, tmp_path, initial_run=str(bart), context=30))
    # A tokenizer that was put there later.
    texts = [chr(97 + i % 26) * 4 for i in range(100)]
    ka.text.BytePairTokenizer.train(texts, 265, SPECIAL).save(bart / "tokenizer")
    with pytest.raises(ValueError, match="model of its settings and its tokenizer; received"):
        recipe.main(settings(recipe, tmp_path, initial_run=str(bart)))


@pytest.mark.once
def test_a_target_that_is_missing_or_too_long_is_named(recipe, tmp_path, pretrained):
    asked = settings(recipe, tmp_path, initial_run=str(pretrained))
    data = tmp_path / "pairs.tsv"
    data.write_text("\n".join([*LINES, "a cat\t"]) + "\n")
    with pytest.raises(ValueError, match="received 1 columns on line 5"):
        recipe.main(asked)
    data.write_text("\n".join([*LINES, "a cat\t" + "x y " * 30, *LINES]) + "\n")
    with pytest.raises(ValueError, match=r"at most 40 tokens.* in row 4"):
        recipe.main(asked)
