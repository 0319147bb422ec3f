// SPDX-License-Identifier: MIT
//
// hiprtc: it writes what is to be compiled into a folder and starts Python there, which leaves the code, the
// log and the names of kernels in the same folder (cklang/emulator/hipcc/hiprtc/compile.py).
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hip/hip_types.h"

/// Where `cklang hipcc` has built the program: the interpreter that did.
extern "C" const char cklang_python[] __attribute__((weak));

namespace ckemu {

// clang-format off
#define CKEMU_HIPRTC(X) \
  X(HIPRTC_SUCCESS, 0) \
  X(HIPRTC_ERROR_OUT_OF_MEMORY, 1) \
  X(HIPRTC_ERROR_PROGRAM_CREATION_FAILURE, 2) \
  X(HIPRTC_ERROR_INVALID_INPUT, 3) \
  X(HIPRTC_ERROR_INVALID_PROGRAM, 4) \
  X(HIPRTC_ERROR_INVALID_OPTION, 5) \
  X(HIPRTC_ERROR_COMPILATION, 6) \
  X(HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7) \
  X(HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION, 8) \
  X(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, 9) \
  X(HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID, 10) \
  X(HIPRTC_ERROR_INTERNAL_ERROR, 11) \
  X(HIPRTC_ERROR_LINKING, 100)
// clang-format on
#define CKEMU_RESULT(name, number) name = number,
enum hiprtcResult : int { CKEMU_HIPRTC(CKEMU_RESULT) };
#undef CKEMU_RESULT

extern "C" {
hipError_t hipGetDevice(int*);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProperties*, int);
}

namespace {

struct Contents {
  char* data;
  size_t size;
};

}  // namespace

struct RtcProgram {
  char folder[64];
  Contents code, log, names; /* names: the lowered one of each expression, a line each */
  char** expressions;
  int count, compiled;
};

namespace {

hiprtcResult write_text(const char* folder, const char* name, const char* text, const char* mode) {
  char path[512];
  if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) return HIPRTC_ERROR_INVALID_INPUT;
  FILE* file = fopen(path, mode);
  if (file == NULL) return HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
  fputs(text, file);
  return fclose(file) == 0 ? HIPRTC_SUCCESS : HIPRTC_ERROR_INTERNAL_ERROR;
}

/* The contents of a file, with a 0 behind them; nothing if there is none. */
Contents read_text(const char* folder, const char* name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  Contents text = {(char*)calloc(1, 1), 0};
  FILE* file = fopen(path, "rb");
  if (file == NULL) return text;
  fseek(file, 0, SEEK_END);
  text.size = (size_t)ftell(file);
  rewind(file);
  free(text.data);
  text.data = (char*)calloc(1, text.size + 1);
  text.size = fread(text.data, 1, text.size, file);
  fclose(file);
  return text;
}

int remove_one(const char* path, const struct stat*, int, FTW*) { return remove(path); }
void remove_folder(const char* folder) { nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* The interpreter that CKLANG_PYTHON names, or the one that built the program. */
const char* interpreter() {
  const char* named = getenv("CKLANG_PYTHON");
  return named != NULL ? named : cklang_python;
}

int run(const char* folder) {
  char* const words[] = {(char*)interpreter(), (char*)"-m", (char*)"cklang.emulator.hipcc.hiprtc.compile",
                         (char*)folder, NULL};
  pid_t child;
  int status = 1;
  if (posix_spawn(&child, words[0], NULL, NULL, words, environ) != 0) return 1;
  while (waitpid(child, &status, 0) < 0);
  return status;
}

}  // namespace

CKEMU_EXPORT const char* hiprtcGetErrorString(hiprtcResult result) {
  static constexpr struct {
    hiprtcResult result;
    const char* text;
  } names[] = {
#define CKEMU_RESULT(name, number) {name, #name},
      CKEMU_HIPRTC(CKEMU_RESULT)
#undef CKEMU_RESULT
  };
  for (size_t n = 0; n < sizeof names / sizeof *names; ++n)
    if (names[n].result == result) return names[n].text;
  return "HIPRTC_ERROR_UNKNOWN";
}

