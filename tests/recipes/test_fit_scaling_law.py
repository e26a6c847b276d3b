import dataclasses
import importlib
import json
import pathlib

import pytest

import keras_arch as ka

PROJECT = pathlib.Path(__file__).parents[2]
TEXT = "the quick brown fox jumps over the lazy dog.\n" * 40

VOCABULARY_SIZE = ka.text.CharacterTokenizer.from_text(TEXT).vocabulary_size
LAW = ka.analysis.ScalingLaw(0.5, 20.0, 0.4, 30.0, 0.5)

pytestmark = pytest.mark.once


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "recipes"))
    return importlib.import_module("fit_scaling_law")


@pytest.fixture
def settings(recipe, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(TEXT)
    return recipe.Settings(
        run_folder=tmp_path / "grid",
        data=str(corpus),
        layers=1,
        heads=1,
        width=(4, 8),
        steps=(2, 4, 6),
        evaluate_every=2,
        warmup_steps=1,
        context=8,
        batch_size=4,
        resamples=3,
        budget=(1e9,),
        jit_compile="no",
    )


def write_report(run, strategy, files):
    """A training whose loss is the law's."""
    parameters = ka.analysis.count_parameters(run.config(VOCABULARY_SIZE))
    loss = LAW.loss(parameters, run.steps * run.batch_size * run.context)
    report = {"parameters": parameters, "steps": run.steps, "validation_loss": float(loss)}
    run.run_folder.mkdir(parents=True)
    (run.run_folder / "report.json").write_text(json.dumps(report))


def test_the_law_of_the_runs_is_found(recipe, settings, monkeypatch, capsys):
    monkeypatch.setattr(recipe, "train", write_report)
    recipe.main(settings)
    folders = {path.name for path in settings.run_folder.iterdir() if path.is_dir()}
    assert folders == {f"width_{width}_steps_{steps}" for width in (4, 8) for steps in (2, 4, 6)}
    report = json.loads((settings.run_folder / "law.json").read_text())
    assert [point["tokens"] for point in report["points"]] == [64, 128, 192] * 2
    # Two sizes do not tell E from A and alpha, but B, beta and the losses they do.
    assert report["law"]["token_scale"] == pytest.approx(LAW.token_scale, rel=1e-3)
    assert report["law"]["token_power"] == pytest.approx(LAW.token_power, rel=1e-3)
    (best,) = report["optimal"]
    assert 6 * best["parameters"] * best["tokens"] == pytest.approx(1e9)
    assert (settings.run_folder / "law.png").stat().st_size > 1000
    assert "Run 6 of 6: width 8, 6 updates." in capsys.readouterr().out


def test_a_run_of_the_grid_is_trained_once(recipe, settings):
    run = settings.runs()[0]
    strategy = ka.training.strategy("one")
    files = ka.text.find_corpus(settings.data)
    recipe.train(run, strategy, files)
    path = run.run_folder / "report.json"
    report, written = json.loads(path.read_text()), path.stat().st_mtime_ns
    parameters = ka.analysis.count_parameters(run.config(VOCABULARY_SIZE))
    expected = {"parameters": parameters, "tokens": 64, "loss": report["validation_loss"]}
    assert recipe.point(run) == expected
    recipe.train(run, strategy, files)
    assert path.stat().st_mtime_ns == written


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": (8,)}, r"width must be two different values or more; received width=\(8,\)"),
        ({"steps": (2, 2, 4)}, "steps must be two different values or more"),
        ({"steps": (2, 4)}, "needs 6 runs or more"),
        ({"steps": (2, 4, 5)}, "steps=5, evaluate_every=2"),
        ({"width": (4, 9), "heads": 2}, "heads"),
        ({"budget": (0.0,)}, "budget must be positive; received budget=0.0"),
        ({"resamples": -1}, "resamples must be an integer, 0 or more"),
    ],
)
def test_a_bad_grid_is_refused_before_anything_is_trained(recipe, settings, changes, message):
    settings = dataclasses.replace(settings, **changes)
    with pytest.raises(ValueError, match=message):
        recipe.main(settings)
    assert not settings.run_folder.exists()
