# SPDX-License-Identifier: MIT
"""Messages between the judge and the process of a submission: JSON, and the bytes of tensors.

Nothing is unpickled: what a submission's process sends is data.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import torch

_HEAD = struct.Struct("<QQ")
_TENSOR = "tensor"


def send(file: BinaryIO, message: Mapping[str, Any]) -> None:
    """Write a message."""
    blobs: list[bytes] = []
    text = json.dumps(_packed(message, blobs)).encode()
    body = b"".join(blobs)
    file.write(_HEAD.pack(len(text), len(body)) + text + body)
    file.flush()


def receive(file: BinaryIO) -> dict[str, Any]:
    """Read a message.

    Raises:
        EOFError: The other process has ended.
    """
    text, body = _HEAD.unpack(_exactly(file, _HEAD.size))
    value = json.loads(_exactly(file, text))
    message: dict[str, Any] = _unpacked(value, memoryview(bytearray(_exactly(file, body))))
    return message


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _packed(value: Any, blobs: list[bytes]) -> Any:
    if isinstance(value, torch.Tensor):
        host = value.detach().cpu().contiguous()
        data = host.reshape(-1).view(torch.uint8).numpy().tobytes() if host.numel() else b""
        at = sum(map(len, blobs))
        blobs.append(data)
        dtype = str(host.dtype).removeprefix("torch.")
        return {
            "is": _TENSOR,
            "dtype": dtype,
            "shape": list(host.shape),
            "at": at,
            "cuda": value.is_cuda,
        }
    if isinstance(value, Mapping):
        return {"is": "dict", "items": [[k, _packed(v, blobs)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {"is": kind, "items": [_packed(v, blobs) for v in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return {"is": "other", "type": type(value).__name__}


def _unpacked(value: Any, body: memoryview) -> Any:
    if not isinstance(value, dict):
        return value
    kind = value["is"]
    if kind == _TENSOR:
        return _tensor(value, body)
    if kind == "dict":
        return {key: _unpacked(item, body) for key, item in value["items"]}
    if kind == "other":
        return Other(value["type"])
    items = [_unpacked(item, body) for item in value["items"]]
    return tuple(items) if kind == "tuple" else items


def _tensor(value: Mapping[str, Any], body: memoryview) -> torch.Tensor:
    dtype, shape = getattr(torch, value["dtype"]), value["shape"]
    tensor = torch.empty(shape, dtype=dtype)
    size = tensor.numel() * tensor.element_size()
    if size:
        raw = torch.frombuffer(body, dtype=torch.uint8, count=size, offset=value["at"])
        tensor = raw.clone().view(dtype).reshape(shape)
    return tensor.cuda() if value["cuda"] else tensor


class Other(str):
    """The type of a value that is no data."""
