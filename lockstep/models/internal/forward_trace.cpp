// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/models/internal/forward_trace.h"

#include <utility>

#include "lockstep/tensor/internal/operations.h"

namespace lockstep::internal {
namespace {

class Trace final : public OperationListener {
 public:
  void on_start(const at::RecordFunction& op, int depth) override {
    if (depth == 0) {
      inputs_ = storages_of(op.inputs());
    }
  }

  void on_end(const at::RecordFunction& op, int depth) override {
    if (depth > 0) {
      return;
    }
    TracedOp traced{
        .name = plain_name(op.name()),
        .inputs = std::move(inputs_)};
    const auto& outputs = op.outputs();
    if (!outputs.empty() && outputs.front().isTensor() &&
        outputs.front().toTensor().defined()) {
      const at::Tensor& output = outputs.front().toTensor();
      traced.output_shape = output.sizes().vec();
      traced.output = storage_of(output);
      traced.output_bytes = static_cast<std::int64_t>(output.nbytes());
    }
    ops.push_back(std::move(traced));
  }

  std::vector<TracedOp> ops = {};

 private:
  std::vector<const void*> inputs_ = {};
};

} // namespace

const void* storage_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage()
             ? tensor.storage().unsafeGetStorageImpl()
             : nullptr;
}

std::vector<const void*> storages_of(c10::ArrayRef<const c10::IValue> inputs) {
  std::vector<const void*> storages;
  for (const c10::IValue& value : inputs) {
    if (value.isTensor()) {
      storages.push_back(storage_of(value.toTensor()));
    } else if (value.isTensorList()) { // the weights of an LSTM
      for (const at::Tensor& tensor : value.toTensorVector()) {
        storages.push_back(storage_of(tensor));
      }
    }
  }
  return storages;
}

std::string plain_name(std::string name) {
  name.erase(0, name.find(':') == std::string::npos ? 0 : name.rfind(':') + 1);
  return name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
}

std::vector<TracedOp> trace_operations(const std::function<void()>& work) {
  Trace trace;
  observe_operations(trace, work);
  return std::move(trace.ops);
}

} // namespace lockstep::internal
