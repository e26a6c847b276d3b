"""Files of rows with tabs between."""

import csv
import io

import keras_arch as ka


def write_table(path, header, rows):
    """Writes a line of names, and rows of strings and numbers."""
    content = io.StringIO()
    csv.writer(content, delimiter="\t", lineterminator="\n").writerows([header, *rows])
    ka.training.write_text(path, content.getvalue())
