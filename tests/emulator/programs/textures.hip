// SPDX-License-Identifier: MIT
// Textures against the formulas of the programming guides, computed on the host in double precision. Coordinates are
// (k + 1/2) / 4096 and sizes are odd: products are exact, and no place lies between two elements.
#include <hip/hip_runtime.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

constexpr int kWidth = 13, kHeight = 9, kDepth = 5, kSamples = 128;

static int failed = 0, wrong = 0, compared = 0;
#define CHECK(condition) \
    if(!(condition))     \
        ++failed, printf("FAILED at %d: %s\n", __LINE__, #condition);

static std::mt19937 generator(20261124);
static int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator); }

enum class Shape { Row, Plane, Space, Rows, Planes };

struct Sample
{
    float x, y, z;
    int layer;
};

template <typename T, Shape shape>
__global__ void read(hipTextureObject_t texture, const Sample* samples, T* results)
{
    const Sample s = samples[threadIdx.x];
    T& result      = results[threadIdx.x];
    if constexpr(shape == Shape::Row)
        result = tex1D<T>(texture, s.x);
    else if constexpr(shape == Shape::Plane)
        result = tex2D<T>(texture, s.x, s.y);
    else if constexpr(shape == Shape::Space)
        tex3D<T>(&result, texture, s.x, s.y, s.z);
    else if constexpr(shape == Shape::Rows)
        result = tex1DLayered<T>(texture, s.x, s.layer);
    else
        result = tex2DLayered<T>(texture, s.x, s.y, s.layer);
}

__global__ void gather(hipTextureObject_t texture, const Sample* samples, float4* results)
{
    const Sample s        = samples[threadIdx.x];
    results[threadIdx.x] = tex2Dgather<float4>(texture, s.x, s.y, s.layer & 1);
}

// Forms with levels and slopes read the one level that there is.
__global__ void levels(hipTextureObject_t texture, const Sample* samples, float4* results, int* same)
{
    const Sample s = samples[threadIdx.x];
    const float4 a = tex2DLod<float4>(texture, s.x, s.y, 0.0f);
    const float4 b = tex2DGrad<float4>(texture, s.x, s.y, make_float2(0, 0), make_float2(1, 0));
    results[threadIdx.x] = a;
    same[threadIdx.x]    = a == b;
}

template <typename T>
__global__ void fetch(hipTextureObject_t texture, int first, T* results)
{
    results[threadIdx.x] = tex1Dfetch<T>(texture, first + static_cast<int>(threadIdx.x));
}

/// The elements of a texture on the host: four channels each, as they are read.
struct Model
{
    int size[3];
    std::vector<double> values;
    bool linear, normalized;
    hipTextureAddressMode address;

    double at(const int (&n)[3], int channel) const
    {
        int place[3];
        for(int axis = 0; axis < 3; ++axis)
        {
            place[axis] = n[axis];
            if(n[axis] >= 0 && n[axis] < size[axis])
                continue;
            if(address == hipAddressModeBorder)
                return 0;
            const bool low = n[axis] < 0, around = address == hipAddressModeWrap;
            place[axis] = low == around ? size[axis] - 1 : 0;
        }
        return values[4 * ((place[2] * size[1] + place[1]) * size[0] + place[0]) + channel];
    }
    /// The coordinate in elements: the guides wrap and mirror it before it is multiplied.
    double place(double x, int axis) const
    {
        if(!normalized)
            return std::fmin(std::fmax(x, -1.0), size[axis] + 1.0);
        const double whole = std::floor(x), part = x - whole;
        if(address == hipAddressModeWrap)
            x = part;
        if(address == hipAddressModeMirror)
            x = std::fmod(whole, 2) == 0 ? part : 1 - part;
        return std::fmin(std::fmax(x * size[axis], -1.0), size[axis] + 1.0);
    }
    double read(const double (&x)[3], int axes, int channel) const
    {
        int below[3];
        double weight[3] = {};
        for(int axis = 0; axis < 3; ++axis)
        {
            const bool filtered = linear && axis < axes;
            const double at     = axis < axes ? place(x[axis], axis) - (filtered ? 0.5 : 0.0) : x[axis];
            below[axis]         = static_cast<int>(std::floor(at));
            if(filtered)
                weight[axis] = std::rint((at - std::floor(at)) * 256) / 256;
        }
        double sum = 0;
        for(int corner = 0; corner < 8; ++corner)
        {
            double share = 1;
            int n[3];
            for(int axis = 0; axis < 3; ++axis)
            {
                const int step = corner >> axis & 1;
                n[axis]        = below[axis] + step;
                share *= step ? weight[axis] : 1 - weight[axis];
            }
            if(share != 0)
                sum += share * at(n, channel);
        }
        return sum;
    }
};

