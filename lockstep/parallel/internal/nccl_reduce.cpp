// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/nccl_reduce.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <c10/core/Stream.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/shared_library.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/internal/streams.h"

namespace lockstep {
namespace {

constexpr const char* kNcclOp = "device.nccl";
constexpr const char* kLibraryVariable = "LOCKSTEP_NCCL_LIBRARY";
constexpr const char* kLibrary = "libnccl.so.2";

// NCCL 2's C interface, by its documentation ("NCCL API", docs.nvidia.com):
// functions return 0 or a number that ncclGetErrorString explains.
using NcclStatus = int;
using Communicator = void*;
constexpr int kSum = 0;

struct Library {
  NcclStatus (*comm_init_all)(Communicator*, int, const int*) = nullptr;
  NcclStatus (*comm_destroy)(Communicator) = nullptr;
  NcclStatus (*group_start)() = nullptr;
  NcclStatus (*group_end)() = nullptr;
  // From, to (used on the root only), elements, type, operation, root.
  NcclStatus (*reduce)(
      const void*,
      void*,
      std::size_t,
      int,
      int,
      int,
      Communicator,
      void* stream) = nullptr;
  const char* (*error_string)(NcclStatus) = nullptr;
};

struct TypeNumber {
  at::ScalarType dtype;
  int number;
};

constexpr std::array kNcclTypes{
    TypeNumber{at::kChar, 0},
    TypeNumber{at::kByte, 1},
    TypeNumber{at::kInt, 2},
    TypeNumber{at::kLong, 4},
    TypeNumber{at::kHalf, 6},
    TypeNumber{at::kFloat, 7},
    TypeNumber{at::kDouble, 8},
    TypeNumber{at::kBFloat16, 9}};

constexpr int kNoType = -1;

int type_number(at::ScalarType dtype) {
  const auto* const found =
      std::ranges::find(kNcclTypes, dtype, &TypeNumber::dtype);
  return found == kNcclTypes.end() ? kNoType : found->number;
}

[[noreturn]] void unavailable(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kUnavailable,
       .op = kNcclOp,
       .message = std::move(message),
       .hint = std::move(hint)});
}

void* open_library(c10::DeviceType type) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here sets the environment
  const char* const named = std::getenv(kLibraryVariable);
  if (named == nullptr && type != c10::DeviceType::CUDA) {
    unavailable(
        format(
            "NCCL sums on CUDA devices, not on {}",
            c10::DeviceTypeName(type, /*lower_case=*/true)),
        format("set {} to a library for this type", kLibraryVariable));
  }
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  void* library = nullptr;
  if (named == nullptr) {
    library = ::dlopen(kLibrary, kMode | RTLD_NOLOAD);
  }
  if (library == nullptr) {
    library = ::dlopen(named != nullptr ? named : kLibrary, kMode);
  }
  if (library == nullptr) {
    unavailable(
        format("NCCL does not load: {}", loader_error()),
        format("install it, or set {} to its file", kLibraryVariable));
  }
  return library;
}

template <class Function>
void find(void* library, Function& function, const char* name) {
  if (!find_function(library, name, function)) {
    unavailable(
        format("the NCCL library has no {}", name),
        "use NCCL 2 or newer");
  }
}

Library load(c10::DeviceType type) {
  void* const library = open_library(type);
  Library result;
  find(library, result.comm_init_all, "ncclCommInitAll");
  find(library, result.comm_destroy, "ncclCommDestroy");
  find(library, result.group_start, "ncclGroupStart");
  find(library, result.group_end, "ncclGroupEnd");
  find(library, result.reduce, "ncclReduce");
  find(library, result.error_string, "ncclGetErrorString");
  return result;
}

void check_devices(std::span<const c10::Device> devices) {
  std::set<c10::DeviceIndex> numbers;
  for (const c10::Device& device : devices) {
    numbers.insert(device.index());
  }
  if (devices.empty() || devices.front().is_cpu() ||
      numbers.size() != devices.size()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = kNcclOp,
         .message =
             format("expected different GPUs, got \"{}\"", to_string(devices)),
         .hint = R"(write for example "cuda:0,1")"});
  }
}

using Tensors = std::vector<at::Tensor>;

bool can_sum(const std::vector<Tensors>& terms, std::size_t row) {
  const at::Tensor& first = terms.front()[row];
  return std::ranges::all_of(terms, [&](const Tensors& of_device) {
    const at::Tensor& term = of_device[row];
    return term.defined() && first.defined() && term.layout() == at::kStrided &&
           term.is_non_overlapping_and_dense() &&
           term.dtype() == first.dtype() && term.sizes() == first.sizes() &&
           term.strides() == first.strides() &&
           type_number(term.scalar_type()) != kNoType;
  });
}

} // namespace

struct NcclReduce::Impl {
  std::vector<c10::Device> devices = {};
  Library library = {};
  std::vector<Communicator> communicators = {};

  void check(NcclStatus status, const char* what) const {
    if (status != 0) {
      unavailable(
          format("{} failed: {}", what, library.error_string(status)),
          "NCCL_DEBUG=INFO makes NCCL say more");
    }
  }
  void queue(const std::vector<Tensors>& terms, const Tensors& sums) const;
};

NcclReduce::NcclReduce(std::span<const c10::Device> devices) {
  check_devices(devices);
  impl_ = std::make_unique<Impl>();
  impl_->devices.assign(devices.begin(), devices.end());
  impl_->library = load(devices.front().type());
  std::vector<int> numbers;
  for (const c10::Device& device : devices) {
    numbers.push_back(device.index());
  }
  std::vector<Communicator> made(devices.size());
  impl_->check(
      impl_->library.comm_init_all(
          made.data(),
          static_cast<int>(made.size()),
          numbers.data()),
      "ncclCommInitAll");
  impl_->communicators = std::move(made);
}

NcclReduce::~NcclReduce() {
  for (const Communicator communicator : impl_->communicators) {
    static_cast<void>(impl_->library.comm_destroy(communicator));
  }
}

// One group: NCCL starts all reductions on all devices together.
void NcclReduce::Impl::queue(
    const std::vector<Tensors>& terms,
    const Tensors& sums) const {
  const std::vector<c10::Stream> streams = current_streams(devices);
  check(library.group_start(), "ncclGroupStart");
  NcclStatus failed = 0;
  for (std::size_t row = 0; row < sums.size(); ++row) {
    if (!sums[row].defined()) {
      continue;
    }
    for (std::size_t d = 0; d < devices.size() && failed == 0; ++d) {
      const at::Tensor& term = terms[d][row];
      failed = library.reduce(
          term.const_data_ptr(),
          d == 0 ? sums[row].mutable_data_ptr() : nullptr,
          static_cast<std::size_t>(term.numel()),
          type_number(term.scalar_type()),
          kSum,
          /*root=*/0,
          communicators[d],
          streams[d].native_handle());
    }
  }
  const NcclStatus ended = library.group_end();
  check(failed, "ncclReduce");
  check(ended, "ncclGroupEnd");
}

std::vector<at::Tensor> NcclReduce::sum(const std::vector<Tensors>& terms) {
  Tensors sums(terms.empty() ? 0 : terms.front().size());
  bool any = false;
  // Memory first: freeing or taking some inside a group can stop NCCL for ever.
  for (std::size_t row = 0; row < sums.size(); ++row) {
    if (can_sum(terms, row)) {
      sums[row] = at::empty_like(terms.front()[row]);
      any = true;
    }
  }
  if (any) {
    impl_->queue(terms, sums);
  }
  return sums;
}

} // namespace lockstep
