// SPDX-License-Identifier: MIT
//
// HIP: texture and surface objects, and the texture references from before them.
#include <map>

#include "core/immortal.h"
#include "hip/device.h"
#include "hip/image.h"
#include "hip/memory.h"
#include "hip/module.h"
#include "hip/registered.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// hipResourceDesc.
struct Resource {
  enum Kind : int { kArray = 0, kMipmap = 1, kLinear = 2, kPitched = 3 } kind;
  union {
    void* array;
    struct {
      void* data;
      ChannelFormat channels;
      size_t bytes;
    } linear;
    struct {
      void* data;
      ChannelFormat channels;
      size_t width, height, pitch;
    } pitched;
  };
};
static_assert(sizeof(Resource) == 64, "hipResourceDesc");

/// hipTextureDesc.
struct Sampling {
  int address[3], filter, read_mode, srgb;
  float border[4];
  int normalized;
  u32 anisotropy;
  int mipmap_filter;
  float level_bias, least_level, most_level;
};

/// hipResourceViewDesc.
struct View {
  int format;
  size_t width, height, depth;
  u32 first_level, last_level, first_layer, last_layer;
};

struct Object {
  Resource resource;
  Sampling sampling;
  View view;
};

/// The objects that exist, by the address of their record.
struct Objects {
  Mutex lock;
  std::map<const void*, Object> textures, surfaces;
};
Objects& objects() { return immortal<Objects>(); }

hipError_t refuse(hipError_t error, const char* reason) {
  last_message().clear();
  last_message().add("%s", reason);
  return error;
}

hipError_t place_array(const void* handle, Image& image) {
  const Array* array = find_array(handle);
  if (array == nullptr) return hipErrorInvalidHandle;
  image.data = array->data;
  image.pitch = array->pitch();
  image.slice = array->slice();
  image.width = static_cast<int>(array->extent.width);
  image.height = static_cast<int>(array->rows());
  image.depth = static_cast<int>(array->planes());
  image.format = array->format;
  return hipSuccess;
}

bool aligned(const void* data) { return data != nullptr && reinterpret_cast<u64>(data) % kImageAlignment == 0; }

hipError_t place_linear(const Resource& resource, Image& image) {
  const auto& from = resource.linear;
  if (!read_format(from.channels, image.format) || !aligned(from.data)) return hipErrorInvalidValue;
  const size_t count = from.bytes / image.format.size();
  if (count == 0 || count > kMostLinear || !accessible(from.data, from.bytes)) return hipErrorInvalidValue;
  image.data = static_cast<const u8*>(from.data);
  image.width = static_cast<int>(count);
  return hipSuccess;
}

hipError_t place_pitched(const Resource& resource, Image& image) {
  const auto& from = resource.pitched;
  if (!read_format(from.channels, image.format) || !aligned(from.data) || from.pitch % kImageAlignment != 0)
    return hipErrorInvalidValue;
  if (from.width == 0 || from.height == 0 || from.width > kMostElements || from.height > kMostElements)
    return hipErrorInvalidValue;
  const size_t row = from.width * image.format.size();
  if (from.pitch < row || !accessible(from.data, (from.height - 1) * from.pitch + row)) return hipErrorInvalidValue;
  image.data = static_cast<const u8*>(from.data);
  image.pitch = from.pitch;
  image.width = static_cast<int>(from.width);
  image.height = static_cast<int>(from.height);
  return hipSuccess;
}

hipError_t place(const Resource& resource, Image& image) {
  switch (resource.kind) {
    case Resource::kArray: return place_array(resource.array, image);
    case Resource::kLinear: return place_linear(resource, image);
    case Resource::kPitched: return place_pitched(resource, image);
    case Resource::kMipmap: return refuse(hipErrorNotSupported, "there are no mipmapped arrays");
    default: return hipErrorInvalidValue;
  }
}

