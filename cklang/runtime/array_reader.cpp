// SPDX-License-Identifier: MIT
// What a call's key needs of an array, read without Python: its attributes take a microsecond there.
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
    object *yes, *no;
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
    object* gradients_enabled;  ///< A function of torch.
    object *requires_grad, *is_neg, *dtype, *device;  ///< Names.
};

static ck_python python;
static ck_libraries libraries;

void ck_learn(const ck_python* functions, const ck_libraries* classes)
{
    python = *functions;
    libraries = *classes;
}

}  // extern "C"

enum { CPU = 1 };  // DLPack's number of the host.

static bool append(object* list, object* owned)
{
    if (!owned) return false;
    const bool done = python.append(list, owned) == 0;
    python.release(owned);
    return done;
}

static object* tuple_of(const int64_t* numbers, int32_t count)
{
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

static bool append_layout(object* key, object* addresses, const int64_t* extents,
                          const int64_t* strides, int32_t rank, uint64_t address)
{
    return append(key, tuple_of(extents, rank)) && append(key, tuple_of(strides, rank)) &&
           append(key, python.integer(address & 7)) && append(addresses, python.integer(address));
}

static bool is_true(object* owned)
{
    if (owned) python.release(owned);  // True and False live on.
    return owned != python.no;         // Also an error, which the caller forgets.
}

/// Calls a method without arguments, or a function if there is no name.
static bool says(object* value, object* name)
{
    object* method = python.attribute(value, name);
    if (!method) return true;
    const bool answer = is_true(python.call(method));
    python.release(method);
    return answer;
}

static bool needs_gradient(object* tensor)
{
    return is_true(python.attribute(tensor, libraries.requires_grad)) &&
           is_true(python.call(libraries.gradients_enabled));
}

/// Returns True if the array was read, False if Python must look at it, null for an error.
///
/// Appends dtype, extents, strides, address modulo 8 (and the device of a tensor, True for the
/// host) to the list ``key``, and the address to ``addresses``.
static object* read(object* value, object* key, object* addresses)
{
    object* type = python.type(value);
    python.release(type);  // The value keeps it.
    if (type == libraries.numpy_array) {
        const char* words = reinterpret_cast<const char*>(value) + libraries.header;
        const numpy_array& array = *reinterpret_cast<const numpy_array*>(words);
        if (python.append(key, array.dtype) ||
            !append_layout(key, addresses, array.extents, array.strides, array.rank, array.data))
            return nullptr;
        return python.yes;
    }
    if (!type || (type != libraries.tensor && type != libraries.parameter)) return python.no;
    dlpack_tensor tensor;
    if (needs_gradient(value) || says(value, libraries.is_neg) ||
        libraries.tensor_read(value, &tensor) || (tensor.rank && !tensor.strides)) {
        python.forget_error();
        return python.no;
    }
    if (!append(key, python.attribute(value, libraries.dtype)) ||
        !append_layout(key, addresses, tensor.extents, tensor.strides, tensor.rank,
                       tensor.data + tensor.offset))
        return nullptr;
    if (tensor.device_type == CPU) return python.append(key, python.yes) ? nullptr : python.yes;
    return append(key, python.attribute(value, libraries.device)) ? python.yes : nullptr;
}

extern "C" object* ck_read(object*, object* const* arguments, intptr_t)
{
    object* answer = read(arguments[0], arguments[1], arguments[2]);
    if (answer) python.keep(answer);
    return answer;
}