/// A kind of element: how to draw one channel, and what it is read as.
struct Kind
{
    hipChannelFormatKind kind;
    int bits;
    bool as_floats;
};

static double draw_channel(const Kind& kind, unsigned char* to)
{
    if(kind.kind == hipChannelFormatKindFloat)
    {
        const float value = static_cast<float>(draw(-2000, 2000)) / 256;
        const _Float16 half = static_cast<_Float16>(value);
        std::memcpy(to, kind.bits == 32 ? static_cast<const void*>(&value) : &half, kind.bits / 8);
        return kind.bits == 32 ? value : static_cast<float>(half);
    }
    const long most = (1L << kind.bits) - 1, half = 1L << (kind.bits - 1);
    long value = draw(0, 1 << 30) * 4L + draw(0, 3);
    value &= most;
    std::memcpy(to, &value, kind.bits / 8);
    if(kind.kind == hipChannelFormatKindSigned && value >= half)
        value -= most + 1;
    if(!kind.as_floats)
        return static_cast<double>(value);
    return kind.kind == hipChannelFormatKindSigned ? std::fmax(static_cast<double>(value) / (half - 1), -1) : static_cast<double>(value) / most;
}

static std::vector<unsigned char> fill(Model& model, const Kind& kind, int channels)
{
    const int count = model.size[0] * model.size[1] * model.size[2], bytes = kind.bits / 8;
    std::vector<unsigned char> memory(static_cast<size_t>(count * channels * bytes));
    model.values.assign(4 * count, 0);
    for(int n = 0; n < count; ++n)
    {
        model.values[4 * n + 3] = 1;
        for(int channel = 0; channel < channels; ++channel)
            model.values[4 * n + channel] = draw_channel(kind, &memory[(n * channels + channel) * bytes]);
    }
    return memory;
}

static hipChannelFormatDesc format(const Kind& kind, int channels)
{
    const auto bits = [&](int n) { return n < channels ? kind.bits : 0; };
    return hipCreateChannelDesc(bits(0), bits(1), bits(2), bits(3), kind.kind);
}

static hipTextureDesc sampling(const Model& model, const Kind& kind)
{
    hipTextureDesc description{};
    for(auto& mode : description.addressMode)
        mode = model.address;
    description.filterMode       = model.linear ? hipFilterModeLinear : hipFilterModePoint;
    description.readMode         = kind.as_floats && kind.bits < 32 && kind.kind != hipChannelFormatKindFloat ? hipReadModeNormalizedFloat
                                                                                                            : hipReadModeElementType;
    description.normalizedCoords = model.normalized;
    return description;
}

static Sample draw_sample(const Model& model, float (&exact)[3])
{
    for(int axis = 0; axis < 3; ++axis)
    {
        const int range = 4096 * (model.normalized ? 1 : model.size[axis]);
        exact[axis]     = (draw(-2 * range, 3 * range) + 0.5f) / 4096;
    }
    return {exact[0], exact[1], exact[2], draw(0, model.size[2] - 1)};
}

template <typename T>
struct Buffers
{
    Sample* samples;
    T* results;
    Buffers()
    {
        CHECK(hipMallocManaged(&samples, kSamples * sizeof(Sample)) == hipSuccess)
        CHECK(hipMallocManaged(&results, kSamples * sizeof(T)) == hipSuccess)
    }
    ~Buffers()
    {
        (void)hipFree(samples);
        (void)hipFree(results);
    }
};

static double channel_of(const float4& value, int n) { return n == 0 ? value.x : n == 1 ? value.y : n == 2 ? value.z : value.w; }
static double channel_of(const uchar4& value, int n) { return n == 0 ? value.x : n == 1 ? value.y : n == 2 ? value.z : value.w; }
static double channel_of(const short2& value, int n) { return n == 0 ? value.x : value.y; }
static double channel_of(int value, int) { return value; }
static double channel_of(unsigned value, int) { return value; }
static double channel_of(float value, int) { return value; }

static void compare(double result, double expected)
{
    ++compared;
    if(!(std::fabs(result - expected) <= 2e-6 * std::fmax(std::fabs(expected), 8)) && ++wrong <= 8)
        printf("%.9g instead of %.9g\n", result, expected);
}

