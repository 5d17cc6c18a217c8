"""Reads safetensors files by the format's description and nothing else."""
import json
import struct


def read_safetensors(path):
    """name → (dtype, shape, bytes)."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        tensors[name] = (tensor["dtype"], tensor["shape"], content[8 + length + begin : 8 + length + end])
    return tensors


def as_floats(dtype, content):
    if dtype == "BF16":
        return [struct.unpack("<f", b"\0\0" + content[i : i + 2])[0] for i in range(0, len(content), 2)]
    assert dtype == "F32", dtype
    return list(struct.unpack(f"<{len(content) // 4}f", content))