/// Reads an array's elements as others of the same size: hipResourceViewFormat counts kinds of channels, each with
/// one, two and four of them.
hipError_t look_through(const View& view, Image& image) {
  constexpr ElementFormat kKinds[] = {
      {ChannelKind::Unsigned, 1}, {ChannelKind::Signed, 1}, {ChannelKind::Unsigned, 2}, {ChannelKind::Signed, 2},
      {ChannelKind::Unsigned, 4}, {ChannelKind::Signed, 4}, {ChannelKind::Float, 2},    {ChannelKind::Float, 4}};
  constexpr int kCount = 3 * sizeof kKinds / sizeof *kKinds;
  if (view.format == 0) return hipSuccess;
  if (view.format < 0 || view.format > kCount) return refuse(hipErrorNotSupported, "a view of compressed elements");
  ElementFormat format = kKinds[(view.format - 1) / 3];
  format.channels = static_cast<u8>(1 << (view.format - 1) % 3);
  if (format.size() != image.format.size()) return hipErrorInvalidValue;
  image.format = format;
  return hipSuccess;
}

/// How a texture is read. As in ROCm the first axis decides for all, coordinates of elements are never wrapped or
/// mirrored, and what lies outside has the border colour 0.
hipError_t set_sampling(const Sampling& wanted, Resource::Kind kind, Image& image) {
  if (wanted.address[0] < 0 || wanted.address[0] > 3 || wanted.filter < 0 || wanted.filter > 1)
    return hipErrorInvalidValue;
  if (wanted.read_mode < 0 || wanted.read_mode > 1) return hipErrorInvalidValue;
  if (wanted.anisotropy != 0 || wanted.level_bias != 0 || wanted.least_level != 0 || wanted.most_level != 0) {
    return refuse(hipErrorNotSupported, "anisotropy and mipmap levels");
  }
  if (wanted.srgb != 0) return refuse(hipErrorNotSupported, "sRGB colours");
  image.as_floats = image.format.kind == ChannelKind::Float || (wanted.read_mode == 1 && image.format.bytes < 4);
  if (kind == Resource::kLinear) return hipSuccess;  // neither filter nor addresses count
  image.normalized = wanted.normalized != 0;
  image.linear = wanted.filter == 1;
  image.address = static_cast<AddressMode>(wanted.address[0]);
  const bool repeated = image.address == AddressMode::Wrap || image.address == AddressMode::Mirror;
  if (repeated && !image.normalized) image.address = AddressMode::Clamp;
  if (image.linear && !image.as_floats)
    return refuse(hipErrorInvalidValue, "a linear filter gives floats, and the texture is read as integers");
  const bool space = kind == Resource::kArray && image.depth > 1;
  if (image.linear && space && current_device().spec->major == 9)
    return refuse(hipErrorNotSupported, "gfx90a has no linear filter for several planes");
  return hipSuccess;
}

/// What kernels read that were compiled with ROCm's own headers. Linear memory is the buffer that the first four words
/// describe; what they would use for others, image instructions, is refused.
void describe_buffer(const Image& image, u32 (&words)[16]) {
  constexpr u8 kData[3][3] = {{1, 3, 10}, {2, 5, 12}, {4, 11, 14}};  // by bytes and number of channels
  const ElementFormat format = image.format;
  const bool is_signed = format.kind == ChannelKind::Signed;
  const u32 number = format.kind == ChannelKind::Float ? 7 : (image.as_floats ? 0 : 4) + is_signed;
  const u32 data = kData[format.bytes / 2][format.channels / 2];
  const u64 base = reinterpret_cast<u64>(image.data);
  words[0] = static_cast<u32>(base);
  words[1] = static_cast<u32>(base >> 32) | static_cast<u32>(format.size()) << 16;
  words[2] = static_cast<u32>(image.width);
  for (u32 n = 0; n < 4; ++n) words[3] |= (n < format.channels ? 4 + n : n == 3 ? 1 : 0) << (3 * n);
  words[3] |= current_device().spec->major == 9 ? number << 12 | data << 15 : unified_format(data, number) << 12;
}

