// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/ddp/ddp_parts.h"

#include <algorithm>
#include <set>

#include <torch/nn/modules/embedding.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/line_differences.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/ddp/sync_norm.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::dist::internal {
namespace {

constexpr std::size_t kShownDifferences = 5;

[[noreturn]] void cannot_wrap(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "dist.ddp",
       .message = std::move(message),
       .detail = "E_CANNOT_WRAP"});
}

/// Adds what is defined, not ignored and not there yet.
class Collector {
 public:
  explicit Collector(const std::vector<std::string>& ignored)
      : ignored_(ignored) {}

  bool add(
      std::vector<NamedTensor>& to,
      const std::string& name,
      const at::Tensor& tensor) {
    if (!tensor.defined() ||
        std::ranges::find(ignored_, name) != ignored_.end() ||
        !seen_.insert(tensor.unsafeGetTensorImpl()).second) {
      return false;
    }
    to.push_back({.name = name, .tensor = tensor});
    return true;
  }

 private:
  const std::vector<std::string>& ignored_;
  std::set<const c10::TensorImpl*> seen_ = {};
};

bool has_sparse_gradient(const torch::nn::Module& module) {
  const auto* embedding =
      dynamic_cast<const torch::nn::EmbeddingImpl*>(&module);
  const auto* bag = dynamic_cast<const torch::nn::EmbeddingBagImpl*>(&module);
  return (embedding != nullptr && embedding->options.sparse()) ||
         (bag != nullptr && bag->options.sparse());
}

std::string dotted(const std::string& module, const std::string& name) {
  return module.empty() ? name : format("{}.{}", module, name);
}

void check_devices(const DdpParts& parts) {
  std::set<std::string> types;
  for (const NamedTensor& part : parts.parameters) {
    const auto type = part.tensor.device().type();
    types.insert("'" + c10::DeviceTypeName(type, /*lower_case=*/true) + "'");
  }
  if (types.size() > 1) {
    const std::vector<std::string> names(types.begin(), types.end());
    cannot_wrap(
        "DistributedDataParallel's input module must be on the same type of "
        "devices, but input module parameters locate in {" +
        join(names, ", ") + "}.");
  }
}

std::string tensor_line(const char* kind, const NamedTensor& part) {
  return format(
      "{} {}: {} {}, strides {}, {}",
      kind,
      part.name,
      c10::toString(part.tensor.scalar_type()),
      tuple_text(part.tensor.sizes()),
      tuple_text(part.tensor.strides()),
      part.tensor.requires_grad() ? "trained" : "not trained");
}

} // namespace

std::vector<NamedTensor> buffers_of(
    torch::nn::Module& module,
    const DistributedDataParallelOptions& options) {
  std::vector<NamedTensor> buffers;
  Collector collector(options.ignored);
  for (const auto& item : module.named_buffers()) {
    collector.add(buffers, item.key(), item.value());
  }
  return buffers;
}

DdpParts parts_of(
    torch::nn::Module& module,
    const DistributedDataParallelOptions& options) {
  DdpParts parts{
      .buffers = buffers_of(module, options),
      .sync_batch_norms = count_sync_batchnorms(module)};
  Collector trained(options.ignored);
  Collector all(options.ignored);
  for (const auto& child : module.named_modules()) {
    for (const auto& own : child.value()->named_parameters(/*recurse=*/false)) {
      const std::string name = dotted(child.key(), own.key());
      all.add(parts.parameters, name, own.value());
      if (own.value().requires_grad() &&
          trained.add(parts.trained, name, own.value())) {
        parts.is_sparse.push_back(has_sparse_gradient(*child.value()));
      }
    }
  }
  if (parts.trained.empty()) {
    cannot_wrap(
        "DistributedDataParallel is not needed when a module doesn't have any "
        "parameter that requires a gradient.");
  }
  check_devices(parts);
  return parts;
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const NamedTensor& part : named) {
    tensors.push_back(part.tensor);
  }
  return tensors;
}

std::vector<at::Tensor> detached(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const NamedTensor& part : named) {
    tensors.push_back(part.tensor.detach());
  }
  return tensors;
}

std::string fingerprint(
    const DdpParts& parts,
    const DistributedDataParallelOptions& options) {
  std::vector<std::string> lines{
      format(
          "bucket_cap_mb: {}",
          options.bucket_cap_mb ? shortest(*options.bucket_cap_mb) : "default"),
      format("find_unused_parameters: {}", options.find_unused_parameters),
      format("gradient_as_bucket_view: {}", options.gradient_as_bucket_view),
      format("static_graph: {}", options.static_graph),
      format("forward_sync_buffers: {}", options.forward_sync_buffers),
      format("init_sync: {}", options.init_sync),
      format("sync_batch_norms: {}", parts.sync_batch_norms),
      format("parameters: {}", parts.parameters.size()),
      format("buffers: {}", parts.buffers.size())};
  std::set<std::string> sparse;
  for (std::size_t i = 0; i < parts.trained.size(); ++i) {
    if (parts.is_sparse[i]) {
      sparse.insert(parts.trained[i].name);
    }
  }
  for (const NamedTensor& part : parts.parameters) {
    lines.push_back(
        tensor_line("parameter", part) +
        (sparse.contains(part.name) ? ", sparse" : ""));
  }
  for (const NamedTensor& part : parts.buffers) {
    lines.push_back(tensor_line("buffer", part));
  }
  return join(lines, "\n");
}

void check_equal(ProcessGroup::Impl& group, const std::string& fingerprint) {
  const auto texts = exchange(
      group,
      format("ddp/{}", group.wrappers++),
      fingerprint,
      "dist.ddp");
  const auto first = split(texts.front(), '\n');
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    auto found = line_differences(first, split(texts[rank], '\n'));
    if (found.empty()) {
      continue;
    }
    const std::size_t count = found.size();
    found.resize(std::min(count, kShownDifferences));
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "dist.ddp",
         .message = format(
             "ranks 0 and {} differ in {} line{}: {}{}",
             rank,
             count,
             count == 1 ? "" : "s",
             join(found, "; "),
             count > kShownDifferences ? "; ..." : ""),
         .hint =
             "all ranks must build the same model and give the same options",
         .detail = "E_RANKS_DIFFER"});
  }
}

} // namespace lockstep::dist::internal