template <typename T, Shape shape>
static void check(hipTextureObject_t texture, const Model& model, int channels)
{
    constexpr bool layered = shape == Shape::Rows || shape == Shape::Planes;
    constexpr int axes     = shape == Shape::Row || shape == Shape::Rows ? 1 : shape == Shape::Space ? 3 : 2;
    Buffers<T> buffers;
    std::vector<std::array<double, 3>> places;
    for(int n = 0; n < kSamples; ++n)
    {
        float exact[3];
        Sample sample = draw_sample(model, exact);
        std::array<double, 3> place{exact[0], exact[1], exact[2]};
        for(int axis = axes; axis < 3; ++axis)
            place[axis] = layered && axis == 2 ? sample.layer : 0;
        if(layered && n % 16 == 0)
        {
            sample.layer += 100;  // the last one
            place[2] = model.size[2] - 1;
        }
        buffers.samples[n] = sample;
        places.push_back(place);
    }
    read<T, shape><<<1, kSamples>>>(texture, buffers.samples, buffers.results);
    CHECK(hipDeviceSynchronize() == hipSuccess)
    for(int n = 0; n < kSamples; ++n)
        for(int channel = 0; channel < channels; ++channel)
            compare(channel_of(buffers.results[n], channel), model.read({places[n][0], places[n][1], places[n][2]}, axes, channel));
}

template <typename T, Shape shape>
static void test(const Kind& kind, int channels, hipTextureAddressMode address, bool linear, bool normalized)
{
    constexpr bool row = shape == Shape::Row || shape == Shape::Rows, flat = shape == Shape::Row || shape == Shape::Plane;
    constexpr bool layered = shape == Shape::Rows || shape == Shape::Planes;
    Model model{{kWidth, row ? 1 : kHeight, flat ? 1 : kDepth}, {}, linear, normalized, address};
    const auto memory = fill(model, kind, channels);
    hipArray_t array;
    const hipChannelFormatDesc channel = format(kind, channels);
    const hipExtent extent = make_hipExtent(kWidth, row ? 0 : kHeight, flat ? 0 : kDepth);
    CHECK(hipMalloc3DArray(&array, &channel, extent, layered ? hipArrayLayered : hipArrayDefault) == hipSuccess)
    hipMemcpy3DParms copy{};
    const size_t pitch = memory.size() / (model.size[1] * model.size[2]);
    copy.srcPtr        = make_hipPitchedPtr(const_cast<unsigned char*>(memory.data()), pitch, kWidth, model.size[1]);
    copy.dstArray      = array;
    copy.extent        = make_hipExtent(kWidth, model.size[1], model.size[2]);
    copy.kind          = hipMemcpyHostToDevice;
    CHECK(hipMemcpy3D(&copy) == hipSuccess)
    hipResourceDesc resource{};
    resource.resType         = hipResourceTypeArray;
    resource.res.array.array = array;
    const hipTextureDesc description = sampling(model, kind);
    hipTextureObject_t texture;
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0) == hipSuccess)
    const hipError_t created = hipCreateTextureObject(&texture, &resource, &description, nullptr);
    const bool refused = linear && !flat && properties.major == 9;
    CHECK(created == (refused ? hipErrorNotSupported : hipSuccess))
    if(created == hipSuccess)
    {
        // Coordinates of elements are clamped where normalised ones would be wrapped or mirrored.
        if(!normalized && address != hipAddressModeBorder)
            model.address = hipAddressModeClamp;
        check<T, shape>(texture, model, channels);
        CHECK(hipDestroyTextureObject(texture) == hipSuccess)
        CHECK(hipDestroyTextureObject(texture) != hipSuccess)
    }
    CHECK(hipFreeArray(array) == hipSuccess)
}

constexpr Kind kFloat{hipChannelFormatKindFloat, 32, true}, kHalf{hipChannelFormatKindFloat, 16, true};
constexpr Kind kUchar{hipChannelFormatKindUnsigned, 8, true}, kChar{hipChannelFormatKindSigned, 8, true};
constexpr Kind kUshort{hipChannelFormatKindUnsigned, 16, true}, kShort{hipChannelFormatKindSigned, 16, true};

