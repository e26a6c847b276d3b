import importlib
import pathlib
import types

import pytest

import keras_arch as ka
from tests.recipes.encoders import PIECES

pytestmark = pytest.mark.once


@pytest.fixture
def kind(monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[3] / "recipes"))
    return importlib.import_module("parts.answered_questions").Answered


def read(kind, tmp_path, text):
    (tmp_path / "questions.tsv").write_text(text)
    return kind.read(tmp_path / "questions.tsv")


def settings(between=1):
    tokenizer = ka.text.WordPieceTokenizer(PIECES)
    start = types.SimpleNamespace(tokenizer=tokenizer)
    return types.SimpleNamespace(start=start, context=12, room=4 - between, between=between)


def test_an_answer_stands_where_it_is_first_or_where_it_is_said_to(kind, tmp_path):
    lines = "who \t red\tred red\nwho\tred\t red red\t5\r\n"
    first, second = read(kind, tmp_path, lines)
    assert first == ("who", "red", "red red", 0)
    assert second == ("who", "red", " red red", 5)


@pytest.mark.parametrize("between", [1, 2])
def test_windows_point_to_the_tokens_of_the_answer(kind, tmp_path, between):
    questions = read(kind, tmp_path, "the dog\tred cats\ta red cats sleep\ndog\ta\ta\n")
    windows, labels = kind.examples(questions, settings(between))
    # Tokens "a red cat ##s sleep", of which all have room after "the dog".
    assert [window.question for window in windows] == [0, 1]
    row, (first, last) = windows[0].inputs["token_ids"].tolist(), labels[0]
    assert row[: 3 + between] == [2, 5, 11, *[3] * between]
    assert row[first : last + 1] == [10, 6, 7]
    inputs, targets = kind.rows(None, windows, labels, 12, ["token_ids", "valid"])
    assert inputs.keys() == {"token_ids", "valid"}
    assert inputs["token_ids"].shape == (2, 12)
    assert targets.tolist() == [[4 + between, 6 + between], [2 + between] * 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("who\tred\n", r"a question, an answer and a text .* \['who', 'red'\] on line 1"),
        ("who\tred\tred\nwho\t \tred\n", "on line 2"),
        ("who\tred\tred\tx\n", "on line 1"),
        ("who\tblue\tred\n", "'blue' of line 1 does not stand in the text"),
        ("who\tred\tred\t1\n", "'red' of line 1 does not stand at 1"),
    ],
)
def test_lines_without_an_answer_are_named(kind, tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(kind, tmp_path, text)


def test_an_answer_without_tokens_is_named(kind):
    question = types.SimpleNamespace(question="who", answer="\u200b", text="a \u200b red", start=2)
    with pytest.raises(ValueError, match=r"knows none of .* the answer to 'who'"):
        kind.examples([question], settings())


def test_roberta_has_two_separators_between_texts(kind):
    between = importlib.import_module("parts.encoder").separators_between
    shape = {"vocabulary_size": 9, "width": 8, "layers": 1, "heads": 2, "context_length": 16}
    assert between(ka.models.BERTConfig(**shape)) == 1
    assert between(ka.models.RoBERTaConfig(**shape)) == 2
