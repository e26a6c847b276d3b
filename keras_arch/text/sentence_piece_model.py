"""Reading and changing the file of a SentencePiece model, a protocol buffer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

# `ModelProto.pieces` has number 1, `SentencePiece.piece` number 1 and its `type` number 3, whose
# value 3 is CONTROL. Source: sentencepiece_model.proto of the sentencepiece project.
PIECES = 1
PIECES_KEY = PIECE_KEY = b"\x0a"
CONTROL_TYPE = b"\x18\x03"


def make_control(model: bytes, ids: Collection[int]) -> bytes:
    """Returns a model in which the pieces `ids` are control symbols, which no text gives.

    Raises:
        ValueError: If the model is not a sequence of fields.
    """
    changed, piece = [], 0
    for number, start, content, end in _fields(model):
        if number == PIECES and piece in ids:
            # Of a field that comes twice, the last counts.
            message = model[content:end] + CONTROL_TYPE
            changed.append(_field(PIECES_KEY, message))
        else:
            changed.append(model[start:end])
        piece += number == PIECES
    return b"".join(changed)


def append_control(model: bytes, names: Iterable[str]) -> bytes:
    """Returns a model with control symbols behind its pieces."""
    messages = [_field(PIECE_KEY, name.encode("utf-8")) + CONTROL_TYPE for name in names]
    return model + b"".join(_field(PIECES_KEY, message) for message in messages)


def _field(key: bytes, content: bytes) -> bytes:
    return key + _varint(len(content)) + content


def _fields(model: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yields the number of each field of the outermost message, its start, its content's, its end.

    A model has fields with a length only.
    """
    start = 0
    while start < len(model):
        key, position = _read_varint(model, start)
        length, content = _read_varint(model, position)
        end = content + length
        if key & 7 != 2 or end > len(model):
            raise ValueError(f"a SentencePiece model is needed; received a bad field at {start}.")
        yield key >> 3, start, content, end
        start = end


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        value |= (data[position] & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if data[position - 1] < 0x80:
            return value, position
    raise ValueError("a SentencePiece model is needed; received one that is cut off.")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
