// SPDX-License-Identifier: MIT
// Runs one of the instances that CK Tile's generator writes, UNIT, whose traits are TRAITS, on arrays
// in files. The folder given has `problem`, lines of a name and a number, and a file of raw elements
// for each array; `o` and, if they are there, `lse` and `random` are written.
#include UNIT

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace {

void must(hipError_t status, const char* what)
{
    if(status == hipSuccess)
        return;
    std::fprintf(stderr, "%s: %s\n", what, hipGetErrorString(status));
    std::exit(1);
}

/// A file's bytes on the device; null if there is no such file.
struct Array
{
    std::string path;
    std::vector<char> bytes;
    void* device = nullptr;

    explicit Array(const std::string& path_) : path(path_)
    {
        std::ifstream file(path, std::ios::binary);
        if(!file)
            return;
        bytes.assign(std::istreambuf_iterator<char>(file), {});
        must(hipMalloc(&device, bytes.size() + 1), "hipMalloc");
        must(hipMemcpy(device, bytes.data(), bytes.size(), hipMemcpyHostToDevice), "hipMemcpy");
    }

    void write()
    {
        if(!device)
            return;
        must(hipMemcpy(bytes.data(), device, bytes.size(), hipMemcpyDeviceToHost), "hipMemcpy");
        std::ofstream(path, std::ios::binary).write(bytes.data(), bytes.size());
    }
};

} // namespace

int main(int, char** argv)
{
    const std::string folder = std::string(argv[1]) + "/";
    std::map<std::string, double> given;
    std::ifstream problem(folder + "problem");
    for(std::string name; problem >> name;)
        problem >> given[name];
    const auto number = [&](const char* name) { return static_cast<int>(given.at(name)); };
    const auto real   = [&](const char* name) { return static_cast<float>(given.at(name)); };

    Array q(folder + "q"), k(folder + "k"), v(folder + "v"), o(folder + "o");
    Array bias(folder + "bias"), lse(folder + "lse"), random(folder + "random");
    Array starts_q(folder + "starts_q"), starts_k(folder + "starts_k");

    // Arrays are [batch, head, row, element], packed ones [head, row, element].
    fmha_fwd_args a{};
    a.q_ptr          = q.device;
    a.k_ptr          = k.device;
    a.v_ptr          = v.device;
    a.o_ptr          = o.device;
    a.bias_ptr       = bias.device;
    a.lse_ptr        = lse.device;
    a.rand_val_ptr   = random.device;
    a.seqstart_q_ptr = starts_q.device;
    a.seqstart_k_ptr = starts_k.device;

    const int rows = number("rows"), keys = number("keys"); // of an array
    a.seqlen_q     = rows;
    a.seqlen_k     = keys;
    a.batch        = number("batch");
    a.max_seqlen_q = number("longest");
    a.hdim_q       = number("hdim_q");
    a.hdim_v       = number("hdim_v");
    a.nhead_q      = number("heads");
    a.nhead_k      = number("kv_heads");

    a.scale_s         = real("scale");
    a.scale_p         = real("scale_p");
    a.scale_o         = real("scale_o");
    a.logits_soft_cap = real("soft_cap");

    a.stride_q             = a.hdim_q;
    a.stride_k             = a.hdim_q;
    a.stride_v             = a.hdim_v;
    a.stride_o             = a.hdim_v;
    a.stride_randval       = keys;
    a.nhead_stride_q       = rows * a.hdim_q;
    a.nhead_stride_k       = keys * a.hdim_q;
    a.nhead_stride_v       = keys * a.hdim_v;
    a.nhead_stride_o       = rows * a.hdim_v;
    a.nhead_stride_lse     = rows;
    a.nhead_stride_randval = rows * keys;
    a.batch_stride_q       = a.nhead_q * a.nhead_stride_q;
    a.batch_stride_k       = a.nhead_k * a.nhead_stride_k;
    a.batch_stride_v       = a.nhead_k * a.nhead_stride_v;
    a.batch_stride_o       = a.nhead_q * a.nhead_stride_o;
    a.batch_stride_lse     = a.nhead_q * a.nhead_stride_lse;
    a.batch_stride_randval = a.nhead_q * a.nhead_stride_randval;
    // A bias is [batch, head, row, key]; slopes of ALiBi are [batch, head].
    const bool slopes   = number("slopes");
    a.stride_bias       = slopes ? a.nhead_q : keys;
    a.nhead_stride_bias = rows * keys;
    a.batch_stride_bias = a.nhead_q * a.nhead_stride_bias;

    a.window_size_left  = number("left");
    a.window_size_right = number("right");
    a.mask_type         = number("mask"); // 0 none, 1 from the top left, 2 from the bottom right

    a.p_drop           = real("dropout");
    a.s_randval        = random.device != nullptr;
    a.drop_seed_offset = std::pair<uint64_t, uint64_t>(number("seed"), number("offset"));

    fmha_fwd_<TRAITS, ck_tile::gfx9_t>(ck_tile::stream_config{}, a);
    must(hipDeviceSynchronize(), "the kernel");
    o.write();
    lse.write();
    random.write();
}
