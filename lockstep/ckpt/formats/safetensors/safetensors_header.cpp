// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/safetensors/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/json_scanner.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kMaxWarnings = 20;

Error bad_header(
    std::string_view detail,
    std::string message,
    std::uint64_t offset,
    std::string hint = {}) {
  Error error = corrupt_file(detail, std::move(message), {}, offset);
  error.hint = std::move(hint);
  return error;
}

// The length field, compared with the limit and with the file.
Result<std::uint64_t> read_length(ByteSource& source) {
  if (source.size() < kSafetensorsLengthBytes) {
    return bad_header("E_SAFETENSORS_HEADER", "header too small", 0);
  }
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      source.view(0, kSafetensorsLengthBytes, scratch));
  const auto length = internal::read_le<std::uint64_t>(bytes, 0);
  if (length > kMaxSafetensorsHeader) {
    return bad_header(
        "E_SAFETENSORS_HEADER",
        format(
            "header too large; expected at most {} bytes, got {}",
            kMaxSafetensorsHeader,
            length),
        0);
  }
  if (length > source.size() - kSafetensorsLengthBytes) {
    return bad_header(
        "E_SAFETENSORS_HEADER",
        format(
            "invalid header length; expected at most {} bytes, got {}",
            source.size() - kSafetensorsLengthBytes,
            length),
        0,
        "the file is truncated: download it again");
  }
  return length;
}

Status check_utf8(std::string_view text) {
  const std::size_t good = utf8_prefix(text);
  if (good == text.size()) {
    return {};
  }
  return bad_header(
      "E_SAFETENSORS_HEADER",
      "invalid UTF-8 in header",
      kSafetensorsLengthBytes + good);
}

Error overflow(const SafetensorsEntry& entry) {
  return bad_header(
      "E_OVERFLOW",
      format(
          "overflow computing buffer size from shape and/or element type of "
          "tensor `{}`",
          escape(entry.name)),
      entry.header_offset);
}

class HeaderParser {
 public:
  HeaderParser(std::string_view text, const Limits& limits)
      : json_(
            text,
            {.detail = "E_SAFETENSORS_HEADER",
             .duplicate_detail = "E_SAFETENSORS_DUPLICATE",
             .what = "invalid JSON in header",
             .base_offset = kSafetensorsLengthBytes}),
        limits_(limits) {}

  Result<SafetensorsHeader> run() {
    LOCKSTEP_TRY(json_.members([this](std::string_view key) {
      return key == "__metadata__" ? metadata() : tensor(key);
    }));
    LOCKSTEP_TRY(json_.end());
    return std::move(header_);
  }

 private:
  Status metadata() {
    if (json_.starts_with('n')) { // null: there is none
      return json_.skip_value();
    }
    // The package keeps the last value of a key.
    std::unordered_map<std::string, std::size_t> rows;
    return json_.members(
        [&](std::string_view key) -> Status {
          LOCKSTEP_ASSIGN(std::string value, json_.string());
          const auto [row, is_new] =
              rows.try_emplace(std::string(key), header_.metadata.size());
          if (is_new) {
            header_.metadata.emplace_back(key, std::move(value));
          } else {
            header_.metadata[row->second].second = std::move(value);
            warn(format(
                "__metadata__ has the key `{}` twice: its last value counts",
                escape(key)));
          }
          return {};
        },
        Repeats::kGiven);
  }

  Status tensor(std::string_view name) {
    if (header_.tensors.size() == limits_.max_records) {
      Error error = bad_header(
          "E_LIMIT",
          format("the header lists more than {} tensors", limits_.max_records),
          json_.key_offset());
      error.code = ErrorCode::kUnsafe;
      error.hint = "Limits::max_records allows more";
      return error;
    }
    SafetensorsEntry entry{
        .name = std::string(name),
        .header_offset = json_.key_offset()};
    bool has_shape = false;
    bool has_offsets = false;
    LOCKSTEP_TRY(json_.members([&](std::string_view field) -> Status {
      if (field == "dtype") {
        return dtype(entry);
      }
      if (field == "shape") {
        has_shape = true;
        return shape(entry);
      }
      if (field == "data_offsets") {
        has_offsets = true;
        return offsets(entry);
      }
      return unknown_field(name, field);
    }));
    if (entry.type == nullptr || !has_shape || !has_offsets) {
      const char* missing = entry.type == nullptr ? "dtype"
                            : !has_shape          ? "shape"
                                                  : "data_offsets";
      return bad_header(
          "E_SAFETENSORS_HEADER",
          format(
              "invalid JSON in header: tensor `{}` has no field `{}`",
              escape(name),
              missing),
          entry.header_offset);
    }
    header_.tensors.push_back(std::move(entry));
    return {};
  }

  Status dtype(SafetensorsEntry& entry) {
    const std::uint64_t at = json_.offset();
    LOCKSTEP_ASSIGN(const std::string name, json_.string());
    entry.type = find_safetensors_dtype(name);
    if (entry.type != nullptr && entry.type->dtype) {
      return {};
    }
    Error error = bad_header(
        "E_DTYPE",
        format(
            "tensor `{}` has the element type '{}', which PyTorch does not "
            "have",
            escape(entry.name),
            escape(name)),
        at);
    error.code = ErrorCode::kUnsupported;
    return error;
  }

