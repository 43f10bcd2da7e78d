// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/program/internal/program_data.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/internal/dtype_map.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

using ckpt::ExportedInput;
using ckpt::ExportedWeight;

constexpr const char* kOwnMemory =
    "save the weights alone, lockstep::save(*net, \"weights.pt\"), or export a "
    "net whose weights have memory of their own";

[[noreturn]] void mismatch(
    const ExportedWeight& weight,
    const std::string& expected,
    const std::string& got,
    std::string hint) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "program.save",
       .message = format(
           "'{}' is no longer what the program has; expected {}, got {}",
           escape(weight.name),
           expected,
           got),
       .hint = std::move(hint),
       .detail = "E_PROGRAM"});
}

void check_own_record(const ExportedWeight& weight, const std::string& path) {
  if (!weight.is_packed) {
    return;
  }
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "program.save",
       .message = format(
           "'{}' lies in one pickle with others, as torch before 2.9 wrote "
           "them, which stays as it is",
           escape(weight.name)),
       .hint = "load the file with a newer torch and save it with "
               "torch.export.save, or save the weights alone: "
               "lockstep::save(*net, \"weights.pt\")",
       .path = path,
       .detail = "E_PROGRAM"});
}

void check_same(const ExportedWeight& weight, const at::Tensor& tensor) {
  const auto dtype = to_scalar_type(weight.tensor.dtype);
  if (tensor.scalar_type() != dtype) {
    mismatch(
        weight,
        std::string(ckpt::dtype_info(weight.tensor.dtype).name),
        c10::toString(tensor.scalar_type()),
        format(
            "a program is written with its own types: convert it back, "
            "net->to(torch::k{}), or by set_data() where they differ",
            c10::toString(dtype.value_or(at::ScalarType::Undefined))));
  }
  if (tensor.sizes() != at::IntArrayRef(weight.tensor.sizes)) {
    mismatch(
        weight,
        tuple_text(weight.tensor.sizes),
        tuple_text(tensor.sizes()),
        "a program is written with its own shapes: save the weights alone, "
        "lockstep::save(*net, \"weights.pt\")");
  }
}

// Bit for bit, so that what is not a number counts as well.
bool have_same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor first = a.detach().cpu().contiguous();
  const at::Tensor second = b.detach().cpu().contiguous();
  const std::size_t nbytes = first.nbytes();
  return nbytes == second.nbytes() &&
         (nbytes == 0 || std::memcmp(
                             first.const_data_ptr(),
                             second.const_data_ptr(),
                             nbytes) == 0);
}

// What a file has once for many elements, once: the elements must be equal.
std::pair<at::Tensor, at::Tensor> without_repeats(
    const ExportedWeight& weight,
    at::Tensor view,
    at::Tensor tensor) {
  for (std::int64_t d = 0; d < view.dim(); ++d) {
    if (view.stride(d) != 0 || view.size(d) < 2) {
      continue;
    }
    at::Tensor first = tensor.narrow(d, 0, 1);
    if (!have_same_bytes(first.expand_as(tensor), tensor)) {
      mismatch(
          weight,
          "equal elements, which share memory",
          "different ones",
          kOwnMemory);
    }
    view = view.narrow(d, 0, 1);
    tensor = std::move(first);
  }
  return {std::move(view), std::move(tensor)};
}

/// The bytes of the records that weights view, as they will be.
class NewRecords {
 public:
  // A record begins as the file has it: what no weight views stays.
  void put(const ExportedWeight& weight, const at::Tensor& tensor) {
    check_same(weight, tensor);
    const auto nbytes =
        static_cast<std::int64_t>(weight.tensor.storage->nbytes);
    at::Tensor& bytes = records_[weight.record];
    if (!bytes.defined()) {
      bytes = at::empty({nbytes}, at::kByte);
      copy_old(weight, bytes);
    }
    at::Tensor view = at::empty({0}, tensor.options().device(c10::kCPU));
    view.set_(
        bytes.storage(),
        weight.tensor.offset,
        weight.tensor.sizes,
        weight.tensor.strides);
    const auto [to, from] = without_repeats(weight, view, tensor.detach());
    to.copy_(from);
    written_[weight.record].push_back({&weight, view, tensor});
  }

  // Weights that share memory in the file, but no longer have the same values,
  // cannot all be kept.
  void check_shared() const {
    for (const auto& [record, views] : written_) {
      for (const Written& written : views) {
        if (views.size() > 1 &&
            !have_same_bytes(written.view, written.tensor)) {
          mismatch(
              *written.weight,
              "the values of the weight whose memory it shares in the file",
              "values of its own",
              kOwnMemory);
        }
      }
    }
  }

  std::map<std::string, std::shared_ptr<ckpt::Storage>> take() {
    std::map<std::string, std::shared_ptr<ckpt::Storage>> storages;
    for (const auto& [name, bytes] : records_) {
      const ckpt::Value value = to_value(bytes);
      storages[name] = value.as_tensor()->storage;
    }
    return storages;
  }

 private:
  static void copy_old(const ExportedWeight& weight, at::Tensor& bytes) {
    auto old = weight.tensor.storage->source->load();
    if (!old) {
      raise(old.error());
    }
    std::copy_n(
        reinterpret_cast<const std::uint8_t*>(old->data()),
        old->size(),
        bytes.mutable_data_ptr<std::uint8_t>());
  }

  struct Written {
    const ExportedWeight* weight = nullptr;
    at::Tensor view = {};
    at::Tensor tensor = {};
  };
  std::map<std::string, at::Tensor> records_ = {};
  std::map<std::string, std::vector<Written>> written_ = {};
};

} // namespace

void save_program(const ProgramImpl& net, const std::string& path) {
  const at::NoGradGuard no_grad;
  const ckpt::ExportedModel& model = *net.data().model;
  NewRecords records;
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const ExportedInput& input = model.inputs[i];
    if (net.tensors()[i].defined() &&
        input.kind != ckpt::ExportedInputKind::kTensorConstant) {
      const ExportedWeight& weight = *model.find_weight(input);
      check_own_record(weight, net.data().path);
      records.put(weight, net.tensors()[i]);
    }
  }
  records.check_shared();
  const Status written =
      ckpt::write_exported(path, net.data().file, records.take());
  if (!written) {
    raise(written.error());
  }
}

} // namespace lockstep