static void arrays()
{
    constexpr hipTextureAddressMode modes[] = {hipAddressModeWrap, hipAddressModeClamp, hipAddressModeMirror, hipAddressModeBorder};
    for(const auto mode : modes)
        for(const bool linear : {false, true})
            for(const bool normalized : {false, true})
            {
                test<float4, Shape::Row>(kFloat, 2, mode, linear, normalized);
                test<float4, Shape::Plane>(kFloat, 4, mode, linear, normalized);
                test<float4, Shape::Space>(kFloat, 1, mode, linear, normalized);
                test<float4, Shape::Rows>(kHalf, 1, mode, linear, normalized);
                test<float4, Shape::Planes>(kUchar, 4, mode, linear, normalized);
            }
    for(const Kind& kind : {kHalf, kUchar, kChar, kUshort, kShort})
        for(const int channels : {1, 2, 4})
            test<float4, Shape::Plane>(kind, channels, hipAddressModeMirror, true, true);
    test<float, Shape::Plane>(kShort, 1, hipAddressModeClamp, true, false);
    test<uchar4, Shape::Plane>({hipChannelFormatKindUnsigned, 8, false}, 4, hipAddressModeWrap, false, true);
    test<short2, Shape::Plane>({hipChannelFormatKindSigned, 16, false}, 2, hipAddressModeBorder, false, false);
    test<int, Shape::Row>({hipChannelFormatKindSigned, 32, false}, 1, hipAddressModeClamp, false, false);
    test<unsigned, Shape::Space>({hipChannelFormatKindUnsigned, 32, false}, 1, hipAddressModeBorder, false, true);
}

static hipResourceDesc pitched(void* memory, const Kind& kind, int channels, size_t pitch)
{
    hipResourceDesc resource{};
    resource.resType                  = hipResourceTypePitch2D;
    resource.res.pitch2D.devPtr       = memory;
    resource.res.pitch2D.desc         = format(kind, channels);
    resource.res.pitch2D.width        = kWidth;
    resource.res.pitch2D.height       = kHeight;
    resource.res.pitch2D.pitchInBytes = pitch;
    return resource;
}

// Pitched memory, four texels at a time, and the functions that name a level.
static void pitched_memory()
{
    Model model{{kWidth, kHeight, 1}, {}, true, true, hipAddressModeWrap};
    const auto values = fill(model, kFloat, 2);
    char* memory;
    size_t pitch;
    CHECK(hipMallocPitch(&memory, &pitch, kWidth * 8, kHeight) == hipSuccess)
    CHECK(hipMemcpy2D(memory, pitch, values.data(), kWidth * 8, kWidth * 8, kHeight, hipMemcpyHostToDevice) == hipSuccess)
    hipResourceDesc resource   = pitched(memory, kFloat, 2, pitch);
    hipTextureDesc description = sampling(model, kFloat);
    hipTextureObject_t texture;
    CHECK(hipCreateTextureObject(&texture, &resource, &description, nullptr) == hipSuccess)
    check<float4, Shape::Plane>(texture, model, 2);
    Buffers<float4> buffers;
    int* same;
    CHECK(hipMallocManaged(&same, kSamples * sizeof(int)) == hipSuccess)
    std::vector<std::array<double, 3>> places;
    for(int n = 0; n < kSamples; ++n)
    {
        float exact[3];
        buffers.samples[n]       = draw_sample(model, exact);
        buffers.samples[n].layer = n;
        places.push_back({exact[0], exact[1], 0});
    }
    levels<<<1, kSamples>>>(texture, buffers.samples, buffers.results, same);
    CHECK(hipDeviceSynchronize() == hipSuccess)
    for(int n = 0; n < kSamples; ++n)
    {
        compare(channel_of(buffers.results[n], 1), model.read({places[n][0], places[n][1], 0}, 2, 1));
        CHECK(same[n])
    }
    gather<<<1, kSamples>>>(texture, buffers.samples, buffers.results);
    CHECK(hipDeviceSynchronize() == hipSuccess)
    for(int n = 0; n < kSamples; ++n)
    {
        const int x = static_cast<int>(std::floor(model.place(places[n][0], 0) - 0.5));
        const int y = static_cast<int>(std::floor(model.place(places[n][1], 1) - 0.5));
        const int corners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
        for(int corner = 0; corner < 4; ++corner)
            compare(channel_of(buffers.results[n], corner), model.at({x + corners[corner][0], y + corners[corner][1], 0}, n & 1));
    }
    hipResourceDesc kept{};
    hipTextureDesc kept_description{};
    hipResourceViewDesc view{};
    CHECK(hipGetTextureObjectResourceDesc(&kept, texture) == hipSuccess && kept.res.pitch2D.pitchInBytes == pitch)
    CHECK(hipGetTextureObjectTextureDesc(&kept_description, texture) == hipSuccess && kept_description.normalizedCoords == 1)
    CHECK(hipGetTextureObjectResourceViewDesc(&view, texture) == hipSuccess && view.format == hipResViewFormatNone)
    CHECK(hipDestroyTextureObject(texture) == hipSuccess)
    // What cannot be sampled.
    resource.res.pitch2D.pitchInBytes = pitch - 8;
    CHECK(hipCreateTextureObject(&texture, &resource, &description, nullptr) == hipErrorInvalidValue)
    resource                  = pitched(memory + 8, kFloat, 2, pitch);
    CHECK(hipCreateTextureObject(&texture, &resource, &description, nullptr) == hipErrorInvalidValue)
    resource                  = pitched(memory, kFloat, 3, pitch);
    CHECK(hipCreateTextureObject(&texture, &resource, &description, nullptr) == hipErrorInvalidValue)
    resource                  = pitched(memory, {hipChannelFormatKindSigned, 32, false}, 2, pitch);
    CHECK(hipCreateTextureObject(&texture, &resource, &description, nullptr) == hipErrorInvalidValue)
    resource                  = pitched(memory, kFloat, 2, pitch);
    description.maxAnisotropy = 4;
    CHECK(hipCreateTextureObject(&texture, &resource, &description, nullptr) == hipErrorNotSupported)
    description.maxAnisotropy = 0;
    resource.resType          = hipResourceTypeMipmappedArray;
    CHECK(hipCreateTextureObject(&texture, &resource, &description, nullptr) == hipErrorNotSupported)
    (void)hipFree(memory);
    (void)hipFree(same);
}

