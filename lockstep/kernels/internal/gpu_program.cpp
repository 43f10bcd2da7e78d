// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/gpu_program.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/shared_library.h"
#include "lockstep/base/strings.h"

namespace lockstep::kernels {
namespace {

// C interfaces by their documentation ("CUDA Driver API", "NVRTC",
// docs.nvidia.com). Functions return 0 or the number of an error.
using Status = int;
using Handle = void*;
using NumericAttribute = int;
constexpr NumericAttribute kMajorVersion = 75;
constexpr NumericAttribute kMinorVersion = 76;

struct Interface {
  Status (*create_program)(
      Handle*,
      const char* source,
      const char* name,
      int headers,
      const char* const*,
      const char* const*) = nullptr;
  Status (*compile_program)(Handle, int options, const char* const*) = nullptr;
  Status (*destroy_program)(Handle*) = nullptr;
  Status (*log_size)(Handle, std::size_t*) = nullptr;
  Status (*log)(Handle, char*) = nullptr;
  Status (*code_size)(Handle, std::size_t*) = nullptr;
  Status (*code)(Handle, char*) = nullptr;
  Status (*portable_size)(Handle, std::size_t*) = nullptr;
  Status (*portable)(Handle, char*) = nullptr;
  Status (*capability_count)(int*) = nullptr;
  Status (*capabilities)(int*) = nullptr; // ascending

