"""Figures of classes, by their formulas."""

import importlib
import pathlib

import numpy as np
import pytest

pytestmark = pytest.mark.once


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).parents[3] / "recipes"))
    return importlib.import_module("parts.class_report")


def test_confusion_counts_the_truth_by_rows(report):
    counts = report.confusion(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 2, 1]), 4)
    assert counts.tolist() == [[2, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    # 2 TP / (2 TP + FP + FN): 4 / 5, 2 / 5, 0 / 2, and nothing at all.
    assert report.f1_scores(counts).tolist() == [0.8, 0.4, 0.0, 0.0]


def test_calibration_is_by_bins_with_their_upper_ends(report):
    probabilities = np.array([0.5, 0.4, 0.9, 1.0, 0.75])
    right = np.array([True, False, True, True, False])
    counts, confidence, accuracy = report.calibration(probabilities, right, bins=4)
    assert counts.tolist() == [0, 2, 1, 2]
    assert confidence == pytest.approx([0, 0.45, 0.75, 0.95])
    assert accuracy.tolist() == [0, 0.5, 0, 1]
    # (2 * 0.05 + 1 * 0.75 + 2 * 0.05) / 5
    assert report.calibration_error(probabilities, right, bins=4) == pytest.approx(0.19)
    assert report.calibration_error(np.ones(3), np.ones(3, bool)) == 0


def test_figures_and_plots(report, tmp_path):
    truth = np.array([0, 1, 1, 0])
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    found = report.figures(truth, probabilities, ["ham", "spam"])
    assert found["accuracy"] == 0.75
    assert found["f1"] == pytest.approx({"ham": 4 / 5, "spam": 2 / 3})
    assert found["macro_f1"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert found["confusion"] == [[2, 0], [1, 1]]
    # Each of the four alone in its bin of a fifteenth.
    assert found["calibration_error"] == pytest.approx((0.1 + 0.2 + 0.6 + 0.3) / 4)
    report.plot_confusion(np.array(found["confusion"]), ["ham", "spam"], tmp_path / "a.png")
    report.plot_reliability(probabilities.max(axis=1), truth == 0, tmp_path / "b.png")
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("a.png", "b.png"))
