# SPDX-License-Identifier: MIT
"""An op of cklang in a program of JAX, through XLA's foreign function interface.

XLA calls a handler in C++ with the addresses of operands and results in memory; the handler calls
back into Python, where the op reads and writes them in place. The handler is compiled here against
the headers that come with jaxlib (``jax.ffi.include_dir()``). On the CPU the kernel runs on the
emulated GPU. Needs ``pip install jax``.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import cklang as ck

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    """Return the product and its activation."""
    return ck.relu(x @ w.T)


HANDLER = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
using Call = int (*)(int64_t, void**);
static Call python = nullptr;
extern "C" void set_python(Call call) { python = call; }
static ffi::Error run(int64_t id, ffi::RemainingArgs args, ffi::RemainingRets results) {
  std::vector<void*> all;
  for (size_t i = 0; i < args.size(); ++i)
    all.push_back(args.get<ffi::AnyBuffer>(i)->untyped_data());
  for (size_t i = 0; i < results.size(); ++i)
    all.push_back((*results.get<ffi::AnyBuffer>(i))->untyped_data());
  if (python(id, all.data()) == 0) return ffi::Error::Success();
  return ffi::Error(ffi::ErrorCode::kInternal, "the op of cklang raised an error");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    ck_call, run, ffi::Ffi::Bind().Attr<int64_t>("id").RemainingArgs().RemainingRets());
"""

calls: list[tuple[ck.Op, tuple[jax.ShapeDtypeStruct, ...]]] = []
"""What each number of a call is: the op, and its operands and results."""


def array_at(address: int, like: jax.ShapeDtypeStruct) -> Any:
    """Return memory of XLA as an array, without a copy."""
    dtype = np.dtype(like.dtype)
    memory = (ctypes.c_char * (dtype.itemsize * int(np.prod(like.shape)))).from_address(address)
    return np.frombuffer(memory, dtype).reshape(like.shape)


def call(number: int, addresses: Any) -> int:
    """Run a call; return 0, or 1 if the op raises an error."""
    op, likes = calls[number]
    *operands, out = (array_at(addresses[i], like) for i, like in enumerate(likes))
    try:
        op(*operands, out=out)
    except ck.CkError as mistake:
        print(mistake)
        return 1
    return 0


run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))(call)
"""What the handler calls; it must live as long as JAX may."""


def registered() -> ctypes.CDLL:
    """Compile the handler and register it with JAX."""
    folder = Path(tempfile.mkdtemp())
    (folder / "handler.cpp").write_text(HANDLER)
    # The compiler that cklang installs; any other for C++17 does too.
    command = [sys.executable, "-m", "ziglang", "c++", "-std=c++17", "-O1", "-shared", "-fPIC"]
    files = [f"-I{jax.ffi.include_dir()}", str(folder / "handler.cpp"), "-o", str(folder / "h.so")]
    subprocess.run([*command, *files], check=True)
    library = ctypes.CDLL(str(folder / "h.so"))
    library.set_python(run)
    jax.ffi.register_ffi_target("ck_call", jax.ffi.pycapsule(library.ck_call), platform="cpu")
    return library


def jax_linear(x: jax.Array, w: jax.Array) -> jax.Array:
    """Call the op; shapes are known when JAX traces."""
    result = jax.ShapeDtypeStruct((x.shape[0], w.shape[0]), x.dtype)
    calls.append((linear, (*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (x, w)), result)))
    return jax.ffi.ffi_call("ck_call", result)(x, w, id=np.int64(len(calls) - 1))


if __name__ == "__main__":
    library = registered()
    keys = jax.random.split(jax.random.key(0))
    x, w = (jax.random.normal(key, (64, 64)).astype(jnp.float16) for key in keys)
    layer = jax.jit(lambda x, w: jax_linear(x * 2, w).sum(axis=1))
    want = jax.nn.relu((x * 2).astype(jnp.float32) @ w.T.astype(jnp.float32)).sum(axis=1)
    np.testing.assert_allclose(layer(x, w), want, rtol=0.01)
    record = linear.last
    assert record is not None
    print(f"JAX called {linear.program.name} on the {record.device}: results agree")
