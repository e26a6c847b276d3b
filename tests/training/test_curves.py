import numpy as np
import pytest
from matplotlib.image import imread

from keras_arch.training import Progress, plot_curves

pytestmark = pytest.mark.once


def rows(validated):
    made = [{"step": s, "train_loss": 4 - s / 10, "learning_rate": s / 10} for s in range(1, 9)]
    if validated:
        made[3]["validation_loss"] = 3.9
        made[7]["validation_loss"] = 3.4
    return made


def test_writes_a_picture_of_both_losses(tmp_path):
    pictures = []
    for validated in (False, True):
        path = tmp_path / f"{validated}.png"
        plot_curves(Progress(rows=rows(validated)), path, "a run")
        pictures.append(imread(path)[..., :3])
    assert pictures[0].shape == pictures[1].shape == (660, 960, 3)
    red = np.array([0xB5, 0x40, 0x2A]) / 255
    counts = [int(np.sum(np.abs(picture - red).max(axis=-1) < 0.02)) for picture in pictures]
    assert counts[0] == 0
    assert counts[1] > 50
    assert sorted(p.name for p in tmp_path.iterdir()) == ["False.png", "True.png"]