/// Puts a record where kernels read it.
hipError_t publish(void** handle, const Image& image, const Object& object, std::map<const void*, Object>& among) {
  Record record{{}, image};
  if (object.resource.kind == Resource::kLinear) describe_buffer(image, record.descriptors);
  if (const hipError_t error = allocate(handle, sizeof record, MemoryType::Object); error != hipSuccess) return error;
  std::memcpy(*handle, &record, sizeof record);
  const Guard guard(objects().lock);
  among[*handle] = object;
  return hipSuccess;
}

hipError_t create_texture(void** handle, const Resource* resource, const Sampling* sampling, const View* view) {
  if (handle == nullptr || resource == nullptr || sampling == nullptr) return hipErrorInvalidValue;
  if (const hipError_t error = require_images(); error != hipSuccess) return error;
  if (view != nullptr && resource->kind != Resource::kArray && resource->kind != Resource::kMipmap)
    return hipErrorInvalidValue;
  Image image;
  hipError_t error = place(*resource, image);
  if (error == hipSuccess && view != nullptr) error = look_through(*view, image);
  if (error == hipSuccess) error = set_sampling(*sampling, resource->kind, image);
  return error == hipSuccess
             ? publish(handle, image, {*resource, *sampling, view != nullptr ? *view : View{}}, objects().textures)
             : error;
}

hipError_t create_surface(void** handle, const Resource* resource) {
  if (handle == nullptr || resource == nullptr || resource->kind != Resource::kArray) return hipErrorInvalidValue;
  if (const hipError_t error = require_images(); error != hipSuccess) return error;
  Image image;
  if (const hipError_t error = place_array(resource->array, image); error != hipSuccess) return error;
  image.as_floats = image.format.kind == ChannelKind::Float;
  return publish(handle, image, {*resource, {}, {}}, objects().surfaces);
}

hipError_t destroy(void* handle, std::map<const void*, Object>& among) {
  if (handle == nullptr) return hipSuccess;
  Allocation record;
  {
    const Guard guard(objects().lock);
    if (among.erase(handle) == 0) return hipErrorInvalidHandle;
  }
  if (find_allocation(handle, record)) await_device(*device(record.device));
  return release(handle);
}

template <class Part>
hipError_t tell(Part* part, const void* handle, Part Object::* which) {
  const Guard guard(objects().lock);
  const auto object = objects().textures.find(handle);
  if (part == nullptr) return hipErrorInvalidValue;
  if (object == objects().textures.end()) return hipErrorInvalidHandle;
  *part = object->second.*which;
  return hipSuccess;
}

/// textureReference: the variable of a program, on the host and on the device.
struct Reference {
  int normalized, read_mode, filter, address[3];
  ChannelFormat channels;
  int srgb;
  u32 anisotropy;
  int mipmap_filter;
  float level_bias, least_level, most_level;
  void* object;
  int channel_count, format;
};

/// Lets the device's variable have what the host's says.
hipError_t copy_to_device(const Reference* reference) {
  void* place = nullptr;
  size_t size = 0;
  if (const hipError_t error = registered_variable(reference, current_device(), &place, &size); error != hipSuccess)
    return error;
  await_device(current_device());
  std::memcpy(place, reference, std::min(size, sizeof *reference));
  return hipSuccess;
}

hipError_t unbind(const Reference* handle) {
  Reference* reference = const_cast<Reference*>(handle);
  if (reference == nullptr) return hipErrorInvalidValue;
  const hipError_t error = destroy(reference->object, objects().textures);
  reference->object = nullptr;
  return error;
}

