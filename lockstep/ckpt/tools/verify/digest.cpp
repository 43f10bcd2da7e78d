// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include <nettle/sha2.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

class Sha256 {
 public:
  Sha256() {
    sha256_init(&context_);
  }

  void update(ByteSpan bytes) {
    sha256_update(
        &context_,
        bytes.size(),
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
        reinterpret_cast<const std::uint8_t*>(bytes.data()));
  }

  // 64 lower-case digits; starts anew afterwards.
  std::string hex() {
    std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
    sha256_digest(&context_, digest.size(), digest.data());
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : digest) {
      text += kDigits[byte >> 4U];
      text += kDigits[byte & 15U];
    }
    return text;
  }

 private:
  sha256_ctx context_{};
};

// What decides the bytes of a view: a tensor under two names is read once.
using ViewKey = std::tuple<
    const Storage*,
    std::int64_t,
    std::vector<std::int64_t>,
    std::vector<std::int64_t>,
    DType,
    bool,
    bool,
    const Value*>;

ViewKey key_of(const Tensor& tensor) {
  return {
      tensor.storage.get(),
      tensor.offset,
      tensor.sizes,
      tensor.strides,
      tensor.dtype,
      tensor.is_conj,
      tensor.is_neg,
      tensor.quantizer.get()};
}

class Digester {
 public:
  explicit Digester(const Limits& limits)
      : budget_(limits.max_expanded_bytes) {}

  Status add(const std::string& name, const Tensor& tensor) {
    DigestRow row{
        .name = name,
        .type = digest_type(tensor.dtype),
        .shape = shape_text(tensor),
        .bytes = contiguous_bytes(tensor)};
    auto [known, is_new] = known_.try_emplace(key_of(tensor));
    if (is_new) {
      LOCKSTEP_ASSIGN(
          known->second,
          about(hash_of(tensor), format("tensor '{}'", escape(name))));
    }
    row.sha256 = known->second;
    rows_.push_back(std::move(row));
    return {};
  }

  // Its parts are rows of their own.
  void add_whole(const std::string& name, const Tensor& whole) {
    rows_.push_back(
        {.name = name,
         .type = digest_type(whole.dtype),
         .shape = shape_text(whole),
         .sha256 = Sha256().hex()});
  }

  std::vector<DigestRow> finish() {
    std::ranges::sort(rows_, [](const DigestRow& a, const DigestRow& b) {
      return std::tie(a.name, a.type, a.shape, a.sha256) <
             std::tie(b.name, b.type, b.shape, b.sha256);
    });
    return std::move(rows_);
  }

 private:
  Result<std::string> hash_of(const Tensor& tensor) {
    LOCKSTEP_TRY(budget_.add(tensor));
    Sha256 hash;
    LOCKSTEP_TRY(add_elements(tensor, hash));
    if (tensor.quantizer != nullptr) {
      LOCKSTEP_TRY(add_quantizer(tensor, hash));
    }
    return hash.hex();
  }

  static Status add_elements(const Tensor& tensor, Sha256& hash) {
    return for_each_block(tensor, [&hash](ByteSpan block) {
      hash.update(block);
      return Status();
    });
  }

  // What the integers stand for. Nothing where it is broken: `verify` says so.
  Status add_quantizer(const Tensor& tensor, Sha256& hash) {
    const auto quantizer = read_quantizer(tensor);
    if (!quantizer) {
      return {};
    }
    if (!quantizer->is_per_channel) {
      hash.update(as_byte_span(
          format("\t{:.17g}\t{}", quantizer->scale, quantizer->zero_point)));
      return {};
    }
    hash.update(as_byte_span(format("\taxis {}", quantizer->axis)));
    for (const Value* part : {&quantizer->scales, &quantizer->zero_points}) {
      if (const Tensor* numbers = part->as_tensor()) {
        LOCKSTEP_TRY(budget_.add(*numbers));
        LOCKSTEP_TRY(add_elements(*numbers, hash));
      } else if (const List* list = part->as_list()) {
        for (const Value& number : list->items) {
          hash.update(
              as_byte_span(format("\t{:.17g}", number.number().value_or(0))));
        }
      }
    }
    return {};
  }

  ExpansionBudget budget_;
  std::vector<DigestRow> rows_;
  std::map<ViewKey, std::string> known_;
};

// Without what parts a line from the next, and a cell from the next.
std::string line_name(std::string_view name) {
  std::string text;
  for (const char c : name) {
    switch (c) {
      case '\\':
        text += "\\\\";
        break;
      case '\t':
        text += "\\t";
        break;
      case '\n':
        text += "\\n";
        break;
      case '\r':
        text += "\\r";
        break;
      default:
        text += c;
    }
  }
  return text;
}

} // namespace

Result<std::vector<DigestRow>> digest_rows(
    const Value& root,
    const Limits& limits) {
  Digester digester(limits);
  Status first;
  const TensorVisitor add = [&](const std::string& name, const Tensor& tensor) {
    if (first && has_bytes(tensor)) {
      first = digester.add(name, tensor);
    }
  };
  const TensorVisitor add_whole =
      [&digester](const std::string& name, const Tensor& whole) {
        digester.add_whole(name, whole);
      };
  // A whole model has the digest of its state_dict.
  LOCKSTEP_TRY(for_each_tensor(
      root,
      TensorVisitors{.named = &add, .placed = &add, .wholes = &add_whole},
      bounds_of(limits)));
  LOCKSTEP_TRY(std::move(first));
  return digester.finish();
}

std::string digest_type(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return std::string(info.storage.empty() ? info.name : info.storage);
}

std::string digest_line(const DigestRow& row) {
  return line_name(row.name) + "\t" + row.type + "\t" + row.shape + "\t" +
         row.sha256 + "\n";
}

std::string digest_text(std::span<const DigestRow> rows) {
  Sha256 hash;
  for (const DigestRow& row : rows) {
    hash.update(as_byte_span(digest_line(row)));
  }
  return hash.hex();
}

Result<std::string> digest(const Value& root, const Limits& limits) {
  LOCKSTEP_ASSIGN(const auto rows, digest_rows(root, limits));
  return digest_text(rows);
}

} // namespace lockstep::ckpt
