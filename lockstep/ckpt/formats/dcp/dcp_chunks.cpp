// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_chunks.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/dcp/dcp_part_place.h"
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

// Chunks of elements that share bytes have none of their own.
Status check_packed(const DcpItem& item) {
  const auto parts = std::ranges::count_if(
      item.chunks,
      [](const DcpChunk& chunk) { return volume(chunk.sizes) != 0; });
  if (parts < 2 || dtype_info(item.dtype).per_byte == 1) {
    return {};
  }
  Error error = read_error(
      ErrorCode::kUnsupported,
      "E_DTYPE",
      format(
          "tensor '{}' of {}, whose elements share bytes, lies in {} chunks",
          escape(item.name),
          dtype_info(item.dtype).name,
          parts));
  error.record = kDcpMetadataFile;
  return error;
}

// Opens its parts when it is asked for bytes, and reads them where they lie.
class ChunkedStorage final : public MadeSource {
 public:
  ChunkedStorage(
      const DcpItem& item,
      std::uint64_t bytes,
      std::vector<DcpPart> parts,
      const LoadOptions& options,
      PartLoader load_part)
      : MadeSource(bytes),
        name_(item.name),
        dtype_(item.dtype),
        size_(bytes),
        options_(options),
        load_part_(load_part) {
    const DTypeInfo& type = dtype_info(dtype_);
    for (DcpPart& part : parts) {
      const auto whole = static_cast<std::int64_t>(bytes);
      PartPlace place =
          type.per_byte > 1 // then it is the only part
              ? PartPlace({whole}, {0}, {whole}, 1)
              : PartPlace(item.sizes, part.offsets, part.sizes, type.size);
      parts_.push_back({.part = std::move(part), .place = std::move(place)});
    }
    std::ranges::sort(parts_, {}, [](const PlacedPart& part) {
      return part.place.begin();
    });
    are_runs_ = std::ranges::all_of(parts_, [](const PlacedPart& part) {
      return part.place.is_one_run();
    });
  }

  Result<ByteSpan> load() override {
    LOCKSTEP_TRY(open());
    return parts_.size() == 1 && are_rows_ ? row_bytes(tensor_of(parts_[0]))
                                           : MadeSource::load();
  }

  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    LOCKSTEP_TRY(open());
    LOCKSTEP_CHECK(offset <= size_ && length <= size_ - offset);
    if (!are_rows_) {
      return MadeSource::view(offset, length, scratch);
    }
    const std::uint64_t end = offset + length;
    std::vector<std::byte> read;
    for (const PlacedPart& part : parts_) {
      if (part.place.end() <= offset) {
        continue;
      }
      if (part.place.begin() >= end) {
        break;
      }
      const std::uint64_t from = part.place.before(offset);
      const std::uint64_t to = part.place.before(end);
      if (to - from == length) { // no other part has any of it
        return row_view(tensor_of(part), from, length, scratch);
      }
      if (from != to) {
        scratch.resize(length);
        LOCKSTEP_ASSIGN(
            const ByteSpan bytes,
            row_view(tensor_of(part), from, to - from, read));
        part.place.put(from, bytes, offset, scratch);
      }
    }
    return ByteSpan(scratch).first(length);
  }

  Status stream(const BlockVisitor& visit) override {
    LOCKSTEP_TRY(open());
    if (are_runs_) {
      for (const PlacedPart& part : parts_) {
        LOCKSTEP_TRY(stream_rows(tensor_of(part), visit));
      }
      return {};
    }
    return are_rows_ ? internal::stream_views(*this, size_, visit)
                     : stream_assembled(visit);
  }

 private:
  struct PlacedPart {
    DcpPart part = {};
    PartPlace place;
  };

  static const Tensor& tensor_of(const PlacedPart& part) {
    return *part.part.tensor;
  }

  // The tensors keep what they need of their files.
  Status open() {
    const std::scoped_lock lock(mutex_);
    if (is_open_) {
      return {};
    }
    for (PlacedPart& placed : parts_) {
      DcpPart& part = placed.part;
      if (part.tensor == nullptr) {
        LOCKSTEP_ASSIGN(part.tensor, read_item(part));
      }
    }
    are_rows_ = std::ranges::all_of(parts_, [](const PlacedPart& part) {
      return lies_in_rows(tensor_of(part));
    });
    is_open_ = true;
    return {};
  }

  Result<std::shared_ptr<const Tensor>> read_item(const DcpPart& part) const {
    LOCKSTEP_ASSIGN(const Checkpoint file, load_part_(part.item, "", options_));
    std::shared_ptr<const Tensor> tensor = file.root.shared_tensor();
    if (tensor == nullptr || tensor->dtype != dtype_ ||
        tensor->sizes != part.sizes || !has_bytes(*tensor)) {
      return bad_chunk(name_, "hold a different tensor than the metadata says");
    }
    return tensor;
  }

  // Compares a checksum on the way, where a view would read all for it first.
  static Status stream_rows(const Tensor& tensor, const BlockVisitor& visit) {
    const bool is_storage = lies_in_rows(tensor) && tensor.offset == 0 &&
                            tensor.storage->nbytes == contiguous_bytes(tensor);
    return is_storage ? tensor.storage->source->stream(visit)
                      : for_each_block(tensor, visit);
  }

  Status stream_assembled(const BlockVisitor& visit) const {
    std::vector<std::byte> whole(size_);
    for (const PlacedPart& part : parts_) {
      std::uint64_t at = 0;
      LOCKSTEP_TRY(for_each_block(tensor_of(part), [&](ByteSpan block) {
        part.place.put(at, block, 0, whole);
        at += block.size();
        return Status();
      }));
    }
    return visit(whole);
  }

  std::string name_;
  DType dtype_;
  // Units: bytes of the tensor.
  std::uint64_t size_;
  LoadOptions options_;
  PartLoader load_part_;
  // In the order of their first bytes.
  std::vector<PlacedPart> parts_;
  // Each lies in one piece.
  bool are_runs_ = false;
  std::mutex mutex_;
  bool is_open_ = false;
  // Known when they are open: the elements of each lie row by row.
  bool are_rows_ = false;
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
  return check_packed(item);
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
      tensor.storage->nbytes,
      std::move(parts),
      options,
      load_part);
  return tensor;
}

} // namespace lockstep::ckpt::internal
