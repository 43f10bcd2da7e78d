// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/numpy/npy_header.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kNpyMagic("\x93NUMPY");
constexpr std::size_t kAlignment = 64;

Error bad_npy(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::uint64_t offset) {
  return {
      .code = code,
      .op = "ckpt.read",
      .message = std::move(message),
      .offset = offset,
      .detail = std::string(detail)};
}

// The three keys, read once each.
class LiteralParser {
 public:
  LiteralParser(std::string_view text, std::uint64_t base)
      : text_(text), base_(base) {}

  Result<NpyHeader> run() {
    LOCKSTEP_TRY(expect('{'));
    while (!accept('}')) {
      LOCKSTEP_TRY(entry());
      if (!accept(',')) {
        LOCKSTEP_TRY(expect('}'));
        break;
      }
    }
    if (next() != '\0' || at_ != text_.size()) {
      return error("text follows the dictionary");
    }
    if (!has_descr_ || !has_order_ || !has_shape_) {
      return error("a key is missing; expected descr, fortran_order, shape");
    }
    return std::move(header_);
  }

 private:
  Status entry() {
    LOCKSTEP_ASSIGN(const std::string key, string());
    LOCKSTEP_TRY(expect(':'));
    if (key == "descr" && !std::exchange(has_descr_, true)) {
      return next() == '[' ? structure() : plain_descr();
    }
    if (key == "fortran_order" && !std::exchange(has_order_, true)) {
      return boolean();
    }
    if (key == "shape" && !std::exchange(has_shape_, true)) {
      return shape();
    }
    return error(format("key '{}' is unknown or appears twice", escape(key)));
  }

  Status plain_descr() {
    const std::size_t at = at_;
    LOCKSTEP_ASSIGN(const std::string descr, string());
    if (is_numpy_object(descr)) {
      return object_array(at);
    }
    return take(numpy_dtype(descr), descr, at);
  }

  // [('bfloat16', '<u2')]; of others only the types are looked at.
  Status structure() {
    const std::size_t at = at_;
    std::string field;
    std::string descr;
    const std::size_t end = text_.find(']', at_);
    const std::string_view whole = text_.substr(at_, end - at_ + 1);
    if (whole.find("O'") != std::string_view::npos ||
        whole.find("O\"") != std::string_view::npos) {
      return object_array(at);
    }
    LOCKSTEP_TRY(expect('['));
    LOCKSTEP_TRY(expect('('));
    LOCKSTEP_ASSIGN(field, string());
    LOCKSTEP_TRY(expect(','));
    if (next() == '[') {
      return take(std::nullopt, whole, at);
    }
    LOCKSTEP_ASSIGN(descr, string());
    const bool is_single = accept(')') && (accept(',') || true) && accept(']');
    return take(
        is_single ? numpy_dtype(field, descr) : std::nullopt,
        whole,
        at);
  }

  Status take(
      const std::optional<NumpyDType>& type,
      std::string_view descr,
      std::size_t at) {
    if (!type) {
      return bad_npy(
          ErrorCode::kUnsupported,
          "E_DTYPE",
          format(
              "the array has the element type {}, which PyTorch does not have",
              escape(descr)),
          base_ + at);
    }
    header_.type = *type;
    return {};
  }

  [[nodiscard]] Status object_array(std::size_t at) const {
    return bad_npy(
        ErrorCode::kUnsafe,
        "E_NPY_OBJECT",
        "the array holds Python objects: a pickle that can run code",
        base_ + at);
  }

  Status boolean() {
    next();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        header_.fortran_order = value;
        return {};
      }
    }
    return error("fortran_order is neither True nor False");
  }

  Status shape() {
    LOCKSTEP_TRY(expect('('));
    while (!accept(')')) {
      LOCKSTEP_TRY(dimension());
      if (!accept(',')) {
        // (3) would be a number, not a tuple
        if (header_.shape.size() < 2) {
          return error("shape is not a tuple");
        }
        return expect(')');
      }
    }
    return {};
  }

  Status dimension() {
    next();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        return bad_npy(
            ErrorCode::kCorrupt,
            "E_OVERFLOW",
            "a dimension of the array does not fit in 64 bits",
            base_ + begin);
      }
      ++at_;
    }
    if (at_ == begin) {
      return error("shape holds something other than sizes");
    }
    if (at_ < text_.size() && text_[at_] == 'L') {
      ++at_; // Python 2
    }
    if (header_.shape.size() == kMaxDimensions) {
      return bad_npy(
          ErrorCode::kCorrupt,
          "E_RANK",
          format("the array has more than {} dimensions", kMaxDimensions),
          base_ + begin);
    }
    header_.shape.push_back(value);
    return {};
  }

  // No escapes: names of types need none.
  Result<std::string> string() {
    const char quote = next();
    if (quote != '\'' && quote != '"') {
      return error("expected a string");
    }
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) {
      return error("unterminated string");
    }
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    if (value.find('\\') != std::string::npos) {
      return error("a string contains a backslash");
    }
    at_ = end + 1;
    return value;
  }

  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (next() != c || at_ == text_.size()) {
      return false;
    }
    ++at_;
    return true;
  }

  Status expect(char c) {
    return accept(c)
               ? Status()
               : Status(error(format("expected '{}'", std::string(1, c))));
  }

  [[nodiscard]] Error error(std::string_view why) const {
    return bad_npy(
        ErrorCode::kCorrupt,
        "E_NPY_HEADER",
        format("invalid array header: {}", why),
        base_ + at_);
  }

  std::string_view text_;
  std::uint64_t base_;
  std::size_t at_ = 0;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
  NpyHeader header_;
};