hipError_t bind(const Reference* handle, const Resource& resource) {
  Reference* reference = const_cast<Reference*>(handle);
  if (reference == nullptr) return hipErrorInvalidValue;
  if (const hipError_t error = unbind(reference); error != hipSuccess) return error;
  Sampling sampling{};
  std::copy_n(reference->address, 3, sampling.address);
  sampling.filter = reference->filter;
  sampling.read_mode = reference->read_mode;
  sampling.normalized = reference->normalized;
  sampling.srgb = reference->srgb;
  const hipError_t error = create_texture(&reference->object, &resource, &sampling, nullptr);
  return error == hipSuccess ? copy_to_device(reference) : error;
}

hipError_t bind_memory(size_t* offset, const Reference* reference, Resource& resource, const ChannelFormat* channels) {
  if (channels == nullptr) return hipErrorInvalidValue;
  if (offset != nullptr) *offset = 0;  // addresses that are not aligned are refused
  (resource.kind == Resource::kLinear ? resource.linear.channels : resource.pitched.channels) = *channels;
  return bind(reference, resource);
}

}  // namespace

CKEMU_EXPORT hipError_t hipCreateTextureObject(void** texture, const Resource* resource, const Sampling* sampling,
                                               const View* view) {
  return finish(create_texture(texture, resource, sampling, view));
}
CKEMU_EXPORT hipError_t hipDestroyTextureObject(void* texture) { return finish(destroy(texture, objects().textures)); }
CKEMU_EXPORT hipError_t hipGetTextureObjectResourceDesc(Resource* resource, void* texture) {
  return finish(tell(resource, texture, &Object::resource));
}
CKEMU_EXPORT hipError_t hipGetTextureObjectTextureDesc(Sampling* sampling, void* texture) {
  return finish(tell(sampling, texture, &Object::sampling));
}
CKEMU_EXPORT hipError_t hipGetTextureObjectResourceViewDesc(View* view, void* texture) {
  return finish(tell(view, texture, &Object::view));
}
CKEMU_EXPORT hipError_t hipCreateSurfaceObject(void** surface, const Resource* resource) {
  return finish(create_surface(surface, resource));
}
CKEMU_EXPORT hipError_t hipDestroySurfaceObject(void* surface) { return finish(destroy(surface, objects().surfaces)); }

CKEMU_EXPORT void __hipRegisterTexture(FatBinary** handle, const void* host, const char*, const char* name, int, int,
                                       int) {
  register_variable(*handle, host, name);
}
CKEMU_EXPORT hipError_t hipBindTexture(size_t* offset, const Reference* reference, const void* data,
                                       const ChannelFormat* channels, size_t size) {
  Resource resource{Resource::kLinear, {}};
  Allocation around;
  // Programs leave the size at its default, the largest there is.
  const size_t rest = find_allocation(data, around) ? around.base + around.size - reinterpret_cast<u64>(data) : size;
  resource.linear = {const_cast<void*>(data), {}, std::min(size, rest)};
  return finish(bind_memory(offset, reference, resource, channels));
}
CKEMU_EXPORT hipError_t hipBindTexture2D(size_t* offset, const Reference* reference, const void* data,
                                         const ChannelFormat* channels, size_t width, size_t height, size_t pitch) {
  Resource resource{Resource::kPitched, {}};
  resource.pitched = {const_cast<void*>(data), {}, width, height, pitch};
  return finish(bind_memory(offset, reference, resource, channels));
}
CKEMU_EXPORT hipError_t hipBindTextureToArray(const Reference* reference, const void* array, const ChannelFormat*) {
  Resource resource{Resource::kArray, {}};
  resource.array = const_cast<void*>(array);
  return finish(bind(reference, resource));
}
CKEMU_EXPORT hipError_t hipUnbindTexture(const Reference* reference) { return finish(unbind(reference)); }
CKEMU_EXPORT hipError_t hipGetTextureAlignmentOffset(size_t* offset, const Reference* reference) {
  if (offset == nullptr || reference == nullptr || reference->object == nullptr) return finish(hipErrorInvalidValue);
  *offset = 0;
  return hipSuccess;
}

}  // namespace ckemu