CKEMU_EXPORT hiprtcResult hiprtcVersion(int* major, int* minor) {
  if (major == NULL || minor == NULL) return HIPRTC_ERROR_INVALID_INPUT;
  *major = 9, *minor = 0;
  return HIPRTC_SUCCESS;
}

CKEMU_EXPORT hiprtcResult hiprtcCreateProgram(RtcProgram** program, const char* source, const char* name,
                                              int header_count, const char* const* headers,
                                              const char* const* header_names) {
  if (program == NULL || source == NULL || header_count < 0 || (header_count && (!headers || !header_names)))
    return HIPRTC_ERROR_INVALID_INPUT;
  RtcProgram* made = (RtcProgram*)calloc(1, sizeof *made);
  const char* where = getenv("TMPDIR");
  const int length = snprintf(made->folder, sizeof made->folder, "%s/hiprtc-XXXXXX", where ? where : "/tmp");
  hiprtcResult problem = HIPRTC_SUCCESS;
  if (length < 0 || (size_t)length >= sizeof made->folder || mkdtemp(made->folder) == NULL) {
    free(made);
    return HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
  }
  *program = made;
  problem = write_text(made->folder, "source", source, "w");
  if (problem == HIPRTC_SUCCESS) problem = write_text(made->folder, "name", name ? name : "program.hip", "w");
  for (int n = 0; n < header_count && problem == HIPRTC_SUCCESS; ++n) {
    char file[32];
    snprintf(file, sizeof file, "header-%d", n);
    problem = write_text(made->folder, file, headers[n], "w");
    if (problem == HIPRTC_SUCCESS) problem = write_text(made->folder, "headers", header_names[n], "a");
    if (problem == HIPRTC_SUCCESS) problem = write_text(made->folder, "headers", "\n", "a");
  }
  return problem;
}

CKEMU_EXPORT hiprtcResult hiprtcDestroyProgram(RtcProgram** program) {
  if (program == NULL || *program == NULL) return HIPRTC_ERROR_INVALID_INPUT;
  RtcProgram* gone = *program;
  remove_folder(gone->folder);
  free(gone->code.data), free(gone->log.data), free(gone->names.data);
  for (int n = 0; n < gone->count; ++n) free(gone->expressions[n]);
  free(gone->expressions);
  free(gone);
  *program = NULL;
  return HIPRTC_SUCCESS;
}

CKEMU_EXPORT hiprtcResult hiprtcAddNameExpression(RtcProgram* program, const char* expression) {
  if (program == NULL || expression == NULL) return HIPRTC_ERROR_INVALID_INPUT;
  if (program->compiled) return HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  const size_t room = (size_t)(program->count + 1) * sizeof(char*);
  program->expressions = (char**)realloc(program->expressions, room);
  program->expressions[program->count++] = strdup(expression);
  const hiprtcResult problem = write_text(program->folder, "expressions", expression, "a");
  return problem == HIPRTC_SUCCESS ? write_text(program->folder, "expressions", "\n", "a") : problem;
}

CKEMU_EXPORT hiprtcResult hiprtcCompileProgram(RtcProgram* program, int option_count, const char* const* options) {
  if (program == NULL || option_count < 0 || (option_count && options == NULL)) return HIPRTC_ERROR_INVALID_INPUT;
  hipDeviceProperties properties;
  int device = 0;
  if (hipGetDevice(&device) != hipSuccess || hipGetDevicePropertiesR0600(&properties, device) != hipSuccess)
    return HIPRTC_ERROR_INTERNAL_ERROR;
  hiprtcResult problem = write_text(program->folder, "arch", properties.gcnArchName, "w");
  for (int n = 0; n < option_count && problem == HIPRTC_SUCCESS; ++n) {
    problem = write_text(program->folder, "options", options[n], n ? "a" : "w");
    if (problem == HIPRTC_SUCCESS) problem = write_text(program->folder, "options", "\n", "a");
  }
  if (problem != HIPRTC_SUCCESS) return problem;
  free(program->code.data), free(program->log.data), free(program->names.data);
  program->code = program->log = program->names = Contents{};
  if (interpreter() == NULL) {
    program->log.data = strdup("hiprtc compiles with Python: set CKLANG_PYTHON to an interpreter that has cklang\n");
    program->log.size = strlen(program->log.data);
    return HIPRTC_ERROR_COMPILATION;
  }
  const int status = run(program->folder);
  program->code = read_text(program->folder, "code");
  program->log = read_text(program->folder, "log");
  program->names = read_text(program->folder, "names");
  program->compiled = status == 0;
  return status == 0 ? HIPRTC_SUCCESS : HIPRTC_ERROR_COMPILATION;
}

