// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/row_major.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

bool is_complex(DType dtype) {
  return dtype_info(dtype).name.starts_with("complex");
}

bool is_integer(DType dtype) {
  return dtype_info(dtype).name.find("int") != std::string_view::npos;
}

// Two's complement of a little-endian number.
void negate_integer(std::span<std::byte> number) {
  unsigned carry = 1;
  for (std::byte& byte : number) {
    const unsigned sum = (~static_cast<unsigned>(byte) & 0xFFU) + carry;
    byte = static_cast<std::byte>(sum & 0xFFU);
    carry = sum >> 8U;
  }
}

// Applies the lazy flags of a tensor to copies of its elements.
class Resolver {
 public:
  explicit Resolver(const Tensor& tensor)
      : conj_(tensor.is_conj && is_complex(tensor.dtype)),
        neg_(tensor.is_neg),
        integer_(is_integer(tensor.dtype)),
        complex_(is_complex(tensor.dtype)),
        part_(dtype_info(tensor.dtype).size / (complex_ ? 2 : 1)) {}

  [[nodiscard]] bool is_needed() const {
    return conj_ || neg_;
  }

  // `bytes` are whole elements.
  void apply(std::span<std::byte> bytes) const {
    if (!is_needed()) {
      return;
    }
    bool imaginary = false;
    for (std::size_t at = 0; at < bytes.size(); at += part_) {
      const bool flip = neg_ != (conj_ && imaginary);
      if (flip && integer_) {
        negate_integer(bytes.subspan(at, part_));
      } else if (flip) {
        bytes[at + part_ - 1] ^= std::byte{0x80};
      }
      imaginary = complex_ && !imaginary;
    }
  }

 private:
  bool conj_;
  bool neg_;
  bool integer_;
  bool complex_;
  std::size_t part_;
};

// Where the elements lie that a strided tensor views. Units: elements.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

Extent extent_of(const Tensor& tensor) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
    last += (tensor.sizes[d] - 1) * tensor.strides[d];
  }
  return {.begin = tensor.offset, .count = last + 1};
}

bool is_read_as(DType stored, DType wanted) {
  return stored == wanted ||
         (stored == DType::kBool && wanted == DType::kUInt8);
}

// Elements are kept as little-endian files have them.
bool is_native(DType stored) {
  return std::endian::native == std::endian::little ||
         dtype_info(stored).size == 1;
}

} // namespace

bool internal::lies_in_rows(const Tensor& tensor) {
  return tensor.is_contiguous() && !Resolver(tensor).is_needed();
}

Result<ByteSpan> internal::row_bytes(const Tensor& tensor) {
  const std::uint64_t size = contiguous_bytes(tensor);
  if (size == 0) {
    return ByteSpan();
  }
  LOCKSTEP_ASSIGN(const ByteSpan all, tensor.storage->source->load());
  const auto begin =
      static_cast<std::uint64_t>(tensor.offset) * dtype_info(tensor.dtype).size;
  if (begin > all.size() || size > all.size() - begin) {
    return corrupt_file(
        "E_VIEW_BOUNDS",
        format(
            "expected {} bytes from byte {} of the storage, it has {}",
            size,
            begin,
            all.size()));
  }
  return all.subspan(begin, size);
}

Result<ByteSpan> internal::row_view(
    const Tensor& tensor,
    std::uint64_t offset,
    std::uint64_t length,
    std::vector<std::byte>& scratch) {
  if (length == 0) {
    return ByteSpan();
  }
  return tensor.storage->source->view(
      static_cast<std::uint64_t>(tensor.offset) *
              dtype_info(tensor.dtype).size +
          offset,
      length,
      scratch);
}

ByteSpan internal::element_bytes(
    const Tensor& tensor,
    std::optional<DType> dtype,
    std::size_t alignment) {
  const auto refuse = [](ErrorCode code, std::string what, std::string hint) {
    raise(
        {.code = code,
         .op = "ckpt.span",
         .message = std::move(what),
         .hint = std::move(hint)});
  };
  if (dtype && !is_read_as(tensor.dtype, *dtype)) {
    refuse(
        ErrorCode::kMismatch,
        format(
            "expected elements of {}, got {}",
            dtype_info(*dtype).name,
            dtype_info(tensor.dtype).name),
        "ask for the tensor's own type; std::byte reads any");
  }
  if (dtype && !is_native(tensor.dtype)) {
    refuse(
        ErrorCode::kUnsupported,
        "elements have their low byte first, numbers of this machine their "
        "high one",
        "std::byte reads them as they are");
  }
  if (!has_bytes(tensor)) {
    refuse(ErrorCode::kUnsupported, "the file has no bytes of the tensor", "");
  }
  if (!lies_in_rows(tensor)) {
    refuse(
        ErrorCode::kInvalidArgument,
        "the elements do not lie row by row, or are to be negated",
        "tensors() gives those of a file so that they do; for_each_block reads "
        "them in order");
  }
  const ByteSpan bytes = row_bytes(tensor).value();
  if (std::bit_cast<std::uintptr_t>(bytes.data()) % alignment != 0) {
    refuse(
        ErrorCode::kInvalidArgument,
        format("the elements do not lie at a multiple of {} bytes", alignment),
        "tensors() gives those of a file so that they do");
  }
  return bytes;
}

