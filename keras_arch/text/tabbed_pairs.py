"""Finding pairs of texts in tables: source and target on one line, with a tab between."""

from __future__ import annotations

import os
from pathlib import Path

from keras_arch.text.pairs import Pairs, in_folder, read_lines


def find_tabbed_pairs(file_or_folder: str | os.PathLike) -> tuple[Pairs, Pairs, Pairs]:
    """Returns the pairs to train on, to validate on and to test on.

    A folder holds `train.tsv`, `val.tsv` and `test.tsv`, UTF-8, gzipped if they end in `.gz`. Of
    one file the last tenth is to test on and the tenth before it to validate on, in its order.

    Raises:
        ValueError: If a file is missing, is not UTF-8, has a line without exactly one source and
            one target, or is to be split and has less than 3 pairs.
    """
    path = Path(file_or_folder)
    if path.is_dir():
        files = [in_folder(path, (split,), "tsv") for split in ("train", "val", "test")]
        return tuple(read_tabbed_pairs(file) for file in files)
    if not path.is_file():
        raise ValueError(
            f"file_or_folder must be there; received {os.fspath(file_or_folder)!r}, which is not."
        )
    pairs = read_tabbed_pairs(path)
    count = len(pairs.sources)
    if count < 3:
        raise ValueError(f"{path} must hold at least 3 pairs, to be split; received {count}.")
    tenth = max(count // 10, 1)
    parts = slice(0, -2 * tenth), slice(-2 * tenth, -tenth), slice(-tenth, None)
    return tuple(Pairs(pairs.sources[part], pairs.targets[part]) for part in parts)


def read_tabbed_pairs(path: str | os.PathLike) -> Pairs:
    """Reads a file with a source, a tab and a target on each line.

    Raises:
        ValueError: As `find_tabbed_pairs`; names the file and the line.
    """
    rows = [[text.strip() for text in line.split("\t")] for line in read_lines(path)]
    for number, row in enumerate(rows, 1):
        if len(row) != 2 or not all(row):
            raise ValueError(
                f"{path} must have a source, a tab and a target on each line, neither empty; "
                f"received {len(row)} columns on line {number}: {row}."
            )
    sources, targets = zip(*rows, strict=True)
    return Pairs(list(sources), list(targets))
