// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/torch_facts.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <netdb.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/process.h"
#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/autocast.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/internal/gpu_names.h"
#include "lockstep/tensor/internal/compat.h"

namespace lockstep::cli_train {
namespace {

Json finding(
    std::string_view name,
    const std::string& value,
    std::string_view health = "ok",
    std::string_view remedy = "") {
  return Json::object()
      .set("group", "libtorch")
      .set("name", name)
      .set("value", value)
      .set("health", health)
      .set("remedy", remedy);
}

// The folder of the libraries that were loaded.
std::filesystem::path torch_folder() {
  Dl_info info{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its interface
  ::dladdr(reinterpret_cast<const void*>(&at::show_config), &info);
  return std::filesystem::path(info.dli_fname == nullptr ? "" : info.dli_fname)
      .parent_path()
      .lexically_normal(); // a RUNPATH says ../..
}

Json version() {
  const std::string loaded = torch_library_version();
  try {
    check_torch_version();
    return finding("version", loaded);
  } catch (const Exception& error) {
    return finding(
        "version",
        error.error().message,
        "problem",
        error.error().hint);
  }
}

// The build, and each GPU that it sees.
void add_devices(Json& rows, const std::filesystem::path& folder) {
  const bool is_cuda_build =
      std::filesystem::exists(folder / "libtorch_cuda.so");
  const std::int64_t gpus = is_cuda_build ? device_count("cuda") : 0;
  if (is_cuda_build && gpus == 0) {
    rows.push(finding(
        "build",
        "CUDA, which sees no GPU",
        "note",
        "training runs on the CPU; 'nvidia-smi' tells whether there is a "
        "driver, and CUDA_VISIBLE_DEVICES hides GPUs"));
  } else {
    rows.push(finding("build", is_cuda_build ? "CUDA" : "CPU only"));
  }
  for (std::int64_t i = 0; i < gpus; ++i) {
    const c10::Device device(
        c10::DeviceType::CUDA,
        static_cast<c10::DeviceIndex>(i));
    rows.push(finding(format("cuda:{}", i), gpu_names(std::array{device})));
  }
}

Json bfloat16() {
  return is_bfloat16_fast(c10::DeviceType::CPU)
             ? finding("bfloat16", "fast on this processor (--amp bf16)")
             : finding(
                   "bfloat16",
                   "slow on this processor: '--amp auto' stays with float32");
}

// Whether others find this machine by the address that Gloo takes.
Json host() {
  const std::string name = host_name();
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  constexpr std::string_view kRemedy =
      "Gloo takes the network of the host's name; for ranks on several "
      "machines, GLOO_SOCKET_IFNAME names an interface instead";
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &list) != 0) {
    return finding("host", name + " has no address", "note", kRemedy);
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(
      list,
      &::freeaddrinfo);
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(
      list->ai_addr,
      list->ai_addrlen,
      text.data(),
      text.size(),
      nullptr,
      0,
      NI_NUMERICHOST);
  const std::string value = format("{} is {}", name, text.data());
  return std::string_view(text.data()).starts_with("127.")
             ? finding("host", value, "note", kRemedy)
             : finding("host", value);
}

} // namespace

std::string torch_facts() {
  const std::filesystem::path folder = torch_folder();
  Json rows = Json::array();
  rows.push(version());
  rows.push(finding("folder", folder.string()));
  add_devices(rows, folder);
  rows.push(finding("threads", std::to_string(at::get_num_threads())));
  rows.push(bfloat16());
  rows.push(host());
  return Json::object().set("findings", std::move(rows)).dump() + "\n";
}

} // namespace lockstep::cli_train
