"""The log of a training as a table and for TensorBoard, both made from its rows."""

import csv
import io
import shutil

import keras

from keras_arch.training import files

COLUMNS = ("step", "train_loss", "learning_rate", "validation_loss", "perplexity")


class WriteLogs(keras.callbacks.Callback):
    """Writes `log.csv` and TensorBoard scalars at the end of each evaluation interval.

    Both come from `progress.rows`. At the start they are written anew, so a resumed run neither
    repeats nor misses a row, whenever the earlier one died.

    Args:
        progress: the Progress that holds the rows.
        table: path of the CSV file.
        events: folder of the TensorBoard files.
    """

    def __init__(self, progress, table, events):
        super().__init__()
        self.progress = progress
        self.table = table
        self.events = events

    def on_train_begin(self, logs=None):
        import tensorflow as tf

        shutil.rmtree(self.events, ignore_errors=True)
        self.writer = tf.summary.create_file_writer(str(self.events))
        self.written = 0
        self.write()

    def on_epoch_end(self, epoch, logs=None):
        self.write()

    def on_train_end(self, logs=None):
        self.writer.close()

    def write(self):
        """Brings both files up to the rows there are."""
        import tensorflow as tf

        files.write_text(self.table, as_csv(self.progress.rows))
        with self.writer.as_default():
            for row in self.progress.rows[self.written :]:
                for name in COLUMNS[1:]:
                    if row.get(name) is not None:
                        tf.summary.scalar(name, row[name], step=row["step"])
        self.writer.flush()
        self.written = len(self.progress.rows)


def as_csv(rows):
    """Returns the rows as CSV text; a figure that a row lacks is an empty cell."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()
