// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_chunks.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt::internal {
namespace {

Error bad_chunk(
    const std::string& name,
    std::string_view why,
    std::string_view detail = "E_DCP_COVERAGE") {
  return corrupt_file(
      detail,
      format("the chunks of tensor '{}' {}", escape(name), why),
      kDcpMetadataFile);
}

// Product of non-negative sizes; nothing if that of the others than 0 leaves
// 64 bits.
std::optional<std::int64_t> volume(const std::vector<std::int64_t>& sizes) {
  std::int64_t product = 1;
  bool is_empty = false;
  for (const std::int64_t size : sizes) {
    is_empty = is_empty || size == 0;
    if (size != 0 && __builtin_mul_overflow(product, size, &product)) {
      return std::nullopt;
    }
  }
  return is_empty ? 0 : product;
}

Status check_inside(const DcpItem& item, const DcpChunk& chunk) {
  const std::size_t rank = item.sizes.size();
  if (chunk.offsets.size() != rank || chunk.sizes.size() != rank) {
    return bad_chunk(item.name, "have a different number of dimensions");
  }
  for (std::size_t d = 0; d < rank; ++d) {
    if (chunk.offsets[d] > item.sizes[d] ||
        chunk.sizes[d] > item.sizes[d] - chunk.offsets[d]) {
      return bad_chunk(item.name, "reach outside the tensor");
    }
  }
  return {};
}

bool overlaps(const DcpChunk& a, const DcpChunk& b) {
  for (std::size_t d = 0; d < a.sizes.size(); ++d) {
    if (a.offsets[d] >= b.offsets[d] + b.sizes[d] ||
        b.offsets[d] >= a.offsets[d] + a.sizes[d]) {
      return false;
    }
  }
  return true;
}

// The dimension along which most chunks start at different places.
std::size_t sweep_dimension(const std::vector<const DcpChunk*>& chunks) {
  std::size_t best = 0;
  std::size_t best_count = 0;
  for (std::size_t d = 0; d < chunks.front()->offsets.size(); ++d) {
    std::set<std::int64_t> starts;
    for (const DcpChunk* chunk : chunks) {
      starts.insert(chunk->offsets[d]);
    }
    if (starts.size() > best_count) {
      best = d;
      best_count = starts.size();
    }
  }
  return best;
}

Status check_overlaps(const DcpItem& item, const Limits& limits) {
  std::vector<const DcpChunk*> chunks;
  for (const DcpChunk& chunk : item.chunks) {
    if (volume(chunk.sizes).value_or(1) != 0) {
      chunks.push_back(&chunk);
    }
  }
  if (chunks.size() < 2) {
    return {};
  }
  if (item.sizes.empty()) {
    return bad_chunk(item.name, "overlap");
  }
  const std::size_t d = sweep_dimension(chunks);
  std::ranges::sort(chunks, {}, [d](const DcpChunk* chunk) {
    return chunk->offsets[d];
  });
  const auto budget = budget_of(limits, 0);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::int64_t end = chunks[i]->offsets[d] + chunks[i]->sizes[d];
    for (std::size_t j = i + 1;
         j < chunks.size() && chunks[j]->offsets[d] < end;
         ++j) {
      if (Status counted = budget->step(); !counted) {
        Error error = std::move(counted).error();
        error.message = format(
            "chunks of '{}' lie beside many others: {}",
            escape(item.name),
            error.message);
        error.record = kDcpMetadataFile;
        return error;
      }
      if (overlaps(*chunks[i], *chunks[j])) {
        return bad_chunk(item.name, "overlap");
      }
    }
  }
  return {};
}

// Takes the row-major bytes of a chunk and puts its rows where they belong.
class Scatter {
 public:
  Scatter(
      std::span<std::byte> out,
      const std::vector<std::int64_t>& whole,
      const DcpPart& part,
      std::size_t element)
      : out_(out), part_(part), index_(part.sizes.size(), 0) {
    strides_.resize(whole.size());
    std::uint64_t step = element;
    for (std::size_t d = whole.size(); d-- > 0;) {
      strides_[d] = step;
      step *= static_cast<std::uint64_t>(whole[d]);
    }
    row_bytes_ = whole.empty()
                     ? element
                     : static_cast<std::uint64_t>(part.sizes.back()) * element;
    start_row();
  }

  Status write(ByteSpan bytes) {
    while (!bytes.empty()) {
      const std::uint64_t count =
          std::min<std::uint64_t>(bytes.size(), row_bytes_ - in_row_);
      std::memcpy(out_.data() + row_at_ + in_row_, bytes.data(), count);
      bytes = bytes.subspan(count);
      in_row_ += count;
      if (in_row_ == row_bytes_) {
        next_row();
      }
    }
    return {};
  }

 private:
  // Behind the last row it starts again; nothing follows.
  void next_row() {
    for (std::size_t d = index_.size(); d-- > 1;) {
      if (++index_[d - 1] < part_.sizes[d - 1]) {
        break;
      }
      index_[d - 1] = 0;
    }
    start_row();
  }

