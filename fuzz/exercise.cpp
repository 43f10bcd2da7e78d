// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/exercise.h"

#include <algorithm>
#include <cstdlib>

#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::fuzz {
namespace {

constexpr std::uint64_t kMaxVisits = 100'000;

// The reader promised that every element lies inside the storage.
void touch_ends(const ckpt::Tensor& tensor) {
  if (tensor.storage == nullptr || tensor.storage->source == nullptr) {
    return;
  }
  const auto bytes = tensor.storage->source->load();
  const bool is_empty =
      std::ranges::find(tensor.sizes, 0) != tensor.sizes.end();
  if (!bytes || is_empty) {
    return;
  }
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    last += (tensor.sizes[i] - 1) * tensor.strides[i];
  }
  const auto size = ckpt::dtype_info(tensor.dtype).size;
  const auto begin = static_cast<std::uint64_t>(tensor.offset) * size;
  const auto end = (static_cast<std::uint64_t>(last) + 1) * size;
  if (begin > bytes->size() || end > bytes->size()) {
    std::abort(); // the reader let a view out of its storage
  }
  // The sanitizer watches these two reads.
  [[maybe_unused]] volatile auto first = (*bytes)[begin];
  [[maybe_unused]] volatile auto final = (*bytes)[end - 1];
}

} // namespace

void exercise(const ckpt::Value& root) {
  const std::string text = ckpt::to_text(root);
  const bool is_clean = std::ranges::all_of(text, [](char c) {
    return c == '\n' || static_cast<unsigned char>(c) >= ' ';
  });
  if (!is_clean) {
    std::abort(); // a control character would reach the terminal
  }
  [[maybe_unused]] const auto json = ckpt::to_json(root);
  [[maybe_unused]] const auto status = ckpt::for_each_tensor(
      root,
      [](const std::string& /*name*/, const ckpt::Tensor& tensor) {
        touch_ends(tensor);
      },
      {.max_visits = kMaxVisits});
}

void exercise(const ckpt::Checkpoint& file) {
  exercise(file.root);
  const auto summary = ckpt::summarize(file);
  if (summary) {
    [[maybe_unused]] const auto text = ckpt::to_text(*summary, "input");
    [[maybe_unused]] const auto json = ckpt::to_json(*summary);
  }
}

} // namespace lockstep::fuzz
