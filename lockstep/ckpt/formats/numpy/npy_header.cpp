// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/numpy/npy_header.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

constexpr int kMaxFieldDepth = 32;

Error bad_npy(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::uint64_t offset) {
  Error error = read_error(code, detail, std::move(message));
  error.offset = offset;
  return error;
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
    if (descr_.empty() || !has_order_ || !has_shape_) {
      return error("a key is missing; expected descr, fortran_order, shape");
    }
    if (!type_) { // last, so that it vouches for all of the header
      return bad_npy(
          ErrorCode::kUnsupported,
          "E_DTYPE",
          format(
              "the array has the element type {}, which PyTorch does not have",
              escape(descr_)),
          base_ + descr_at_);
    }
    header_.type = *type_;
    return std::move(header_);
  }

 private:
  Status entry() {
    LOCKSTEP_ASSIGN(const std::string key, string());
    LOCKSTEP_TRY(expect(':'));
    if (key == "descr" && descr_.empty()) {
      return descr();
    }
    if (key == "fortran_order" && !std::exchange(has_order_, true)) {
      return boolean();
    }
    if (key == "shape" && !std::exchange(has_shape_, true)) {
      return shape(header_.shape);
    }
    return error(format("key '{}' is unknown or appears twice", escape(key)));
  }

  // Types of the array's elements: '<f4', or [('x', '<f4'), ...] with parts of
  // the same forms.
  Status descr() {
    const bool is_structure = next() == '[';
    descr_at_ = at_;
    LOCKSTEP_TRY(is_structure ? fields(type_, 0) : plain(type_));
    descr_ = text_.substr(descr_at_, at_ - descr_at_);
    return {};
  }

  Status plain(std::optional<NumpyDType>& type, const std::string& field = "") {
    next();
    const std::uint64_t at = base_ + at_;
    LOCKSTEP_ASSIGN(const std::string name, string());
    if (is_numpy_object(name)) {
      return bad_npy(
          ErrorCode::kUnsafe,
          "E_NPY_OBJECT",
          "the array holds Python objects: a pickle that can run code",
          at);
    }
    if (!is_plain_numpy(name)) {
      return bad_npy(
          ErrorCode::kUnsupported,
          "E_NPY_HEADER",
          format("the element type '{}' is unknown", escape(name)),
          at);
    }
    type = field.empty() ? numpy_dtype(name) : numpy_dtype(field, name);
    return {};
  }

  Status fields(std::optional<NumpyDType>& type, int depth) {
    if (depth == kMaxFieldDepth) {
      return error("structures are nested too deeply");
    }
    std::size_t count = 0;
    LOCKSTEP_TRY(expect('['));
    while (!accept(']')) {
      LOCKSTEP_TRY(one_field(type, depth));
      ++count;
      if (!accept(',')) {
        LOCKSTEP_TRY(expect(']'));
        break;
      }
    }
    type = count == 1 && depth == 0 ? type : std::nullopt;
    return {};
  }

  // ('name', '<f4'), (('title', 'name'), '<f4') or ('name', '<f4', (2, 3))
  Status one_field(std::optional<NumpyDType>& type, int depth) {
    LOCKSTEP_TRY(expect('('));
    std::string name;
    if (accept('(')) {
      LOCKSTEP_TRY(string());
      LOCKSTEP_TRY(expect(','));
      LOCKSTEP_TRY(string());
      LOCKSTEP_TRY(expect(')'));
    } else {
      LOCKSTEP_ASSIGN(name, string());
    }
    LOCKSTEP_TRY(expect(','));
    LOCKSTEP_TRY(
        next() == '[' ? fields(type, depth + 1)
                      : plain(type, name.empty() ? "-" : name));
    if (accept(',') && next() == '(') {
      type.reset();
      LOCKSTEP_TRY(shape(field_shape_));
      field_shape_.clear();
    }
    return expect(')');
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

  Status shape(std::vector<std::int64_t>& sizes) {
    LOCKSTEP_TRY(expect('('));
    while (!accept(')')) {
      LOCKSTEP_TRY(dimension(sizes));
      if (!accept(',')) {
        // (3) would be a number, not a tuple
        if (sizes.size() < 2) {
          return error("shape is not a tuple");
        }
        return expect(')');
      }
    }
    return {};
  }

  Status dimension(std::vector<std::int64_t>& sizes) {
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
    if (sizes.size() == kMaxDimensions) {
      return bad_npy(
          ErrorCode::kCorrupt,
          "E_RANK",
          format("the array has more than {} dimensions", kMaxDimensions),
          base_ + begin);
    }
    sizes.push_back(value);
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
  std::size_t descr_at_ = 0;
  std::string_view descr_;
  std::optional<NumpyDType> type_;
  bool has_order_ = false;
  bool has_shape_ = false;
  std::vector<std::int64_t> field_shape_;
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
  const Error ends = bad_npy(
      ErrorCode::kCorrupt,
      "E_TRUNCATED",
      "the array ends inside its header",
      head.size());
  if (head.size() < kVersionAt + 2 + 2) {
    return ends;
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
    return ends;
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

} // namespace lockstep::ckpt