  void start_row() {
    in_row_ = 0;
    row_at_ = 0;
    for (std::size_t d = 0; d < index_.size(); ++d) {
      row_at_ += static_cast<std::uint64_t>(part_.offsets[d] + index_[d]) *
                 strides_[d];
    }
  }

  std::span<std::byte> out_;
  const DcpPart& part_;
  std::vector<std::int64_t> index_;
  std::vector<std::uint64_t> strides_;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t row_at_ = 0;
  std::uint64_t in_row_ = 0;
};

class ChunkedStorage final : public StorageSource {
 public:
  ChunkedStorage(
      const DcpItem& item,
      std::vector<DcpPart> parts,
      const LoadOptions& options,
      PartLoader load_part)
      : name_(item.name),
        dtype_(item.dtype),
        sizes_(item.sizes),
        parts_(std::move(parts)),
        options_(options),
        load_part_(load_part) {}

  Result<ByteSpan> load() override {
    const std::scoped_lock lock(mutex_);
    if (!is_loaded_) {
      LOCKSTEP_TRY(parts_.size() == 1 ? load_single() : assemble());
      is_loaded_ = true;
    }
    return bytes_;
  }

 private:
  // The tensor in an item; `file` keeps its bytes alive.
  Result<const Tensor*> open(const DcpPart& part, Checkpoint& file) {
    if (part.tensor != nullptr) {
      return part.tensor.get();
    }
    LOCKSTEP_ASSIGN(file, load_part_(part.item, "", options_));
    const Tensor* tensor = file.root.as_tensor();
    if (tensor == nullptr || tensor->dtype != dtype_ ||
        tensor->sizes != part.sizes || !has_bytes(*tensor)) {
      return bad_chunk(name_, "hold a different tensor than the metadata says");
    }
    return tensor;
  }

  Status load_single() {
    LOCKSTEP_ASSIGN(const Tensor* tensor, open(parts_[0], single_));
    if (!lies_in_rows(*tensor)) {
      return assemble();
    }
    LOCKSTEP_ASSIGN(bytes_, row_bytes(*tensor));
    return {};
  }

  Status assemble() {
    std::uint64_t bytes = dtype_info(dtype_).size;
    for (const std::int64_t size : sizes_) {
      bytes *= static_cast<std::uint64_t>(size); // checked on open
    }
    assembled_.resize(bytes);
    for (const DcpPart& part : parts_) {
      Checkpoint file;
      LOCKSTEP_ASSIGN(const Tensor* tensor, open(part, file));
      Scatter scatter(assembled_, sizes_, part, dtype_info(dtype_).size);
      LOCKSTEP_TRY(for_each_block(*tensor, [&scatter](ByteSpan block) {
        return scatter.write(block);
      }));
    }
    bytes_ = assembled_;
    return {};
  }

  std::string name_;
  DType dtype_;
  std::vector<std::int64_t> sizes_;
  std::vector<DcpPart> parts_;
  LoadOptions options_;
  PartLoader load_part_;
  std::mutex mutex_;
  bool is_loaded_ = false;
  ByteSpan bytes_;
  Checkpoint single_;
  std::vector<std::byte> assembled_;
};

} // namespace

Status check_coverage(const DcpItem& item, const Limits& limits) {
  if (item.sizes.size() > kMaxDimensions) {
    return bad_chunk(item.name, "have too many dimensions", "E_RANK");
  }
  const auto wanted = volume(item.sizes);
  std::int64_t bytes = 0;
  if (!wanted || __builtin_mul_overflow(
                     *wanted,
                     static_cast<std::int64_t>(dtype_info(item.dtype).size),
                     &bytes)) {
    return bad_chunk(item.name, "do not fit in 64 bits", "E_OVERFLOW");
  }
  std::int64_t covered = 0;
  for (const DcpChunk& chunk : item.chunks) {
    LOCKSTEP_TRY(check_inside(item, chunk));
    const auto size = volume(chunk.sizes); // not above `wanted`
    if (__builtin_add_overflow(covered, size.value_or(0), &covered)) {
      return bad_chunk(item.name, "overlap");
    }
  }
  LOCKSTEP_TRY(check_overlaps(item, limits));
  if (covered != *wanted) {
    return bad_chunk(
        item.name,
        format("leave a gap; expected {} elements, got {}", *wanted, covered));
  }
  return {};
}

Tensor make_chunked_tensor(
    const DcpItem& item,
    std::vector<DcpPart> parts,
    const LoadOptions& options,
    PartLoader load_part) {
  Tensor tensor{
      .dtype = item.dtype,
      .sizes = item.sizes,
      .strides = row_major_strides(item.sizes),
      .storage = std::make_shared<Storage>(Storage{.dtype = item.dtype}),
      .requires_grad = item.requires_grad};
  tensor.storage->nbytes = contiguous_bytes(tensor);
  tensor.storage->source = std::make_shared<ChunkedStorage>(
      item,
      std::move(parts),
      options,
      load_part);
  return tensor;
}

} // namespace lockstep::ckpt::internal
