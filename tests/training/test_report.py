import json
import math

import keras
import pytest

from keras_arch.training import Progress, write_report
from tests.training import tiny


def test_holds_the_figures(tmp_path):
    progress = Progress(step=8, train_seconds=1.23456, timed_steps=4, timed_seconds=0.05)
    report = write_report(
        tmp_path / "report.json",
        tiny.model(),
        progress,
        seed=3,
        row={"step": 6, "validation_loss": 2.0},
        validation_tokens=50,
        tokens_per_step=24,
        validation_characters=100,
    )
    assert report == json.loads((tmp_path / "report.json").read_text())
    assert report["backend"] == keras.backend.backend()
    assert report["parameters"] == 11 * 8 + 2 * 8 + 8 * 11 + 11
    assert (report["seed"], report["steps"], report["validation_tokens"]) == (3, 6, 50)
    assert report["train_seconds"] == 1.235
    assert report["ms_per_step"] == 12.5
    assert report["tokens_per_second"] == 1920.0
    assert report["perplexity"] == pytest.approx(math.e**2)
    assert report["bits_per_character"] == pytest.approx(2.0 / math.log(2) / 2)
    assert report["versions"]["keras"] == keras.__version__


def test_leaves_out_what_is_not_known(tmp_path):
    report = write_report(
        tmp_path / "report.json",
        tiny.model(),
        Progress(),
        seed=3,
        row={"step": 6, "validation_loss": 2.0},
        validation_tokens=50,
        tokens_per_step=24,
    )
    assert report["ms_per_step"] is None
    assert "bits_per_character" not in report
