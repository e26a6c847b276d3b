import tensorflow as tf

from keras_arch.training import Progress, WriteLogs

ROWS = [
    {"step": 2, "train_loss": 3.5, "learning_rate": 0.1},
    {"step": 4, "train_loss": 3.0, "learning_rate": 0.2, "validation_loss": 2.0, "perplexity": 7.5},
]


def scalars(folder):
    """All (step, name, value) in the TensorBoard files of a folder."""
    found = []
    for file in sorted(folder.iterdir()):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                found.append(
                    (event.step, value.tag, round(float(tf.make_ndarray(value.tensor)), 5))
                )
    return found


def write(progress, tmp_path):
    callback = WriteLogs(progress, tmp_path / "log.csv", tmp_path / "events")
    callback.on_train_begin()
    return callback


def test_a_perplexity_too_large_is_left_out(tmp_path):
    row = {"step": 2, "train_loss": 900.0, "learning_rate": 1.0, "validation_loss": 900.0}
    write(Progress(rows=[row | {"perplexity": None}]), tmp_path)
    assert (tmp_path / "log.csv").read_text().endswith("\n2,900.0,1.0,900.0,\n")
    assert [name for _, name, _ in scalars(tmp_path / "events")][-1] == "validation_loss"


def test_both_logs_hold_each_row_once_also_after_a_kill(tmp_path):
    progress = Progress(rows=ROWS[:1])
    first = write(progress, tmp_path)
    progress.rows.append({"step": 3, "train_loss": 9.0, "learning_rate": 0.1})
    first.on_epoch_end(0)
    second = write(Progress(rows=ROWS[:1]), tmp_path)
    second.progress.rows.append(ROWS[1])
    second.on_epoch_end(1)
    second.on_train_end()
    assert (tmp_path / "log.csv").read_text() == (
        "step,train_loss,learning_rate,validation_loss,perplexity\n2,3.5,0.1,,\n4,3.0,0.2,2.0,7.5\n"
    )
    assert scalars(tmp_path / "events") == [
        (2, "train_loss", 3.5),
        (2, "learning_rate", 0.1),
        (4, "train_loss", 3.0),
        (4, "learning_rate", 0.2),
        (4, "validation_loss", 2.0),
        (4, "perplexity", 7.5),
    ]
