"""Writing files so that a reader, or a crash, never sees half of one."""

import contextlib
import json
import os
import pathlib


@contextlib.contextmanager
def replacing(path):
    """Yields a temporary path beside `path`; on leaving it takes the place of `path` at once.

    The temporary name keeps the suffix of `path`, because Keras chooses formats by it. If the
    block raises, `path` stays as it was.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f".writing-{path.name}")
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path, text):
    """Replaces the content of a UTF-8 text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_json(path):
    """Returns the object in a JSON file.

    Raises:
        ValueError: the file holds no JSON object.
    """
    try:
        value = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} is damaged: it must hold a JSON object; received {value!r}.")
    return value


def sync(path):
    """Forces a file or a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