// Where the literal lies.
struct LiteralPlace {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

Result<LiteralPlace> find_literal(ByteSpan head, std::uint64_t total) {
  constexpr std::size_t kVersionAt = 6;
  const auto byte = [&head](std::size_t at) {
    return static_cast<std::uint64_t>(head[at]);
  };
  if (head.size() < kVersionAt + 2 + 2) {
    return bad_npy(
        ErrorCode::kCorrupt,
        "E_TRUNCATED",
        "the array ends inside its header",
        head.size());
  }
  const std::uint64_t major = byte(kVersionAt);
  if (major < 1 || major > 3 || byte(kVersionAt + 1) != 0) {
    return bad_npy(
        ErrorCode::kUnsupported,
        "E_NPY_HEADER",
        format(
            "npy version {}.{}; expected 1.0, 2.0 or 3.0",
            major,
            byte(kVersionAt + 1)),
        kVersionAt);
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  LiteralPlace place{.offset = kVersionAt + 2 + length_bytes};
  if (place.offset > head.size()) {
    return bad_npy(
        ErrorCode::kCorrupt,
        "E_TRUNCATED",
        "the array ends inside its header",
        head.size());
  }
  for (std::size_t i = length_bytes; i-- > 0;) {
    place.length = place.length << 8 | byte(kVersionAt + 2 + i);
  }
  if (place.length > kMaxNpyHeader || place.length > total - place.offset) {
    return bad_npy(
        ErrorCode::kCorrupt,
        "E_NPY_HEADER",
        format(
            "the header of the array claims {} bytes; expected at most {}",
            place.length,
            std::min(kMaxNpyHeader, total - place.offset)),
        kVersionAt + 2);
  }
  return place;
}

Status set_size(NpyHeader& header, std::uint64_t total) {
  // Of all elements, empty dimensions aside: strides must not overflow.
  std::uint64_t bytes = dtype_info(header.type.dtype).size;
  bool is_empty = false;
  for (const std::int64_t size : header.shape) {
    is_empty = is_empty || size == 0;
    const auto count =
        static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1));
    if (__builtin_mul_overflow(bytes, count, &bytes) ||
        !std::in_range<std::int64_t>(bytes)) {
      return bad_npy(
          ErrorCode::kCorrupt,
          "E_OVERFLOW",
          "size of the array does not fit in 64 bits",
          0);
    }
  }
  bytes = is_empty ? 0 : bytes;
  if (bytes > total - header.data_offset) {
    return bad_npy(
        ErrorCode::kCorrupt,
        "E_TRUNCATED",
        format(
            "the array is truncated; expected {} bytes of elements, got {}",
            bytes,
            total - header.data_offset),
        header.data_offset);
  }
  header.data_bytes = bytes;
  return {};
}

} // namespace

bool is_npy(ByteSpan head) {
  const std::string_view text = as_text(head);
  return text.starts_with(kNpyMagic);
}

Result<NpyHeader> read_npy_header(ByteSpan head, std::uint64_t total) {
  if (!is_npy(head)) {
    return bad_npy(
        ErrorCode::kCorrupt,
        "E_NPY_HEADER",
        "this is not a NumPy array",
        0);
  }
  LOCKSTEP_ASSIGN(const LiteralPlace place, find_literal(head, total));
  const ByteSpan bytes = head.subspan(place.offset, place.length);
  const std::string_view text = as_text(bytes);
  LOCKSTEP_ASSIGN(NpyHeader header, LiteralParser(text, place.offset).run());
  header.data_offset = place.offset + place.length;
  LOCKSTEP_TRY(set_size(header, total));
  return header;
}

Result<std::uint64_t> npy_data_offset(ByteSpan head, std::uint64_t total) {
  LOCKSTEP_ASSIGN(const LiteralPlace place, find_literal(head, total));
  return place.offset + place.length;
}

std::string npy_header_text(
    DType dtype,
    const std::vector<std::int64_t>& shape) {
  constexpr std::size_t kPreamble = 10;
  constexpr std::size_t kGrowthDigits = 21; // room to append in place
  std::string literal = format(
      "{{'descr': {}, 'fortran_order': False, 'shape': (",
      numpy_descr(dtype));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    literal += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  }
  literal += shape.size() == 1 ? ",), }" : "), }";
  if (!shape.empty()) {
    literal.append(kGrowthDigits - std::to_string(shape[0]).size(), ' ');
  }
  // NumPy adds a whole block if the length fits already.
  const std::size_t used = kPreamble + literal.size() + 1;
  literal.append(kAlignment - used % kAlignment, ' ');
  literal.push_back('\n');
  std::string text(kNpyMagic);
  text += '\x01';
  text += '\0';
  text += static_cast<char>(literal.size() & 0xFF);
  text += static_cast<char>(literal.size() >> 8 & 0xFF);
  return text + literal;
}

} // namespace lockstep::ckpt
