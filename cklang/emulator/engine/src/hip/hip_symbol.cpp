// SPDX-License-Identifier: MIT
//
// HIP: variables of the device that the host program names.
#include "hip/registered.h"

namespace ckemu {

extern "C" hipError_t hipMemcpyAsync(void* to, const void* from, size_t size, int kind, void* stream);
extern "C" hipError_t hipMemcpy(void* to, const void* from, size_t size, int kind);

namespace {

/// Bytes [offset, offset + size) of the variable behind `symbol`.
hipError_t span_of(const void* symbol, size_t offset, size_t size, void** address) {
  void* base = nullptr;
  size_t bytes = 0;
  if (const hipError_t error = registered_variable(symbol, current_device(), &base, &bytes); error != hipSuccess)
    return error;
  if (offset > bytes || size > bytes - offset) return hipErrorInvalidValue;
  *address = static_cast<u8*>(base) + offset;
  return hipSuccess;
}

}  // namespace

CKEMU_EXPORT hipError_t hipGetSymbolAddress(void** address, const void* symbol) {
  if (address == nullptr) return finish(hipErrorInvalidValue);
  size_t size = 0;
  return finish(registered_variable(symbol, current_device(), address, &size));
}
CKEMU_EXPORT hipError_t hipGetSymbolSize(size_t* size, const void* symbol) {
  if (size == nullptr) return finish(hipErrorInvalidValue);
  void* address = nullptr;
  return finish(registered_variable(symbol, current_device(), &address, size));
}
CKEMU_EXPORT hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t size, size_t offset, int kind) {
  void* to = nullptr;
  const hipError_t error = span_of(symbol, offset, size, &to);
  return error == hipSuccess ? hipMemcpy(to, from, size, kind) : finish(error);
}
CKEMU_EXPORT hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* from, size_t size, size_t offset,
                                               int kind, void* stream) {
  void* to = nullptr;
  const hipError_t error = span_of(symbol, offset, size, &to);
  return error == hipSuccess ? hipMemcpyAsync(to, from, size, kind, stream) : finish(error);
}
CKEMU_EXPORT hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t size, size_t offset, int kind) {
  void* from = nullptr;
  const hipError_t error = span_of(symbol, offset, size, &from);
  return error == hipSuccess ? hipMemcpy(to, from, size, kind) : finish(error);
}
CKEMU_EXPORT hipError_t hipMemcpyFromSymbolAsync(void* to, const void* symbol, size_t size, size_t offset, int kind,
                                                 void* stream) {
  void* from = nullptr;
  const hipError_t error = span_of(symbol, offset, size, &from);
  return error == hipSuccess ? hipMemcpyAsync(to, from, size, kind, stream) : finish(error);
}

}  // namespace ckemu