CKEMU_EXPORT hiprtcResult hiprtcGetLoweredName(RtcProgram* program, const char* expression, const char** name) {
  if (program == NULL || expression == NULL || name == NULL) return HIPRTC_ERROR_INVALID_INPUT;
  if (!program->compiled) return HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  const char* line = program->names.data; /* each ends with a 0 */
  for (int n = 0; n < program->count; ++n, line += strlen(line) + 1) {
    if (strcmp(program->expressions[n], expression) != 0) continue;
    *name = line;
    return HIPRTC_SUCCESS;
  }
  return HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

/* Sizes of text count the 0 behind it. */
CKEMU_EXPORT hiprtcResult hiprtcGetProgramLogSize(RtcProgram* program, size_t* size) {
  if (program == NULL || size == NULL) return HIPRTC_ERROR_INVALID_INPUT;
  *size = program->log.size + 1;
  return HIPRTC_SUCCESS;
}
CKEMU_EXPORT hiprtcResult hiprtcGetProgramLog(RtcProgram* program, char* log) {
  if (program == NULL || log == NULL) return HIPRTC_ERROR_INVALID_INPUT;
  memcpy(log, program->log.data ? program->log.data : "", program->log.size + 1);
  return HIPRTC_SUCCESS;
}
CKEMU_EXPORT hiprtcResult hiprtcGetCodeSize(RtcProgram* program, size_t* size) {
  if (program == NULL || size == NULL || !program->compiled) return HIPRTC_ERROR_INVALID_PROGRAM;
  *size = program->code.size;
  return HIPRTC_SUCCESS;
}
CKEMU_EXPORT hiprtcResult hiprtcGetCode(RtcProgram* program, char* code) {
  if (program == NULL || code == NULL || !program->compiled) return HIPRTC_ERROR_INVALID_PROGRAM;
  memcpy(code, program->code.data, program->code.size);
  return HIPRTC_SUCCESS;
}

namespace {
hiprtcResult no_linking(const char* call) {
  fprintf(stderr, "libamdhip64: %s is not supported by the emulator\n", call);
  return HIPRTC_ERROR_LINKING;
}
}  // namespace
CKEMU_EXPORT hiprtcResult hiprtcGetBitcode(RtcProgram*, char*) { return no_linking("hiprtcGetBitcode"); }
CKEMU_EXPORT hiprtcResult hiprtcGetBitcodeSize(RtcProgram*, size_t*) { return no_linking("hiprtcGetBitcodeSize"); }
CKEMU_EXPORT hiprtcResult hiprtcLinkCreate(u32, int*, void**, void**) { return no_linking("hiprtcLinkCreate"); }
CKEMU_EXPORT hiprtcResult hiprtcLinkAddFile(void*, int, const char*, u32, int*, void**) {
  return no_linking("hiprtcLinkAddFile");
}
CKEMU_EXPORT hiprtcResult hiprtcLinkAddData(void*, int, void*, size_t, const char*, u32, int*, void**) {
  return no_linking("hiprtcLinkAddData");
}
CKEMU_EXPORT hiprtcResult hiprtcLinkComplete(void*, void**, size_t*) { return no_linking("hiprtcLinkComplete"); }
CKEMU_EXPORT hiprtcResult hiprtcLinkDestroy(void*) { return no_linking("hiprtcLinkDestroy"); }

}  // namespace ckemu
