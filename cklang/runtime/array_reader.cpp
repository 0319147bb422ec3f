// SPDX-License-Identifier: MIT
// What a call's key needs of an array, read without Python: its attributes take a microsecond there.
// A call like one whose key is known needs no key of its own: its arrays are compared with that one.
//
// Nothing here is included or linked: CPython's functions, all of its stable ABI, come as pointers,
// and so does what torch exports for DLPack. The structs are mirrored by array_reader.py.

#include <stdint.h>

extern "C" {

struct object;  ///< A Python object.

/// CPython's functions and objects.
struct ck_python {
  object* (*type)(object*);
  void (*keep)(object*);
  void (*release)(object*);
  object* (*integer)(unsigned long long);
  object* (*tuple)(intptr_t);
  int (*set_item)(object* tuple, intptr_t, object* stolen);
  object* (*signed_integer)(long long);
  int (*append)(object* list, object*);
  object* (*attribute)(object*, object* name);
  object* (*call)(object*);
  void (*forget_error)();
  intptr_t (*count)(object* sequence);
  object* (*item)(object* sequence, intptr_t);  ///< Owned by the caller.
  object* (*borrowed)(object* tuple, intptr_t);
  long long (*number)(object*);
  int (*equal)(object*, object*, int how);
  object* (*list)(intptr_t);
  object *yes, *no, *none;
};

/// The words behind the header of a NumPy array.
struct numpy_array {
  uint64_t data;
  int32_t rank;
  const int64_t* extents;
  const int64_t* strides;  ///< In bytes.
  object* base;
  object* dtype;
};

/// DLPack's description of a tensor in memory.
struct dlpack_tensor {
  uint64_t data;
  int32_t device_type;
  int32_t device;
  int32_t rank;
  uint8_t dtype[4];
  const int64_t* extents;
  const int64_t* strides;  ///< In elements.
  uint64_t offset;         ///< In bytes.
};

/// The classes that are read, and how.
struct ck_libraries {
  uint64_t header;  ///< Bytes of a Python object before its own words.
  object* numpy_array;
  object *tensor, *parameter;  ///< Null while torch is not imported.
  int (*tensor_read)(object*, dlpack_tensor*);
  object* gradients_enabled;                        ///< A function of torch.
  object *requires_grad, *is_neg, *dtype, *device;  ///< Names.
};

static ck_python python;
static ck_libraries libraries;

void ck_learn(const ck_python* functions, const ck_libraries* classes) {
  python = *functions;
  libraries = *classes;
}

}  // extern "C"

enum { CPU = 1 };  // DLPack's number of the host.

static bool append(object* list, object* owned) {
  if (!owned) return false;
  const bool done = python.append(list, owned) == 0;
  python.release(owned);
  return done;
}

static object* tuple_of(const int64_t* numbers, int32_t count) {
  object* tuple = python.tuple(count);
  for (int32_t i = 0; tuple && i < count; ++i) {
    object* number = python.signed_integer(numbers[i]);
    if (!number || python.set_item(tuple, i, number)) {
      python.release(tuple);
      return nullptr;
    }
  }
  return tuple;
}

static bool append_layout(object* key, object* addresses, const int64_t* extents, const int64_t* strides, int32_t rank,
                          uint64_t address) {
  return append(key, tuple_of(extents, rank)) && append(key, tuple_of(strides, rank)) &&
         append(key, python.integer(address & 7)) && append(addresses, python.integer(address));
}

static bool is_true(object* owned) {
  if (owned) python.release(owned);  // True and False live on.
  return owned != python.no;         // Also an error, which the caller forgets.
}

/// Calls a method without arguments, or a function if there is no name.
static bool says(object* value, object* name) {
  object* method = python.attribute(value, name);
  if (!method) return true;
  const bool answer = is_true(python.call(method));
  python.release(method);
  return answer;
}

static bool needs_gradient(object* tensor) {
  return is_true(python.attribute(tensor, libraries.requires_grad)) &&
         is_true(python.call(libraries.gradients_enabled));
}

/// What the key says of an array, or would say.
struct layout {
  object* dtype;   ///< Borrowed.
  object* device;  ///< Owned; null for NumPy's arrays.
  const int64_t *extents, *strides;
  int32_t rank;
  uint64_t address;
};

enum answer { ERROR, READ, LEFT };