  Status (*current_context)(Handle*) = nullptr;
  Status (*use_context)(Handle) = nullptr;
  Status (*retain_context)(Handle*, int device) = nullptr;
  Status (*device)(int*, int ordinal) = nullptr;
  Status (*attribute)(int*, NumericAttribute, int device) = nullptr;
  Status (*load_library)(
      Handle*,
      const void* code,
      Handle*,
      void**,
      unsigned,
      Handle*,
      void**,
      unsigned) = nullptr;
  Status (*kernel)(Handle*, Handle library, const char* name) = nullptr;
  Status (*function)(Handle*, Handle kernel) = nullptr;
  // Grid, block, shared memory, stream, arguments, nothing.
  Status (*launch)(
      Handle,
      unsigned,
      unsigned,
      unsigned,
      unsigned,
      unsigned,
      unsigned,
      unsigned,
      Handle stream,
      void**,
      void**) = nullptr;
  Status (*error_text)(Status, const char**) = nullptr;
};

[[noreturn]] void unavailable(std::string message) {
  raise(
      {.code = ErrorCode::kUnavailable,
       .op = "kernels.gpu",
       .message = std::move(message),
       .hint = "--kernels exact uses LibTorch's kernels alone",
       .detail = "E_GPU_PROGRAM"});
}

// NVRTC and the driver hang on this library of LibTorch's, which lies beside
// its others.
void* open_library() {
  const auto* const of_libtorch =
      reinterpret_cast<const void*>(&at::globalContext);
  Dl_info where{};
  std::filesystem::path file = "libcaffe2_nvrtc.so";
  if (::dladdr(of_libtorch, &where) != 0 && where.dli_fname != nullptr) {
    file = std::filesystem::path(where.dli_fname).parent_path() / file;
  }
  void* const library =
      ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    unavailable(
        format("CUDA's run-time compiler does not load: {}", loader_error()));
  }
  return library;
}

template <class Function>
void find(void* library, Function& function, const char* name) {
  if (!find_function(library, name, function)) {
    unavailable(format("CUDA has no {}: version 12 or newer is needed", name));
  }
}

Interface load() {
  void* const library = open_library();
  Interface found;
  find(library, found.create_program, "nvrtcCreateProgram");
  find(library, found.compile_program, "nvrtcCompileProgram");
  find(library, found.destroy_program, "nvrtcDestroyProgram");
  find(library, found.log_size, "nvrtcGetProgramLogSize");
  find(library, found.log, "nvrtcGetProgramLog");
  find(library, found.code_size, "nvrtcGetCUBINSize");
  find(library, found.code, "nvrtcGetCUBIN");
  find(library, found.portable_size, "nvrtcGetPTXSize");
  find(library, found.portable, "nvrtcGetPTX");
  find(library, found.capability_count, "nvrtcGetNumSupportedArchs");
  find(library, found.capabilities, "nvrtcGetSupportedArchs");
  find(library, found.current_context, "cuCtxGetCurrent");
  find(library, found.use_context, "cuCtxSetCurrent");
  find(library, found.retain_context, "cuDevicePrimaryCtxRetain");
  find(library, found.device, "cuDeviceGet");
  find(library, found.attribute, "cuDeviceGetAttribute");
  find(library, found.load_library, "cuLibraryLoadData");
  find(library, found.kernel, "cuLibraryGetKernel");
  find(library, found.function, "cuKernelGetFunction");
  find(library, found.launch, "cuLaunchKernel");
  find(library, found.error_text, "cuGetErrorString");
  return found;
}

const Interface& cuda() {
  static const Interface found = load();
  return found;
}

void check(Status status, ErrorCode code, const char* what) {
  if (status == 0) {
    return;
  }
  const char* text = nullptr;
  cuda().error_text(status, &text);
  raise(
      {.code = code,
       .op = "kernels.gpu",
       .message = format(
           "{}: {}",
           what,
           text == nullptr ? format("error {}", status) : std::string(text)),
       .detail = "E_GPU_PROGRAM"});
}

// Threads that have not called CUDA yet have no context, LibTorch's that run
// backward among them.
void use_context_of(int device) {
  Handle context = nullptr;
  check(cuda().current_context(&context), ErrorCode::kUnavailable, "context");
  if (context == nullptr) {
    check(
        cuda().retain_context(&context, device),
        ErrorCode::kUnavailable,
        "context");
    check(cuda().use_context(context), ErrorCode::kUnavailable, "context");
  }
}

int capability_of(int device) {
  int major = 0;
  int minor = 0;
  for (const auto& [number, attribute] :
       {std::pair(&major, kMajorVersion), std::pair(&minor, kMinorVersion)}) {
    check(
        cuda().attribute(number, attribute, device),
        ErrorCode::kUnavailable,
        "version of the GPU");
  }
  return 10 * major + minor;
}

// The newest that the compiler knows.
int newest_capability() {
  int count = 0;
  if (cuda().capability_count(&count) != 0 || count < 1) {
    unavailable("CUDA's run-time compiler knows no GPU");
  }
  std::vector<int> known(static_cast<std::size_t>(count));
  cuda().capabilities(known.data());
  return known.back();
}

// A program in the compiler's hands.
class Source {
 public:
  explicit Source(const std::string& text) {
    if (cuda().create_program(
            &program_,
            text.c_str(),
            "lockstep.cu",
            0,
            nullptr,
            nullptr) != 0) {
      unavailable("CUDA's run-time compiler takes no program");
    }
  }
  ~Source() {
    cuda().destroy_program(&program_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  std::string compiled(int capability) {
    const int newest = newest_capability();
    const bool is_known = capability <= newest;
    const std::string target =
        is_known ? format("sm_{}", capability) : format("compute_{}", newest);
    const std::string option = "--gpu-architecture=" + target;
    const std::array options{option.c_str(), "--std=c++17"};
    const Status status = cuda().compile_program(
        program_,
        static_cast<int>(options.size()),
        options.data());
    if (status != 0) {
      const std::string log = text(cuda().log_size, cuda().log);
      unavailable(format(
          "CUDA's run-time compiler refuses a program for {}: {}",
          target,
          log.empty() ? format("error {}", status) : log));
    }
    return is_known ? text(cuda().code_size, cuda().code)
                    : text(cuda().portable_size, cuda().portable);
  }

 private:
  std::string text(
      Status (*size)(Handle, std::size_t*),
      Status (*get)(Handle, char*)) const {
    std::size_t bytes = 0;
    if (size(program_, &bytes) != 0 || bytes == 0) {
      return {};
    }
    std::string result(bytes, '\0');
    return get(program_, result.data()) == 0 ? result : std::string();
  }

  Handle program_ = nullptr;
};

} // namespace

std::string GpuProgram::compile(const std::string& source, int capability) {
  return Source(source).compiled(capability);
}

void* GpuProgram::function(const char* kernel, c10::DeviceIndex device) {
  const std::scoped_lock lock(mutex_);
  void*& found = functions_[{device, kernel}];
  if (found != nullptr) {
    return found;
  }
  int number = 0;
  check(cuda().device(&number, device), ErrorCode::kUnavailable, "device");
  const int capability = capability_of(number);
  Handle& library = libraries_[capability];
  if (library == nullptr) {
    const std::string code = compile(source_, capability);
    check(
        cuda().load_library(
            &library,
            code.data(),
            nullptr,
            nullptr,
            0,
            nullptr,
            nullptr,
            0),
        ErrorCode::kUnavailable,
        "loading a program");
  }
  Handle in_library = nullptr;
  check(
      cuda().kernel(&in_library, library, kernel),
      ErrorCode::kUnavailable,
      kernel);
  check(cuda().function(&found, in_library), ErrorCode::kUnavailable, kernel);
  return found;
}

void GpuProgram::launch_with(
    const char* kernel,
    c10::Device device,
    const GpuGrid& grid,
    std::span<void*> arguments) {
  use_context_of(device.index());
  const c10::impl::VirtualGuardImpl impl(device.type());
  check(
      cuda().launch(
          function(kernel, device.index()),
          grid.columns,
          grid.rows,
          1,
          grid.threads_x,
          grid.threads_y,
          1,
          0,
          impl.getStream(device).native_handle(),
          arguments.data(),
          nullptr),
      ErrorCode::kInternal,
      kernel);
}

} // namespace lockstep::kernels