// Linear memory is read by number; outside lie zeros, inside of the allocation or not.
static void linear_memory()
{
    Model model{{100, 1, 1}, {}, false, false, hipAddressModeBorder};
    const auto values = fill(model, kUchar, 4);
    char* memory;
    CHECK(hipMalloc(&memory, values.size()) == hipSuccess)
    CHECK(hipMemcpy(memory, values.data(), values.size(), hipMemcpyHostToDevice) == hipSuccess)
    hipResourceDesc resource{};
    resource.resType                = hipResourceTypeLinear;
    resource.res.linear.devPtr      = memory;
    resource.res.linear.desc        = hipCreateChannelDesc<uchar4>();
    resource.res.linear.sizeInBytes = 90 * 4;
    const hipTextureDesc description = sampling(model, kUchar);
    hipTextureObject_t texture;
    CHECK(hipCreateTextureObject(&texture, &resource, &description, nullptr) == hipSuccess)
    Buffers<float4> buffers;
    fetch<<<1, kSamples>>>(texture, -10, buffers.results);
    CHECK(hipDeviceSynchronize() == hipSuccess)
    for(int n = 0; n < kSamples; ++n)
        for(int channel = 0; channel < 4; ++channel)
            compare(channel_of(buffers.results[n], channel), n < 10 || n >= 100 ? 0 : model.at({n - 10, 0, 0}, channel));
    CHECK(hipDestroyTextureObject(texture) == hipSuccess)
    resource.res.linear.sizeInBytes = values.size() + 4;
    CHECK(hipCreateTextureObject(&texture, &resource, &description, nullptr) == hipErrorInvalidValue)
    (void)hipFree(memory);
}

texture<float, hipTextureType1D, hipReadModeElementType> numbers;
texture<uchar4, hipTextureType2D, hipReadModeNormalizedFloat> picture;

__global__ void read_references(float* results, float4* colours)
{
    const int n = static_cast<int>(threadIdx.x);
    results[n]  = tex1Dfetch(numbers, n);
    colours[n]  = tex2D(picture, n % kWidth + 0.25f, n / kWidth + 0.75f);
}

