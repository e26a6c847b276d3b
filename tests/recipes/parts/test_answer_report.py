import importlib
import pathlib

import pytest

pytestmark = pytest.mark.once


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[3] / "recipes"))
    return importlib.import_module("parts.answer_report")


@pytest.mark.parametrize(
    ("found", "true", "match", "f1"),
    [
        ("Saint Bernadette", "saint bernadette", True, 1.0),
        ("the U.S. Navy!", "US  navy", True, 1.0),
        # One of two words is true, one of one is found: 2 * 0.5 * 1 / 1.5.
        ("an apple pie", "Apple", False, 2 / 3),
        # A word counts as often as it stands in both: two of three, two of two.
        ("tom tom tom", "Tom Tom", False, 0.8),
        ("theatre", "the atre", False, 0.0),
        ("", "Navy", False, 0.0),
        ("the", "a", True, 1.0),
    ],
)
def test_by_hand(report, found, true, match, f1):
    assert report.exact_match(found, true) is match
    assert report.f1(found, true) == pytest.approx(f1)
    assert report.f1(true, found) == pytest.approx(f1)
