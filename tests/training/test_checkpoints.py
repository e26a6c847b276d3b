import json

import keras
import pytest

import keras_arch as ka
from keras_arch.training import AdamW, Checkpoints, Progress
from tests.training import tiny


def compiled(width_seed=0, optimizer=None):
    keras.utils.set_random_seed(width_seed)
    model = tiny.model(dropout=0.2)
    model.compile(optimizer or AdamW(0.01), ka.objectives.TokenCrossentropy(), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model


def marked(model, value):
    """Sets all variables of model and optimizer to a number."""
    for v in model.variables + model.optimizer.variables:
        v.assign(keras.ops.full(v.shape, value, dtype=v.dtype))
    return model


def at(step, *losses):
    rows = [{"step": 2 * i + 2, "validation_loss": loss} for i, loss in enumerate(losses)]
    return Progress(step=step, rows=rows)


@pytest.fixture
def saved(tmp_path):
    """Checkpoints after 2, 4 and 6 steps, whose variables are all 2, 4 and 6."""
    checkpoints = Checkpoints(tmp_path, keep=3)
    for step in (2, 4, 6):
        checkpoints.save(marked(compiled(), step), at(step, *[1.0] * (step // 2)))
    return checkpoints


def values(model):
    """The one value that all variables share."""
    found = {
        float(x) for v in tiny.variables(model) + tiny.variables(model.optimizer) for x in v.flat
    }
    assert len(found) == 1
    return found.pop()


def test_restores_weights_seeds_and_optimizer_from_the_newest(saved):
    model = compiled(1)
    assert any("seed" in v.path for v in model.variables)
    progress = saved.restore(model)
    assert progress == at(6, 1.0, 1.0, 1.0)
    assert values(model) == 6


def test_restores_before_the_optimizer_was_built(saved):
    model = tiny.model(dropout=0.2)
    model.compile(AdamW(0.01), ka.objectives.TokenCrossentropy())
    saved.restore(model)
    assert values(model) == 6


def test_restores_the_loss_scale(tmp_path):
    def scaled():
        with ka.training.precision("float16"):
            return compiled()

    Checkpoints(tmp_path).save(marked(scaled(), 64), at(2))
    model = scaled()
    Checkpoints(tmp_path).restore(model)
    assert float(model.optimizer.scale_loss(1.0)) == 64


def test_a_new_folder_starts_at_zero(tmp_path):
    assert Checkpoints(tmp_path).restore(compiled()) == Progress()


def truncate(path):
    path.write_bytes(path.read_bytes()[:-10])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, flip, lambda path: path.unlink()])
@pytest.mark.parametrize("name", ["model.weights.h5", "progress.json"])
def test_a_damaged_one_falls_back_to_the_one_before(saved, name, damage):
    damage(saved.path(6) / name)
    model = compiled(1)
    with pytest.warns(UserWarning, match="step-00000006 is damaged"):
        progress = saved.restore(model)
    assert (progress.step, values(model)) == (4, 4)


def test_all_damaged_is_an_error(saved):
    for path in saved.paths():
        truncate(path / "model.weights.h5")
    message = r"all checkpoints in .* are damaged: step-00000002, step-00000004, step-00000006"
    with pytest.warns(UserWarning, match="damaged"), pytest.raises(ValueError, match=message):
        saved.restore(compiled())


def test_another_model_is_an_error(saved):
    model = compiled(optimizer=keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match="does not fit this model and optimizer"):
        saved.restore(model)


def test_saving_the_same_step_again_replaces_it(saved):
    truncate(saved.path(6) / "model.weights.h5")
    saved.save(marked(compiled(), 7), at(6, 1.0, 1.0, 1.0))
    model = compiled(1)
    saved.restore(model)
    assert values(model) == 7


def test_keeps_the_newest_and_the_best(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    losses = [3.0, 1.0, 2.0, 2.5, 2.0]
    for i in range(5):
        checkpoints.save(marked(compiled(), i), at(2 * i + 2, *losses[: i + 1]))
    names = [path.name for path in checkpoints.paths()]
    assert names == ["step-00000004", "step-00000008", "step-00000010"]
    model = compiled()
    assert checkpoints.load_best(model, at(10, *losses)) == {"step": 4, "validation_loss": 1.0}
    assert values(model) == 1


def test_a_damaged_best_is_an_error(saved):
    truncate(saved.path(4) / "model.weights.h5")
    with pytest.raises(ValueError, match="step-00000004 is damaged"):
        saved.load_best(compiled(), at(6, 2.0, 1.0, 3.0))


def test_half_written_checkpoints_are_ignored(saved):
    (saved.folder / ".writing-step-00000008").mkdir()
    model = compiled()
    assert saved.restore(model).step == 6
    saved.save(marked(model, 8), at(8))
    assert [p.name for p in saved.folder.iterdir() if p.name.startswith(".")] == []


def test_progress_is_plain_json(saved):
    state = json.loads((saved.path(2) / "progress.json").read_text())
    assert state["progress"]["step"] == 2
    assert state["progress"]["rows"] == [{"step": 2, "validation_loss": 1.0}]


def test_refuses_to_keep_none(tmp_path):
    with pytest.raises(ValueError, match="keep=0"):
        Checkpoints(tmp_path, keep=0)
