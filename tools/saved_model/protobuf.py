"""The protocol-buffer wire format, as far as reading a message's fields needs it.

Source: protobuf.dev, "Encoding".
"""

from collections.abc import Iterator

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yields `(field number, value)` in the order of the message.

    A varint comes as a non-negative int, everything else as a view of its bytes.
    Raises ValueError where the bytes are no message.
    """
    _check_type(message, memoryview)
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire_type == _LENGTH_DELIMITED:
            length, at = _varint(message, at)
        elif wire_type in (_FIXED64, _FIXED32):
            length = 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError(f"not a protocol buffer: wire type {wire_type}.")
        if at + length > len(message):
            raise ValueError("not a protocol buffer: it ends inside a field.")
        yield number, message[at : at + length]
        at += length


def values(message: memoryview, number: int) -> list[int | memoryview]:
    """Every value of a repeated field."""
    return [value for found, value in fields(message) if found == number]


def value(message: memoryview, number: int, default: int | memoryview) -> int | memoryview:
    """The value of a singular field: the last one written, or the default.

    Raises ValueError where it is no number and the default is one, or the other way round.
    """
    found = (values(message, number) or [default])[-1]
    _check_type(found, type(default))
    return found


def text(view: memoryview) -> str:
    """The string in a string field."""
    _check_type(view, memoryview)
    return str(view, "utf-8")


def varints(packed: int | memoryview) -> list[int]:
    """The numbers of a repeated varint field: a packed view of many, or a single one."""
    if isinstance(packed, int):
        return [packed]
    numbers, at = [], 0
    while at < len(packed):
        number, at = _varint(packed, at)
        numbers.append(number)
    return numbers


def signed(varint: int) -> int:
    """The int64 that a varint stands for."""
    return varint - (1 << 64) if varint >= 1 << 63 else varint


def shape(message: memoryview) -> tuple[int | None, ...] | None:
    """A TensorShapeProto: None for a free axis, or in place of all where the rank is free."""
    if value(message, 3, 0):
        return None
    sizes = [signed(value(axis, 1, 0)) for axis in values(message, 2)]
    return tuple(None if size < 0 else size for size in sizes)


def _check_type(value: int | memoryview, expected: type) -> None:
    if not isinstance(value, expected):
        raise ValueError("not a protocol buffer of this kind: a field has another type.")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    result = shift = 0
    while at < len(message):
        byte = message[at]
        at += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return result, at
    raise ValueError("not a protocol buffer: it ends inside a number.")
