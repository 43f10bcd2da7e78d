// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "fuzz/targets.h"
#include "fuzz/watch.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"
#include "tests/support/memory_fs.h"

namespace lockstep::fuzz {
namespace {

// A view may repeat its storage for ever; copies of it are refused elsewhere.
constexpr std::uint64_t kLargestContent = 1 << 20;

// Bytes of all tensors as if they were contiguous.
bool is_small(const ckpt::Value& root) {
  double bytes = 0;
  const auto status = ckpt::for_each_tensor(
      root,
      [&bytes](const std::string& /*name*/, const ckpt::Tensor& tensor) {
        double elements = 1;
        for (const std::int64_t size : tensor.sizes) {
          elements *= static_cast<double>(size);
        }
        bytes += elements * 16;
      });
  return status.has_value() && bytes < kLargestContent;
}

// What was written reads back as the same tensors.
void check_copy(
    const ckpt::Value& root,
    const std::string& digest,
    const ckpt::FormatWriter& writer) {
  MemoryFs fs;
  const std::string path = "copy";
  if (!writer.write(
          path,
          root,
          {{.format = std::string(writer.name),
            .durable = false,
            .clone_views = true}},
          fs)) {
    return;
  }
  const auto copy = ckpt::load(path, {}, fs);
  if (!copy) {
    std::abort();
  }
  const auto digest_of_copy = ckpt::digest(copy->root);
  if (!digest_of_copy || *digest_of_copy != digest) {
    std::fprintf(stderr, "%s\n", std::string(writer.name).c_str());
    std::abort();
  }
}

} // namespace

void fuzz_convert(ByteSpan input) {
  const Watch watch(input);
  const auto file = ckpt::load(watch.source(), "input", watch.options());
  // A tensor alone has no name; formats of named tensors give it one.
  if (!file || file->root.as_tensor() != nullptr || !is_small(file->root)) {
    return;
  }
  [[maybe_unused]] const auto model =
      ckpt::extract_model(file->root, {.unwrap = true});
  [[maybe_unused]] const auto stripped =
      ckpt::strip_prefix(file->root, {.prefix = "module."});
  const auto digest = ckpt::digest(file->root);
  if (!digest) {
    return;
  }
  for (const ckpt::FormatWriter& writer : ckpt::format_writers()) {
    check_copy(file->root, *digest, writer);
  }
}

} // namespace lockstep::fuzz