std::uint64_t contiguous_bytes(const Tensor& tensor) {
  const std::uint64_t size = dtype_info(tensor.dtype).size;
  const std::int64_t packed = dtype_info(tensor.dtype).per_byte;
  if (packed == 1 || tensor.sizes.empty() || tensor.numel() == 0) {
    return static_cast<std::uint64_t>(tensor.numel()) * size;
  }
  const std::int64_t row = tensor.sizes.back();
  return static_cast<std::uint64_t>(
      tensor.numel() / row * ((row + packed - 1) / packed));
}

bool has_bytes(const Tensor& tensor) {
  return tensor.storage != nullptr && tensor.storage->source != nullptr;
}

Status check_expansion(const Tensor& tensor, std::uint64_t max_expanded_bytes) {
  const std::uint64_t bytes = contiguous_bytes(tensor);
  const std::uint64_t own = tensor.storage->nbytes;
  if (bytes <= own || bytes - own <= max_expanded_bytes) {
    return {};
  }
  return read_error(
      ErrorCode::kUnsafe,
      "E_LIMIT",
      format(
          "repeats the {} of its storage up to {}",
          human_bytes(own),
          human_bytes(bytes)),
      "expanding() reads it anyway");
}

Status ExpansionBudget::add(const Tensor& tensor) {
  LOCKSTEP_TRY(check_expansion(tensor, max_expanded_bytes_));
  const bool is_new = !storages_.contains(tensor.storage.get());
  const std::uint64_t own = own_ + (is_new ? tensor.storage->nbytes : 0);
  const std::uint64_t views = views_ + contiguous_bytes(tensor);
  const bool fits = views / kViewsPerByte <= own ||
                    views - kViewsPerByte * own <= max_expanded_bytes_;
  if (!fits) {
    return read_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format(
            "views of {} bytes of storages repeat them up to {}; "
            "expected at most {} and {} for each byte",
            own,
            views,
            max_expanded_bytes_,
            kViewsPerByte),
        "Limits::max_expanded_bytes allows more");
  }
  storages_.insert(tensor.storage.get());
  own_ = own;
  views_ = views;
  return {};
}

class TensorBlocks::Impl {
 public:
  explicit Impl(const Tensor& tensor)
      : tensor_(tensor),
        resolver_(tensor),
        element_(dtype_info(tensor.dtype).size),
        left_(contiguous_bytes(tensor) / element_),
        per_block_(kTensorBlockBytes / element_),
        is_plain_(
            tensor.is_contiguous() || dtype_info(tensor.dtype).per_byte > 1),
        at_(tensor) {}

  Result<ByteSpan> next() {
    const std::uint64_t count = std::min(left_, per_block_);
    if (count == 0) {
      return ByteSpan();
    }
    left_ -= count;
    return is_plain_ ? next_plain(count) : next_gathered(count);
  }

  std::uint64_t per_block() const {
    return per_block_;
  }
  void set_per_block(std::uint64_t count) {
    per_block_ = count;
  }

 private:
  Result<ByteSpan> next_plain(std::uint64_t count) {
    LOCKSTEP_ASSIGN(
        const ByteSpan bytes,
        tensor_.storage->source->view(
            static_cast<std::uint64_t>(tensor_.offset) * element_ + done_,
            count * element_,
            scratch_));
    done_ += bytes.size();
    if (!resolver_.is_needed()) {
      return bytes;
    }
    block_.assign(bytes.begin(), bytes.end());
    resolver_.apply(block_);
    return ByteSpan(block_);
  }

  Result<ByteSpan> next_gathered(std::uint64_t count) {
    if (extent_.empty()) {
      const Extent extent = extent_of(tensor_);
      LOCKSTEP_ASSIGN(
          extent_,
          tensor_.storage->source->view(
              static_cast<std::uint64_t>(extent.begin) * element_,
              static_cast<std::uint64_t>(extent.count) * element_,
              scratch_));
    }
    block_.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      const ByteSpan element = extent_.subspan(
          (at_.offset() - static_cast<std::size_t>(tensor_.offset)) * element_,
          element_);
      block_.insert(block_.end(), element.begin(), element.end());
      at_.next();
    }
    resolver_.apply(block_);
    return ByteSpan(block_);
  }

  const Tensor& tensor_;
  Resolver resolver_;
  std::uint64_t element_;
  // Elements to come, and in each block.
  std::uint64_t left_;
  std::uint64_t per_block_;
  bool is_plain_;
  std::uint64_t done_ = 0;
  internal::RowMajor at_;
  ByteSpan extent_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> block_;
};

TensorBlocks::TensorBlocks(const Tensor& tensor)
    : impl_(std::make_unique<Impl>(tensor)) {}

TensorBlocks::~TensorBlocks() = default;

Result<ByteSpan> TensorBlocks::next() {
  return impl_->next();
}

std::uint64_t TensorBlocks::block_elements() const noexcept {
  return impl_->per_block();
}

void TensorBlocks::set_block_elements(std::uint64_t count) noexcept {
  impl_->set_per_block(count);
}

Status for_each_block(const Tensor& tensor, const BlockVisitor& visit) {
  TensorBlocks blocks(tensor);
  for (;;) {
    LOCKSTEP_ASSIGN(const ByteSpan block, blocks.next());
    if (block.empty()) {
      return {};
    }
    LOCKSTEP_TRY(visit(block));
  }
}

} // namespace lockstep::ckpt
