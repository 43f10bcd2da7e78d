// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/models/internal/forward_trace.h"

#include <memory>
#include <utility>

#include <ATen/record_function.h>

namespace lockstep::internal {
namespace {

struct Trace {
  std::vector<TracedOp> ops = {};
  /// How many operations are running inside one another.
  int depth = 0;
};

// Callbacks are plain functions. Null in other threads, which take them over
// with the rest of the thread's state: those of replicas, of backward passes.
thread_local Trace* current = nullptr;

struct Inputs final : at::ObserverContext {
  std::vector<const void*> storages = {};
};

// Inputs can be read at the start only, outputs at the end.
std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& op) {
  auto inputs = std::make_unique<Inputs>();
  if (current != nullptr && current->depth++ == 0) {
    inputs->storages = storages_of(op.inputs());
  }
  return inputs;
}

void on_end(const at::RecordFunction& op, at::ObserverContext* context) {
  if (current == nullptr || --current->depth > 0) {
    return;
  }
  TracedOp traced{
      .name = plain_name(op.name()),
      .inputs = std::move(static_cast<Inputs*>(context)->storages)};
  const auto& outputs = op.outputs();
  if (!outputs.empty() && outputs.front().isTensor() &&
      outputs.front().toTensor().defined()) {
    const at::Tensor& output = outputs.front().toTensor();
    traced.output_shape = output.sizes().vec();
    traced.output = storage_of(output);
    traced.output_bytes = static_cast<std::int64_t>(output.nbytes());
  }
  current->ops.push_back(std::move(traced));
}

/// Observes this thread while it lives.
class Observation {
 public:
  explicit Observation(Trace& trace)
      : outer_(std::exchange(current, &trace)),
        handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(on_start, on_end)
                .needsInputs(true)
                .needsOutputs(true)
                .scopes({at::RecordScope::FUNCTION}))) {}
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;
  ~Observation() {
    at::removeCallback(handle_);
    current = outer_;
  }

 private:
  Trace* outer_;
  at::CallbackHandle handle_;
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
  const Observation observation(trace);
  work();
  return std::move(trace.ops);
}

} // namespace lockstep::internal
