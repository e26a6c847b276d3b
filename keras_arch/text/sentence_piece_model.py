"""Reading, changing and making the file of a SentencePiece model, a protocol buffer."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping

# `ModelProto.pieces` has number 1, `SentencePiece.piece` number 1 and its `type` number 3, whose
# value 3 is CONTROL. Source: sentencepiece_model.proto of the sentencepiece project.
PIECES = 1
PIECES_KEY = PIECE_KEY = b"\x0a"
CONTROL_TYPE = b"\x18\x03"
#: Types of pieces, and of models.
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
MODEL_TYPES = {"unigram": 1, "bpe": 2}
# Numbers of the fields of `TrainerSpec` and `NormalizerSpec`.
TRAINER = {"model_type": 3, "vocab_size": 4, "byte_fallback": 35, "unk_id": 40, "unk_piece": 45}
NORMALIZER = {
    "precompiled_charsmap": 2,
    "add_dummy_prefix": 3,
    "remove_extra_whitespaces": 4,
    "escape_whitespaces": 5,
}


def make_model(
    pieces: Iterable[tuple[str, float, int]], trainer: Mapping, normalizer: Mapping
) -> bytes:
    """Returns the file of a model.

    Args:
        pieces: Each piece with its score and type, by id.
        trainer: Fields of `TRAINER`.
        normalizer: Fields of `NORMALIZER`.
    """
    rows = [(1, _message(enumerate(row, 1))) for row in pieces]
    trained = _message((TRAINER[name], value) for name, value in trainer.items())
    normal = _message((NORMALIZER[name], value) for name, value in normalizer.items())
    return _message([*rows, (2, trained), (3, normal)])


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


def _message(fields: Iterable[tuple[int, str | bytes | float | int]]) -> bytes:
    """Returns a message of numbered fields."""
    encoded = []
    for number, value in fields:
        if isinstance(value, float):
            encoded += [_varint(number << 3 | 5), struct.pack("<f", value)]
        elif isinstance(value, int):
            encoded += [_varint(number << 3), _varint(value)]
        else:
            content = value.encode("utf-8") if isinstance(value, str) else value
            encoded.append(_field(_varint(number << 3 | 2), content))
    return b"".join(encoded)


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
