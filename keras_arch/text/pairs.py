"""Finding pairs of texts: sentences in one language and in another, line by line."""

from __future__ import annotations

import gzip
import http.client
import os
from pathlib import Path
from typing import NamedTuple

from keras_arch.text.data import DATA_VARIABLE, Download, download, stored
from keras_arch.text.files import split_lines

#: Elliott et al. 2016: the captions of 29,000 pictures in English and German, and in French.
MULTI30K = "multi30k"
_SHA256 = {
    "train.en": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.fr": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.en": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.fr": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.en": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.de": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.fr": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
}
_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"


class Pairs(NamedTuple):
    """Texts and what they are to become: `targets[i]` belongs to `sources[i]`."""

    sources: list[str]
    targets: list[str]


def find_pairs(
    name_or_folder: str | os.PathLike, source: str, target: str
) -> tuple[Pairs, Pairs, Pairs]:
    """Returns the pairs to train on, to validate on and to test on.

    A folder holds `train`, `val` and `test` (or `test_2016_flickr`), each as two UTF-8 files with a
    text a line and a language's name as their ending: `train.en`, `train.de`; gzipped, they end in
    `.gz`. `"multi30k"` is taken from the folder that the environment variable `KERAS_ARCH_DATA`
    names, from the user's cache, or downloaded once; SHA-256 are checked each time.

    Args:
        name_or_folder: "multi30k" or a folder.
        source: Ending of the files that are read, such as "en".
        target: Ending of the files that are to be written, such as "de".

    Raises:
        ValueError: If a file is missing or cannot be had, is not UTF-8, holds an empty line, or the
            two have not as many lines.
    """
    folder = Path(name_or_folder)
    if folder.is_dir():
        splits = [("train",), ("val",), ("test", "test_2016_flickr")]
        files = [
            [in_folder(folder, names, language) for language in (source, target)]
            for names in splits
        ]
    elif os.fspath(name_or_folder) == MULTI30K:
        splits = ["train", "val", "test_2016_flickr"]
        files = [[_multi30k(split, language) for language in (source, target)] for split in splits]
    else:
        raise ValueError(
            f"name_or_folder must be a folder or {MULTI30K!r}; received {name_or_folder!r}, which "
            "is not there."
        )
    return tuple(read_pairs(*paths) for paths in files)


def read_pairs(source_path: str | os.PathLike, target_path: str | os.PathLike) -> Pairs:
    """Reads two files with a text a line each; gzipped where the name ends in `.gz`.

    Raises:
        ValueError: As `find_pairs`; names the file, and the line where there is one.
    """
    sources, targets = read_lines(source_path), read_lines(target_path)
    if len(sources) != len(targets):
        raise ValueError(
            f"{source_path} and {target_path} must have as many lines; received {len(sources)} and "
            f"{len(targets)}."
        )
    return Pairs(sources, targets)


def read_lines(path: str | os.PathLike) -> list[str]:
    """Returns the texts of a file, a line each.

    Raises:
        ValueError: As `find_pairs`.
    """
    content = Path(path).read_bytes()
    try:
        if os.fspath(path).endswith(".gz"):
            content = gzip.decompress(content)
        lines = [line.strip() for line in split_lines(content)]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be UTF-8 text; reading it failed: {error}") from error
    empty = [number for number, line in enumerate(lines, 1) if not line]
    if empty or not lines:
        raise ValueError(
            f"{path} must have a text on each line; received {len(lines)} lines, the first empty "
            f"one is {empty[0] if empty else 1}."
        )
    return lines


def in_folder(folder: Path, names: tuple[str, ...], ending: str) -> Path:
    """Returns the file of a split, which has one of these names and that ending."""
    wanted = [f"{name}.{ending}{packed}" for name in names for packed in ("", ".gz")]
    for name in wanted:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"{folder} must hold one of {wanted}.")


def _multi30k(split: str, language: str) -> Path:
    name = f"{split}.{language}"
    if name not in _SHA256:
        languages = sorted({key.rpartition(".")[2] for key in _SHA256})
        raise ValueError(f"language must be one of {languages}; received {language!r}.")
    file = Download(f"{_URL}/{name}.gz", f"{MULTI30K}/{name}.gz", _SHA256[name])
    try:
        return stored(file) or download(file)
    except (OSError, http.client.HTTPException) as error:
        raise ValueError(
            f"{MULTI30K!r} could not be downloaded from {file.url} ({error}). Set {DATA_VARIABLE} "
            f"to a folder that holds {file.place}."
        ) from error
