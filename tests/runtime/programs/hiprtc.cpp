// SPDX-License-Identifier: MIT
// Compiles kernels while it runs; prints what went wrong.
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

static int failures = 0;
static void check(const char* what, bool right)
{
    if(!right)
        ++failures, std::printf("FAILED: %s\n", what);
}

static const char* const source = R"(
#include "factor.h"
__constant__ int added = 5;
namespace n {
template <class T> __global__ void scale(T* x) { x[threadIdx.x] = x[threadIdx.x] * FACTOR * TWICE + added; }
}
extern "C" __global__ void plain(int* x) { x[0] = 77; }
)";

int main()
{
    const char *header = "#define FACTOR 3\n", *name = "factor.h", *options[] = {"-DTWICE=2", "-O2"};
    hiprtcProgram program;
    int major = 0, minor = 0;
    check("version", hiprtcVersion(&major, &minor) == HIPRTC_SUCCESS && major == 9);
    check("create", hiprtcCreateProgram(&program, source, "my.cu", 1, &header, &name) == HIPRTC_SUCCESS);
    check("expression", hiprtcAddNameExpression(program, "n::scale<int>") == HIPRTC_SUCCESS);
    check("variable", hiprtcAddNameExpression(program, "added") == HIPRTC_SUCCESS);
    const char* lowered = nullptr;
    check("early", hiprtcGetLoweredName(program, "added", &lowered) ==
                       HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
    const hiprtcResult result = hiprtcCompileProgram(program, 2, options);
    size_t size               = 0;
    hiprtcGetProgramLogSize(program, &size);
    std::string log(size, ' ');
    hiprtcGetProgramLog(program, log.data());
    if(result != HIPRTC_SUCCESS)
        return std::printf("FAILED: %s\n%s", hiprtcGetErrorString(result), log.c_str()), 1;
    hiprtcGetCodeSize(program, &size);
    std::vector<char> code(size);
    hiprtcGetCode(program, code.data());

    hipModule_t module;
    hipFunction_t function;
    int *x, host[64];
    check("load", hipModuleLoadData(&module, code.data()) == hipSuccess);
    check("name", hiprtcGetLoweredName(program, "n::scale<int>", &lowered) == HIPRTC_SUCCESS);
    check("function", hipModuleGetFunction(&function, module, lowered) == hipSuccess);
    (void)hipMallocManaged(reinterpret_cast<void**>(&x), sizeof host);
    for(int n = 0; n < 64; ++n)
        x[n] = n;
    void* arguments[] = {&x};
    check("launch", hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr) == hipSuccess);
    (void)hipDeviceSynchronize();
    check("result", x[10] == 65);
    hipDeviceptr_t variable;
    check("lowered variable", hiprtcGetLoweredName(program, "added", &lowered) == HIPRTC_SUCCESS);
    check("global", hipModuleGetGlobal(&variable, &size, module, lowered) == hipSuccess && size == 4);
    check("plain", hipModuleGetFunction(&function, module, "plain") == hipSuccess);
    check("unknown", hiprtcGetLoweredName(program, "n::scale<float>", &lowered) == HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
    check("destroy", hiprtcDestroyProgram(&program) == HIPRTC_SUCCESS && program == nullptr);

    hiprtcCreateProgram(&program, "__global__ void k() { wrong; }", "bad.cu", 0, nullptr, nullptr);
    check("refused", hiprtcCompileProgram(program, 0, nullptr) == HIPRTC_ERROR_COMPILATION);
    hiprtcGetProgramLogSize(program, &size);
    log.assign(size, ' ');
    hiprtcGetProgramLog(program, log.data());
    check("log", std::strstr(log.c_str(), "bad.cu:1:23: error: use of undeclared identifier 'wrong'") != nullptr);
    if(failures != 0)
        std::printf("%s\n", log.c_str());
    hiprtcDestroyProgram(&program);
    std::printf("%d failed\n", failures);
    return failures != 0;
}
