"""Reading text files in bounded memory, and writing files that are never half there."""

from __future__ import annotations

import codecs
import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

BLOCK_BYTES = 1 << 16


def read_blocks(path: str | os.PathLike, block_bytes: int = BLOCK_BYTES) -> Iterator[str]:
    """Yields a UTF-8 file as blocks of text that end at a line break where there is one.

    Joined, the blocks are the file's text to the last character, line ends included. A block
    holds at most twice `block_bytes`, however long the lines are.

    Args:
        path: A text file.
        block_bytes: Size of a block in bytes, before it is extended to the end of the line.

    Yields:
        Non-empty strings.

    Raises:
        ValueError: If the file is not UTF-8; names the file and the offset of the first bad byte.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    read = 0
    with open(path, "rb") as file:
        while True:
            chunk = file.read(block_bytes)
            if chunk and not chunk.endswith(b"\n"):
                chunk += file.readline(block_bytes)
            read += len(chunk)
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                # The decoder's buffer starts with what the chunk before left unfinished.
                offset = read - len(error.object) + error.start
                raise ValueError(
                    f"{path} must be UTF-8 text; received byte "
                    f"0x{error.object[error.start]:02x} at offset {offset}. "
                    "Convert the file to UTF-8."
                ) from error
            if text:
                yield text
            if not chunk:
                return


def read_text(files: Iterable[str | os.PathLike]) -> str:
    """Returns the text of UTF-8 files, one after the other with nothing between.

    Args:
        files: Paths, as `find_corpus` returns them.

    Returns:
        The whole text, in memory.

    Raises:
        ValueError: If there is no text at all, or a file is not UTF-8.
    """
    files = list(files)
    text = "".join(block for path in files for block in read_blocks(path))
    if not text:
        raise ValueError(f"files must hold some text; received {[str(path) for path in files]}.")
    return text


def training_blocks(sources: Iterable[str | os.PathLike]) -> Iterator[str]:
    """Yields the text that a tokenizer is trained on, block by block; files are streamed.

    Args:
        sources: Texts (`str`) and UTF-8 text files (`pathlib.Path`), in any mixture.

    Raises:
        ValueError: If sources is no list of them, holds no text, or a file is not UTF-8.
    """
    if isinstance(sources, (str, os.PathLike)) or not isinstance(sources, Iterable):
        raise ValueError(f"sources must be a list of texts and paths; received {sources!r}.")
    blocks = (block for source in sources for block in _blocks_of(source) if block)
    first = next(blocks, None)
    if first is None:
        raise ValueError("sources must hold some text; received none.")
    return itertools.chain([first], blocks)


def _blocks_of(source):
    if isinstance(source, str):
        return [source]
    if isinstance(source, os.PathLike):
        return read_blocks(source)
    # `open` would take a number for a file that is open already, and close it.
    raise ValueError(f"sources must be a list of texts and paths; received {source!r} in it.")


def split_lines(content: bytes) -> list[str]:
    """Returns the lines of a UTF-8 file that end with LF or CRLF, and with nothing else.

    A byte order mark before them, as some editors write it, is no part of the first.

    Raises:
        ValueError: If the file is not UTF-8.
    """
    lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def parse_json(content: bytes) -> dict:
    """Returns the JSON object in a file's content.

    Raises:
        ValueError: If it holds none.
    """
    try:
        value = json.loads(content.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deep.") from error
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is needed; received a {type(value).__name__}.")
    return value


def format_json(value: dict) -> bytes:
    """Returns the content of a JSON file."""
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def read_json(path: str | os.PathLike) -> dict:
    """Returns the object in a JSON file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file does not hold a JSON object.
    """
    try:
        return parse_json(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} must be a JSON file; reading it failed: {error}") from error


def write_bytes(path: str | os.PathLike, content: bytes) -> None:
    """Writes a file in one step: a reader sees the old file or the new one, never a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # `mkstemp` makes files that only their owner can read.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_json(path: str | os.PathLike, value: dict) -> None:
    """Writes an object as a JSON file, in one step."""
    write_bytes(path, format_json(value))
