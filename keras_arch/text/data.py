"""Finding a text corpus: a path, a known name, or what every Python carries with it."""

from __future__ import annotations

import hashlib
import http.client
import importlib
import logging
import os
import platform
import urllib.request
from pathlib import Path
from typing import NamedTuple

from keras_arch.text.files import write_bytes

logger = logging.getLogger(__name__)

DATA_VARIABLE = "KERAS_ARCH_DATA"
TIMEOUT_SECONDS = 10
FALLBACK = "python-docs"


class Download(NamedTuple):
    """A corpus on the web: its address, its place in a data folder, its SHA-256."""

    url: str
    place: str
    sha256: str


DOWNLOADS = {
    "shakespeare": Download(
        url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        place="tinyshakespeare/input.txt",
        sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    ),
}


def find_corpus(name_or_path: str | os.PathLike) -> list[Path]:
    """Returns the text files of a corpus.

    A path that exists is taken first: a file, or a folder with the `.txt` files directly in it,
    in the order of their names. Then the known names:

    * `"shakespeare"`: the 1.1 MB of Karpathy's tiny Shakespeare, from the folder that the
      environment variable `KERAS_ARCH_DATA` names, from the user's cache, or downloaded once
      into that cache; its SHA-256 is checked each time. Where it cannot be downloaded, a warning
      is logged and `"python-docs"` takes its place.
    * `"python-docs"`: the language reference in the standard library (`pydoc_data.topics`).

    The cache is `$XDG_CACHE_HOME/keras_arch`, by default `~/.cache/keras_arch`.

    Args:
        name_or_path: A known name or a path.

    Returns:
        Paths of UTF-8 text files, at least one; see `read_text` and `stream`.

    Raises:
        ValueError: If it is neither a path nor a known name, the folder holds no `.txt` file, or
            a file does not have the SHA-256 that it should have.
    """
    path = Path(name_or_path)
    if path.is_file():
        return [path]
    if path.is_dir():
        files = sorted(file for file in path.glob("*.txt") if file.is_file())
        if not files:
            raise ValueError(f"name_or_path must hold .txt files; received the folder {path}.")
        return files
    name = os.fspath(name_or_path)
    if name == FALLBACK:
        return [_python_docs()]
    if name in DOWNLOADS:
        return [stored(DOWNLOADS[name]) or _downloaded(name)]
    known = sorted([*DOWNLOADS, FALLBACK])
    raise ValueError(
        f"name_or_path must be a file, a folder of .txt files or one of {known}; "
        f"received {name!r}, which is not there."
    )


def cache() -> Path:
    """Returns the folder that downloads go to."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "keras_arch"


def stored(corpus: Download) -> Path | None:
    """Returns the corpus from the data folder or the cache, None where neither has it."""
    data = os.environ.get(DATA_VARIABLE)
    folders = [Path(data), cache()] if data else [cache()]
    for folder in folders:
        path = folder / corpus.place
        if path.is_file():
            _check_sha256(path.read_bytes(), corpus.sha256, str(path))
            return path
    return None


def download(corpus: Download) -> Path:
    """Downloads a corpus into the cache.

    Raises:
        OSError, http.client.HTTPException: If there is no network, a timeout, a refusal by the
            server or a proxy, a broken connection.
        ValueError: If what comes has not the SHA-256 that it should have.
    """
    logger.info("Downloading %s.", corpus.url)
    with urllib.request.urlopen(corpus.url, timeout=TIMEOUT_SECONDS) as response:
        content = response.read()
    _check_sha256(content, corpus.sha256, corpus.url)
    path = cache() / corpus.place
    write_bytes(path, content)
    return path


def _downloaded(name: str) -> Path:
    corpus = DOWNLOADS[name]
    try:
        return download(corpus)
    except (OSError, http.client.HTTPException) as error:
        path = _python_docs()
        logger.warning(
            f"{name!r} could not be downloaded from {corpus.url} ({error}). "
            f"Using the built-in corpus {FALLBACK!r} instead: {path}. "
            f"To use {name!r}, set {DATA_VARIABLE} to a folder that holds {corpus.place}."
        )
        return path


def _check_sha256(content: bytes, expected: str, source: str) -> None:
    received = hashlib.sha256(content).hexdigest()
    if received != expected:
        raise ValueError(
            f"{source} is damaged: its SHA-256 must be {expected}; received {received} "
            f"({len(content)} bytes). Delete the file or try again."
        )


def _python_docs() -> Path:
    """Writes the standard library's language reference into the cache, topics by name."""
    topics = importlib.import_module("pydoc_data.topics").topics
    content = "\n\n".join(topics[topic] for topic in sorted(topics)).encode("utf-8")
    path = cache() / f"python-docs-{platform.python_version()}.txt"
    if not path.is_file() or path.read_bytes() != content:
        write_bytes(path, content)
    return path
