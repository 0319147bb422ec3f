// SPDX-License-Identifier: MIT
// hiprtc: it writes what is to be compiled into a folder and starts Python there, which leaves the code, the
// log and the names of kernels in the same folder (cklang/emulator/hipcc/hiprtc/compile.py). CKLANG_PYTHON is the
// interpreter that built the program. No C++ library: the object becomes part of any program.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hip/hiprtc.h>
#include <hip/hip_runtime_api.h>

namespace {

struct Text
{
    char* data;
    size_t size;
};

} // namespace

struct _hiprtcProgram
{
    char folder[64];
    Text code, log, names; /* names: the lowered one of each expression, a line each */
    char** expressions;
    int count, compiled;
};

namespace {

hiprtcResult write_text(const char* folder, const char* name, const char* text, const char* mode)
{
    char path[512];
    if((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return HIPRTC_ERROR_INVALID_INPUT;
    FILE* file = fopen(path, mode);
    if(file == NULL)
        return HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
    fputs(text, file);
    return fclose(file) == 0 ? HIPRTC_SUCCESS : HIPRTC_ERROR_INTERNAL_ERROR;
}

/* The contents of a file, with a 0 behind them; nothing if there is none. */
Text read_text(const char* folder, const char* name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    Text text  = {(char*)calloc(1, 1), 0};
    FILE* file = fopen(path, "rb");
    if(file == NULL)
        return text;
    fseek(file, 0, SEEK_END);
    text.size = (size_t)ftell(file);
    rewind(file);
    free(text.data);
    text.data = (char*)calloc(1, text.size + 1);
    text.size = fread(text.data, 1, text.size, file);
    fclose(file);
    return text;
}

int run(const char* folder)
{
    char* const words[] = {(char*)CKLANG_PYTHON, (char*)"-m", (char*)"cklang.emulator.hipcc.hiprtc.compile", (char*)folder, NULL};
    pid_t child;
    int status = 1;
    if(posix_spawn(&child, words[0], NULL, NULL, words, environ) != 0)
        return 1;
    while(waitpid(child, &status, 0) < 0)
        ;
    return status;
}

} // namespace

const char* hiprtcGetErrorString(hiprtcResult result)
{
    static const struct
    {
        hiprtcResult result;
        const char* text;
    } names[] = {
#define NAME(result) {result, #result}
        NAME(HIPRTC_SUCCESS),
        NAME(HIPRTC_ERROR_OUT_OF_MEMORY),
        NAME(HIPRTC_ERROR_PROGRAM_CREATION_FAILURE),
        NAME(HIPRTC_ERROR_INVALID_INPUT),
        NAME(HIPRTC_ERROR_INVALID_PROGRAM),
        NAME(HIPRTC_ERROR_INVALID_OPTION),
        NAME(HIPRTC_ERROR_COMPILATION),
        NAME(HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE),
        NAME(HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION),
        NAME(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION),
        NAME(HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID),
        NAME(HIPRTC_ERROR_INTERNAL_ERROR),
        NAME(HIPRTC_ERROR_LINKING),
#undef NAME
    };
    for(size_t n = 0; n < sizeof names / sizeof *names; ++n)
        if(names[n].result == result)
            return names[n].text;
    return "HIPRTC_ERROR_UNKNOWN";
}

hiprtcResult hiprtcVersion(int* major, int* minor)
{
    if(major == NULL || minor == NULL)
        return HIPRTC_ERROR_INVALID_INPUT;
    *major = 9, *minor = 0;
    return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcCreateProgram(hiprtcProgram* program, const char* source, const char* name, int header_count,
                                 const char* const* headers, const char* const* header_names)
{
    if(program == NULL || source == NULL || header_count < 0 || (header_count && (!headers || !header_names)))
        return HIPRTC_ERROR_INVALID_INPUT;
    hiprtcProgram made   = (hiprtcProgram)calloc(1, sizeof *made);
    const char* where    = getenv("TMPDIR");
    const int length     = snprintf(made->folder, sizeof made->folder, "%s/hiprtc-XXXXXX", where ? where : "/tmp");
    hiprtcResult problem = HIPRTC_SUCCESS;
    if(length < 0 || (size_t)length >= sizeof made->folder || mkdtemp(made->folder) == NULL)
    {
        free(made);
        return HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
    }
    *program = made;
    problem  = write_text(made->folder, "source", source, "w");
    if(problem == HIPRTC_SUCCESS)
        problem = write_text(made->folder, "name", name ? name : "program.hip", "w");
    for(int n = 0; n < header_count && problem == HIPRTC_SUCCESS; ++n)
    {
        char file[32];
        snprintf(file, sizeof file, "header-%d", n);
        problem = write_text(made->folder, file, headers[n], "w");
        if(problem == HIPRTC_SUCCESS)
            problem = write_text(made->folder, "headers", header_names[n], "a");
        if(problem == HIPRTC_SUCCESS)
            problem = write_text(made->folder, "headers", "\n", "a");
    }
    return problem;
}

hiprtcResult hiprtcDestroyProgram(hiprtcProgram* program)
{
    if(program == NULL || *program == NULL)
        return HIPRTC_ERROR_INVALID_INPUT;
    hiprtcProgram gone = *program;
    write_text(gone->folder, "remove", "", "w"); /* asks for the folder to be removed */
    run(gone->folder);
    free(gone->code.data), free(gone->log.data), free(gone->names.data);
    for(int n = 0; n < gone->count; ++n)
        free(gone->expressions[n]);
    free(gone->expressions);
    free(gone);
    *program = NULL;
    return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcAddNameExpression(hiprtcProgram program, const char* expression)
{
    if(program == NULL || expression == NULL)
        return HIPRTC_ERROR_INVALID_INPUT;
    if(program->compiled)
        return HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    const size_t room    = (size_t)(program->count + 1) * sizeof(char*);
    program->expressions = (char**)realloc(program->expressions, room);
    program->expressions[program->count++] = strdup(expression);
    const hiprtcResult problem = write_text(program->folder, "expressions", expression, "a");
    return problem == HIPRTC_SUCCESS ? write_text(program->folder, "expressions", "\n", "a") : problem;
}

hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int option_count, const char* const* options)
{
    if(program == NULL || option_count < 0 || (option_count && options == NULL))
        return HIPRTC_ERROR_INVALID_INPUT;
    hipDeviceProp_t properties;
    int device = 0;
    if(hipGetDevice(&device) != hipSuccess || hipGetDeviceProperties(&properties, device) != hipSuccess)
        return HIPRTC_ERROR_INTERNAL_ERROR;
    hiprtcResult problem = write_text(program->folder, "arch", properties.gcnArchName, "w");
    for(int n = 0; n < option_count && problem == HIPRTC_SUCCESS; ++n)
    {
        problem = write_text(program->folder, "options", options[n], n ? "a" : "w");
        if(problem == HIPRTC_SUCCESS)
            problem = write_text(program->folder, "options", "\n", "a");
    }
    if(problem != HIPRTC_SUCCESS)
        return problem;
    free(program->code.data), free(program->log.data), free(program->names.data);
    const int status  = run(program->folder);
    program->code     = read_text(program->folder, "code");
    program->log      = read_text(program->folder, "log");
    program->names    = read_text(program->folder, "names");
    program->compiled = status == 0;
    return status == 0 ? HIPRTC_SUCCESS : HIPRTC_ERROR_COMPILATION;
}

hiprtcResult hiprtcGetLoweredName(hiprtcProgram program, const char* expression, const char** name)
{
    if(program == NULL || expression == NULL || name == NULL)
        return HIPRTC_ERROR_INVALID_INPUT;
    if(!program->compiled)
        return HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    const char* line = program->names.data; /* each ends with a 0 */
    for(int n = 0; n < program->count; ++n, line += strlen(line) + 1)
    {
        if(strcmp(program->expressions[n], expression) != 0)
            continue;
        *name = line;
        return HIPRTC_SUCCESS;
    }
    return HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

/* Sizes of text count the 0 behind it. */
hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram program, size_t* size)
{
    if(program == NULL || size == NULL)
        return HIPRTC_ERROR_INVALID_INPUT;
    *size = program->log.size + 1;
    return HIPRTC_SUCCESS;
}
hiprtcResult hiprtcGetProgramLog(hiprtcProgram program, char* log)
{
    if(program == NULL || log == NULL)
        return HIPRTC_ERROR_INVALID_INPUT;
    memcpy(log, program->log.data ? program->log.data : "", program->log.size + 1);
    return HIPRTC_SUCCESS;
}
hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, size_t* size)
{
    if(program == NULL || size == NULL || !program->compiled)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    *size = program->code.size;
    return HIPRTC_SUCCESS;
}
hiprtcResult hiprtcGetCode(hiprtcProgram program, char* code)
{
    if(program == NULL || code == NULL || !program->compiled)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    memcpy(code, program->code.data, program->code.size);
    return HIPRTC_SUCCESS;
}
