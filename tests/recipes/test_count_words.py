import importlib
import json
import pathlib

import pytest

pytestmark = pytest.mark.once


@pytest.fixture
def recipe(monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[2] / "recipes"))
    return importlib.import_module("count_words")


def lines(first, count):
    rows = [("good", "a fine bright day"), ("bad", "a dull grey day"), ("odd", "purple rain")]
    return "".join(
        f"{label}\t{text} number {i}\n" for i in range(first, first + count) for label, text in rows
    )


def test_words_tell_the_classes(recipe, tmp_path):
    data, validation = tmp_path / "train.tsv", tmp_path / "validation.tsv"
    data.write_text(lines(0, 10))
    validation.write_text(lines(10, 4) + "bad\ta fine bright day\n")
    recipe.count_words(data, validation, tmp_path / "run")
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    # The last line names the wrong class.
    assert report["confusion"] == [[4, 1, 0], [0, 4, 0], [0, 0, 4]]
    assert report["accuracy"] == 12 / 13
    assert list(report["f1"]) == ["bad", "good", "odd"]
    # fine bright day dull grey purple rain number, and the pairs of neighbours; of two letters.
    assert report["parameters"] == 3 * (8 + 7) + 3
    written = {path.name for path in (tmp_path / "run").iterdir()}
    assert written == {"report.json", "confusion.png", "reliability.png", "predictions.tsv"}


def test_a_label_to_evaluate_on_is_known(recipe, tmp_path):
    (tmp_path / "a.tsv").write_text(lines(0, 5))
    (tmp_path / "b.tsv").write_text("new\ttext\n")
    with pytest.raises(ValueError, match="labels of data; received 'new' too"):
        recipe.count_words(tmp_path / "a.tsv", tmp_path / "b.tsv", tmp_path / "run")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("good\ta fine day\n" * 9, "two labels or more, .* received 1, 'good' on 9"),
        (lines(0, 5) + "rare\ta fine day\n" * 4, "received 4, 'rare' on 4"),
        ("".join(f"{x}\t{x}{i}\n" for i in range(5) for x in ("aa", "bb")), "words that two of"),
        ("".join(f"{x}\t{x}\n" for i in range(5) for x in "ab"), "10 texts without, the first 'a'"),
    ],
)
def test_too_little_to_train_on_is_refused(recipe, tmp_path, data, message):
    (tmp_path / "a.tsv").write_text(data)
    with pytest.raises(ValueError, match=message):
        recipe.count_words(tmp_path / "a.tsv", tmp_path / "a.tsv", tmp_path / "run")
    assert not (tmp_path / "run").exists()