// Variables of the program to which memory is bound.
static void references()
{
    Model row{{kSamples, 1, 1}, {}, false, false, hipAddressModeClamp}, plane{{kWidth, kHeight, 1}, {}, false, false, hipAddressModeClamp};
    const auto values = fill(row, kFloat, 1), pixels = fill(plane, kUchar, 4);
    float *memory, *results;
    float4* colours;
    CHECK(hipMalloc(&memory, values.size()) == hipSuccess)
    CHECK(hipMallocManaged(&results, kSamples * sizeof(float)) == hipSuccess)
    CHECK(hipMallocManaged(&colours, kSamples * sizeof(float4)) == hipSuccess)
    CHECK(hipMemcpy(memory, values.data(), values.size(), hipMemcpyHostToDevice) == hipSuccess)
    hipArray_t array;
    CHECK(hipMallocArray(&array, &picture.channelDesc, kWidth, kHeight) == hipSuccess)
    CHECK(hipMemcpyToArray(array, 0, 0, pixels.data(), pixels.size(), hipMemcpyHostToDevice) == hipSuccess)
    CHECK(hipBindTexture(nullptr, numbers, memory) == hipSuccess)
    CHECK(hipBindTextureToArray(picture, array) == hipSuccess)
    size_t offset = 1;
    CHECK(hipGetTextureAlignmentOffset(&offset, &numbers) == hipSuccess && offset == 0)
    read_references<<<1, kSamples>>>(results, colours);
    CHECK(hipDeviceSynchronize() == hipSuccess)
    for(int n = 0; n < kSamples; ++n)
    {
        compare(results[n], row.at({n, 0, 0}, 0));
        const int y = std::min(n / kWidth, kHeight - 1);
        compare(colours[n].z, plane.at({n % kWidth, y, 0}, 2));
    }
    CHECK(hipUnbindTexture(numbers) == hipSuccess)
    CHECK(hipUnbindTexture(picture) == hipSuccess)
    CHECK(hipFreeArray(array) == hipSuccess)
    // Pitched memory, in place of the array.
    char* rows;
    size_t pitch;
    CHECK(hipMallocPitch(&rows, &pitch, kWidth * 4, kHeight) == hipSuccess)
    CHECK(hipMemset2D(rows, pitch, 51, kWidth * 4, kHeight) == hipSuccess)
    CHECK(hipBindTexture(nullptr, numbers, memory, values.size()) == hipSuccess)
    CHECK(hipBindTexture2D(&offset, picture, rows, kWidth, kHeight, pitch) == hipSuccess)
    read_references<<<1, kSamples>>>(results, colours);
    CHECK(hipDeviceSynchronize() == hipSuccess)
    for(int n = 0; n < kSamples; ++n)
        compare(colours[n].x, 0.2);
    CHECK(hipUnbindTexture(numbers) == hipSuccess)
    CHECK(hipUnbindTexture(picture) == hipSuccess)
    (void)hipFree(rows);
    (void)hipFree(memory);
    (void)hipFree(results);
    (void)hipFree(colours);
}

// An array of two floats, seen as unsigned integers.
static void views()
{
    Model model{{kWidth, kHeight, 1}, {}, false, false, hipAddressModeClamp};
    const auto values = fill(model, {hipChannelFormatKindUnsigned, 16, false}, 2);
    hipArray_t array;
    const hipChannelFormatDesc one = hipCreateChannelDesc<float>();
    CHECK(hipMallocArray(&array, &one, kWidth, kHeight) == hipSuccess)
    CHECK(hipMemcpy2DToArray(array, 0, 0, values.data(), kWidth * 4, kWidth * 4, kHeight, hipMemcpyHostToDevice) == hipSuccess)
    hipResourceDesc resource{};
    resource.resType         = hipResourceTypeArray;
    resource.res.array.array = array;
    hipResourceViewDesc view{};
    view.format = hipResViewFormatSignedShort2;
    for(double& value : model.values)
        value = value < 32768 ? value : value - 65536;
    const hipTextureDesc description = sampling(model, {hipChannelFormatKindSigned, 16, false});
    hipTextureObject_t texture;
    CHECK(hipCreateTextureObject(&texture, &resource, &description, &view) == hipSuccess)
    check<short2, Shape::Plane>(texture, model, 2);
    CHECK(hipDestroyTextureObject(texture) == hipSuccess)
    view.format = hipResViewFormatUnsignedChar1;
    CHECK(hipCreateTextureObject(&texture, &resource, &description, &view) == hipErrorInvalidValue)
    CHECK(hipFreeArray(array) == hipSuccess)
}

int main()
{
    int images = 0;
    CHECK(hipDeviceGetAttribute(&images, hipDeviceAttributeImageSupport, 0) == hipSuccess && images == 1)
    arrays();
    pitched_memory();
    linear_memory();
    references();
    views();
    printf("%d failed, %d wrong%s\n", failed, wrong, compared > 20000 ? "" : ", too few compared");
    return failed + wrong != 0;
}
