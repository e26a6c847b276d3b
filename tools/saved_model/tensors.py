"""NumPy arrays to TensorFlow's C tensors and back. String arrays hold `bytes` objects."""

import ctypes
import math

import numpy as np

from saved_model import protobuf
from saved_model.c_api import CApi

STRING = 7
_STRING_BYTES = 24  # sizeof(TF_TString)

# TensorFlow's DataType: NumPy's. Source: tensorflow/core/framework/types.proto.
DTYPES = {
    1: np.dtype("float32"),
    2: np.dtype("float64"),
    3: np.dtype("int32"),
    4: np.dtype("uint8"),
    5: np.dtype("int16"),
    6: np.dtype("int8"),
    STRING: np.dtype(object),
    9: np.dtype("int64"),
    10: np.dtype("bool"),
    17: np.dtype("uint16"),
    19: np.dtype("float16"),
    22: np.dtype("uint32"),
    23: np.dtype("uint64"),
}


# The field of a TensorProto that holds values of a DataType, where they do not lie in _CONTENT.
# Source: tensorflow/core/framework/tensor.proto.
_FIELDS = {1: 5, 2: 6, 3: 7, STRING: 8, 9: 10, 10: 11}
_CONTENT = 4
_EMPTY = memoryview(b"")


def from_proto(message: memoryview) -> np.ndarray:
    """The array in a TensorProto. Raises ValueError for a data type that is not supported."""
    dtype, shape = protobuf.value(message, 1, 0), protobuf.shape(protobuf.value(message, 2, _EMPTY))
    if dtype not in _FIELDS:
        raise ValueError(f"a default has TensorFlow's data type {dtype}: not supported.")
    content = protobuf.value(message, _CONTENT, _EMPTY)
    if content:
        return np.frombuffer(content, DTYPES[dtype]).reshape(shape)
    parts = protobuf.values(message, _FIELDS[dtype])
    values = [value for part in parts for value in _values(part, DTYPES[dtype])]
    # The last value stands for all after it; there is none where all are zero.
    values += (values[-1:] or [0]) * (math.prod(shape) - len(values))
    return np.array(values, DTYPES[dtype]).reshape(shape)


def _values(part: int | memoryview, dtype: np.dtype) -> list:
    if dtype.kind == "O":
        return [bytes(part)]
    if dtype.kind == "f":
        return np.frombuffer(part, dtype).tolist()
    return [protobuf.signed(number) for number in protobuf.varints(part)]


def new_tensor(api: CApi, array: np.ndarray, dtype: int) -> int:
    """Copies an array into a new tensor, which `delete_input` must free."""
    array = np.ascontiguousarray(array, DTYPES[dtype]).reshape(np.shape(array))
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    size = array.size * _STRING_BYTES if dtype == STRING else array.nbytes
    tensor = api.TF_AllocateTensor(dtype, shape, array.ndim, size)
    if dtype == STRING:
        for string, value in zip(_strings(api, tensor), array.flat, strict=True):
            api.TF_StringInit(string)
            api.TF_StringCopy(string, value, len(value))
    elif size:
        ctypes.memmove(api.TF_TensorData(tensor), array.ctypes.data, size)
    return tensor


def to_array(api: CApi, tensor: int) -> np.ndarray:
    """Copies a tensor into a new array. Raises RuntimeError for a dtype that NumPy lacks."""
    dtype, shape = api.TF_TensorType(tensor), _shape(api, tensor)
    if dtype not in DTYPES:
        raise RuntimeError(f"an output has TensorFlow's data type {dtype}, which NumPy lacks.")
    if dtype == STRING:
        array = np.empty(math.prod(shape), object)
        for row, string in enumerate(_strings(api, tensor)):
            size = api.TF_StringGetSize(string)
            array[row] = ctypes.string_at(api.TF_StringGetDataPointer(string), size)
        return array.reshape(shape)
    content = ctypes.string_at(api.TF_TensorData(tensor), api.TF_TensorByteSize(tensor))
    return np.frombuffer(content, DTYPES[dtype]).reshape(shape)


def delete_input(api: CApi, tensor: int) -> None:
    """Frees a tensor of `new_tensor` and its strings.

    A tensor that TensorFlow made frees its own strings (they may belong to a constant of the
    graph): those go to `TF_DeleteTensor` alone.
    """
    if api.TF_TensorType(tensor) == STRING:
        for string in _strings(api, tensor):
            api.TF_StringDealloc(string)
    api.TF_DeleteTensor(tensor)


def _shape(api: CApi, tensor: int) -> tuple[int, ...]:
    return tuple(api.TF_Dim(tensor, axis) for axis in range(api.TF_NumDims(tensor)))


def _strings(api: CApi, tensor: int) -> range:
    """The addresses of a string tensor's strings."""
    size = math.prod(_shape(api, tensor)) * _STRING_BYTES
    start = api.TF_TensorData(tensor) or 0
    return range(start, start + size, _STRING_BYTES)