  Status shape(SafetensorsEntry& entry) {
    return json_.elements([this, &entry]() -> Status {
      const std::uint64_t at = json_.offset();
      LOCKSTEP_ASSIGN(const std::uint64_t size, json_.unsigned_integer());
      if (entry.shape.size() == kMaxDimensions) {
        return bad_header(
            "E_RANK",
            format(
                "tensor `{}` has more than {} dimensions",
                escape(entry.name),
                kMaxDimensions),
            at);
      }
      if (!std::in_range<std::int64_t>(size)) {
        return overflow(entry);
      }
      entry.shape.push_back(static_cast<std::int64_t>(size));
      return {};
    });
  }

  Status offsets(SafetensorsEntry& entry) {
    std::size_t count = 0;
    const std::uint64_t at = json_.offset();
    LOCKSTEP_TRY(json_.elements([&]() -> Status {
      LOCKSTEP_ASSIGN(const std::uint64_t value, json_.unsigned_integer());
      (count == 0 ? entry.begin : entry.end) = value;
      ++count;
      return {};
    }));
    if (count != 2) {
      return bad_header(
          "E_SAFETENSORS_HEADER",
          format(
              "invalid JSON in header: data_offsets of tensor `{}` has {} "
              "numbers; expected 2",
              escape(entry.name),
              count),
          at);
    }
    return {};
  }

  Status unknown_field(std::string_view tensor, std::string_view field) {
    warn(format(
        "tensor `{}` has the unknown field `{}`",
        escape(tensor),
        escape(field)));
    return json_.skip_value();
  }

  void warn(std::string text) {
    if (header_.warnings.size() < kMaxWarnings) {
      header_.warnings.push_back(
          {.name = "W_SAFETENSORS_FIELD", .text = std::move(text)});
    }
  }

  JsonScanner json_;
  Limits limits_;
  SafetensorsHeader header_;
};

// Bytes that shape and type ask for.
Result<std::uint64_t> bytes_of(const SafetensorsEntry& entry) {
  // Of all elements, empty dimensions aside: strides must not overflow.
  std::uint64_t bits = entry.type->bits;
  bool is_empty = false;
  for (const std::int64_t size : entry.shape) {
    is_empty = is_empty || size == 0;
    const auto count =
        static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1));
    if (__builtin_mul_overflow(bits, count, &bits) ||
        !std::in_range<std::int64_t>(bits)) {
      return overflow(entry);
    }
  }
  bits = is_empty ? 0 : bits;
  const bool is_packed = entry.type->bits < 8;
  const bool has_whole_rows =
      !is_packed || (!entry.shape.empty() && entry.shape.back() % 2 == 0);
  if (bits % 8 != 0 || !has_whole_rows) {
    return bad_header(
        "E_SAFETENSORS_LAYOUT",
        format(
            "the rows of tensor `{}` do not fill whole bytes",
            escape(entry.name)),
        entry.header_offset);
  }
  return bits / 8;
}

Status check_entry(const SafetensorsEntry& entry, std::uint64_t expected) {
  if (entry.begin != expected || entry.end < entry.begin) {
    return bad_header(
        "E_SAFETENSORS_LAYOUT",
        format(
            "invalid offset for tensor `{}`; expected {}, got {} to {}",
            escape(entry.name),
            expected,
            entry.begin,
            entry.end),
        entry.header_offset);
  }
  LOCKSTEP_ASSIGN(const std::uint64_t bytes, bytes_of(entry));
  if (entry.end - entry.begin != bytes) {
    return bad_header(
        "E_SAFETENSORS_LAYOUT",
        format(
            "invalid shape, data type, or offset for tensor `{}`; expected {} "
            "bytes, got {}",
            escape(entry.name),
            bytes,
            entry.end - entry.begin),
        entry.header_offset);
  }
  return {};
}

// The tensors tile the data from its start to the end of the file.
Status check_layout(SafetensorsHeader& header, std::uint64_t file_bytes) {
  std::ranges::stable_sort(
      header.tensors,
      {},
      [](const SafetensorsEntry& entry) {
        return std::pair(entry.begin, entry.end);
      });
  std::uint64_t position = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
    LOCKSTEP_TRY(check_entry(entry, position));
    position = entry.end;
  }
  const std::uint64_t data_bytes = file_bytes - header.data_offset;
  if (position == data_bytes) {
    return {};
  }
  return bad_header(
      "E_SAFETENSORS_LAYOUT",
      format(
          "incomplete metadata, file not fully covered; expected {} bytes of "
          "data, got {}",
          position,
          data_bytes),
      header.data_offset,
      position > data_bytes ? "the file is truncated: download it again" : "");
}

} // namespace

Result<SafetensorsHeader> read_safetensors_header(
    ByteSource& source,
    const Limits& limits) {
  LOCKSTEP_ASSIGN(const std::uint64_t length, read_length(source));
  std::vector<std::byte> scratch;
  LOCKSTEP_ASSIGN(
      const ByteSpan bytes,
      source.view(kSafetensorsLengthBytes, length, scratch));
  const std::string_view text = as_text(bytes);
  LOCKSTEP_TRY(check_utf8(text));
  LOCKSTEP_ASSIGN(SafetensorsHeader header, HeaderParser(text, limits).run());
  header.data_offset = kSafetensorsLengthBytes + length;
  LOCKSTEP_TRY(check_layout(header, source.size()));
  return header;
}

} // namespace lockstep::ckpt
