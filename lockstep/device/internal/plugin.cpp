// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/internal/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/shared_library.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPluginOp = "device.plugin";

// Empty if the system does not say.
fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

// A path, or a file name alone: then the system's loader looks for it in the
// folders that the program was linked with (RUNPATH) and in LD_LIBRARY_PATH.
void* open_library(const std::string& file) {
  return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

[[noreturn]] void raise_not_loaded(const std::string& why, std::string file) {
  raise(
      {.code = ErrorCode::kUnavailable,
       .op = kPluginOp,
       .message = format("the plugin does not load: {}", why),
       .hint = "build it with the LibTorch that this program uses",
       .path = std::move(file)});
}

} // namespace

std::vector<fs::path> plugin_candidates(std::string_view name) {
  const std::string file = format("lib{}.so", name);
  std::vector<fs::path> folders;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here sets the environment
  if (const char* path = std::getenv("LOCKSTEP_PLUGIN_PATH")) {
    for (const std::string& folder : split(path, ':')) {
      if (!folder.empty()) {
        folders.emplace_back(folder);
      }
    }
  }
  if (const fs::path here = program_folder(); !here.empty()) {
    folders.push_back(here);
    folders.push_back((here / LOCKSTEP_PLUGIN_FOLDER).lexically_normal());
  }
  for (fs::path& folder : folders) {
    folder /= file;
  }
  return folders;
}

void* load_plugin(std::string_view name) {
  std::vector<std::string> looked;
  for (const fs::path& file : plugin_candidates(name)) {
    std::error_code error;
    if (!fs::exists(file, error)) {
      looked.push_back(file.parent_path().string());
      continue;
    }
    void* plugin = open_library(file);
    if (plugin == nullptr) {
      raise_not_loaded(loader_error(), file);
    }
    return plugin;
  }
  const std::string file = format("lib{}.so", name);
  if (void* plugin = open_library(file)) {
    return plugin;
  }
  const std::string why = loader_error();
  if (!why.starts_with(file + ": cannot open shared object file")) {
    raise_not_loaded(why, file); // it is there
  }
  raise(
      {.code = ErrorCode::kUnavailable,
       .op = kPluginOp,
       .message = format(
           "{} is in none of: {}, nor where the system's loader looks",
           file,
           join(looked, ", ")),
       .hint =
           "link lockstep::lockstep with CMake, or set LOCKSTEP_PLUGIN_PATH "
           "to the folder that holds it"});
}

void* plugin_symbol(void* plugin, const char* symbol) {
  void* address = nullptr;
  if (!find_function(plugin, symbol, address)) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = kPluginOp,
         .message = format("the plugin has no {}: {}", symbol, loader_error()),
         .hint = "use the plugin of the same Lockstep version"});
  }
  return address;
}

} // namespace lockstep