/// Reads an array; LEFT: Python must look at it.
static answer look(object* value, layout* found) {
  object* type = python.type(value);
  python.release(type);  // The value keeps it.
  if (type == libraries.numpy_array) {
    const char* words = reinterpret_cast<const char*>(value) + libraries.header;
    const numpy_array& array = *reinterpret_cast<const numpy_array*>(words);
    *found = {array.dtype, nullptr, array.extents, array.strides, array.rank, array.data};
    return READ;
  }
  if (!type || (type != libraries.tensor && type != libraries.parameter)) return LEFT;
  dlpack_tensor tensor;
  if (needs_gradient(value) || says(value, libraries.is_neg) || libraries.tensor_read(value, &tensor) ||
      (tensor.rank && !tensor.strides)) {
    python.forget_error();
    return LEFT;
  }
  object* dtype = python.attribute(value, libraries.dtype);
  if (!dtype) return ERROR;
  python.release(dtype);  // torch keeps its dtypes.
  object* device = python.yes;
  if (tensor.device_type == CPU) python.keep(device);
  else if (!(device = python.attribute(value, libraries.device))) return ERROR;
  *found = {dtype, device, tensor.extents, tensor.strides, tensor.rank, tensor.data + tensor.offset};
  return READ;
}

/// Returns True if the array was read, False if Python must look at it, null for an error.
///
/// Appends dtype, extents, strides, address modulo 8 (and the device of a tensor, True for the
/// host) to the list ``key``, and the address to ``addresses``.
static object* read(object* value, object* key, object* addresses) {
  layout array;
  const answer seen = look(value, &array);
  if (seen != READ) return seen == LEFT ? python.no : nullptr;
  const bool done = !python.append(key, array.dtype) &&
                    append_layout(key, addresses, array.extents, array.strides, array.rank, array.address);
  if (!array.device) return done ? python.yes : nullptr;
  if (done) return append(key, array.device) ? python.yes : nullptr;
  python.release(array.device);
  return nullptr;
}

static bool are(object* tuple, const int64_t* numbers, int32_t count) {
  if (!tuple || python.count(tuple) != count) return false;
  for (int32_t i = 0; i < count; ++i) {
    object* number = python.borrowed(tuple, i);
    if (!number || python.number(number) != numbers[i]) return false;
  }
  return true;
}

static bool is(object* number, uint64_t value) {
  return number && python.number(number) == static_cast<long long>(value);
}

/// Whether a key says of an array what is found; moves ``at`` behind it.
static bool says_so(object* key, intptr_t* at, const layout& array) {
  const intptr_t first = *at;
  *at = first + (array.device ? 5 : 4);
  if (python.count(key) < *at || python.borrowed(key, first) != array.dtype ||
      !are(python.borrowed(key, first + 1), array.extents, array.rank) ||
      !are(python.borrowed(key, first + 2), array.strides, array.rank) ||
      !is(python.borrowed(key, first + 3), array.address & 7))
    return false;
  enum { EQUAL = 2 };  // CPython's Py_EQ.
  return !array.device || python.equal(python.borrowed(key, first + 4), array.device, EQUAL) == 1;
}

/// Appends the addresses of a call's values; false if they differ from what its key says.
static bool compare(object* key, intptr_t at, object* values, object* addresses) {
  const intptr_t count = python.count(values);
  for (intptr_t i = 0; i < count; ++i) {
    object* value = python.item(values, i);
    if (!value) return false;
    layout array;
    bool same;
    if (value == python.none) {
      same = at < python.count(key) && python.borrowed(key, at++) == value;
    } else if ((same = look(value, &array) == READ)) {
      same = says_so(key, &at, array) && append(addresses, python.integer(array.address));
      if (array.device) python.release(array.device);
    }
    python.release(value);
    if (!same) return false;
  }
  return count >= 0 && at == python.count(key);
}

extern "C" object* ck_read(object*, object* const* arguments, intptr_t) {
  object* answer = read(arguments[0], arguments[1], arguments[2]);
  if (answer) python.keep(answer);
  return answer;
}

/// Returns the addresses of a call's values; None if they are not as its key says.
extern "C" object* ck_compare(object*, object* const* arguments, intptr_t) {
  object* addresses = python.list(0);
  if (!addresses) return nullptr;
  const intptr_t first = python.number(arguments[1]);
  if (compare(arguments[0], first, arguments[2], addresses)) return addresses;
  python.forget_error();
  python.release(addresses);
  python.keep(python.none);
  return python.none;
}
