// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/verify/verify_storages.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::uint64_t kVerifyBlockBytes = 1ULL << 18;

Status read_all(const Storage& storage) {
  std::vector<std::byte> scratch;
  for (std::uint64_t at = 0; at < storage.nbytes; at += kVerifyBlockBytes) {
    LOCKSTEP_TRY(storage.source->view(
        at,
        std::min(kVerifyBlockBytes, storage.nbytes - at),
        scratch));
  }
  return {};
}

Finding finding_of(const Error& error) {
  return {
      .detail = error.detail,
      .message = error.message,
      .record = error.record};
}

} // namespace

VerifyReport verify_storages(const Checkpoint& file) {
  VerifyReport report;
  std::map<const Storage*, std::vector<std::string>> names;
  std::vector<std::shared_ptr<Storage>> storages;
  const Status status = for_each_tensor(
      file.root,
      [&](const std::string& name, const Tensor& tensor) {
        ++report.tensors;
        auto [row, is_new] = names.try_emplace(tensor.storage.get());
        row->second.push_back(name);
        if (is_new && tensor.storage != nullptr) {
          storages.push_back(tensor.storage);
        }
      });
  if (!status) {
    report.errors.push_back(finding_of(status.error()));
  }
  for (const auto& storage : storages) {
    if (storage->source == nullptr) {
      continue;
    }
    ++report.records;
    const Status read = read_all(*storage);
    if (read) {
      report.checked_bytes += storage->nbytes;
      continue;
    }
    report.errors.push_back(finding_of(read.error()));
    report.errors.back().tensors = names[storage.get()];
  }
  for (const Warning& warning : file.warnings) {
    report.warnings.push_back(
        {.detail = warning.name, .message = warning.text});
  }
  return report;
}

} // namespace lockstep::ckpt::internal
