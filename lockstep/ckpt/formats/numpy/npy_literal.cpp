// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/numpy/npy_literal.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr int kMaxFieldDepth = 32;

// Of arrays that are sound, but no tensors.
struct Help {
  std::string_view detail = {};
  std::string_view hint = {};
};
constexpr std::array kHelp{
    Help{
        "E_DTYPE",
        "numpy.load reads it in Python; an array of numbers is a tensor"},
    Help{
        "E_NPY_OBJECT",
        "'lockstep ckpt scan' lists what it calls; an array of numbers is a "
        "tensor"}};

// The three keys, read once each.
class LiteralParser {
 public:
  LiteralParser(std::string_view text, std::uint64_t base)
      : text_(text), base_(base) {}

  Result<NpyLiteral> run() {
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
    if (literal_.descr.empty() || !has_order_ || !has_shape_) {
      return error("a key is missing; expected descr, fortran_order, shape");
    }
    return std::move(literal_);
  }

 private:
  Status entry() {
    LOCKSTEP_ASSIGN(const std::string key, string());
    LOCKSTEP_TRY(expect(':'));
    if (key == "descr" && literal_.descr.empty()) {
      return descr();
    }
    if (key == "fortran_order" && !std::exchange(has_order_, true)) {
      return boolean();
    }
    if (key == "shape" && !std::exchange(has_shape_, true)) {
      return sizes(literal_.shape);
    }
    return error(format("key '{}' is unknown or appears twice", escape(key)));
  }

  // Types of the array's elements: '<f4', or [('x', '<f4'), ...] with parts of
  // the same forms.
  Status descr() {
    const bool is_structure = next() == '[';
    const std::size_t begin = at_;
    literal_.descr_offset = base_ + begin;
    LOCKSTEP_TRY(
        is_structure ? fields(literal_.type, 0) : plain(literal_.type));
    literal_.descr = text_.substr(begin, at_ - begin);
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
    literal_.item_bytes = plain_numpy_bytes(name);
    return {};
  }

  Status fields(std::optional<NumpyDType>& type, int depth) {
    if (depth == kMaxFieldDepth) {
      return error("structures are nested too deeply");
    }
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    LOCKSTEP_TRY(expect('['));
    while (!accept(']')) {
      LOCKSTEP_TRY(one_field(type, depth));
      bytes = __builtin_add_overflow(bytes, literal_.item_bytes, &bytes)
                  ? kUnknownBytes
                  : bytes;
      ++count;
      if (!accept(',')) {
        LOCKSTEP_TRY(expect(']'));
        break;
      }
    }
    type = count == 1 && depth == 0 ? type : std::nullopt;
    literal_.item_bytes = bytes;
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
      LOCKSTEP_TRY(sizes(field_shape_));
      literal_.item_bytes = npy_array_bytes(literal_.item_bytes, field_shape_)
                                .value_or(kUnknownBytes);
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
        literal_.fortran_order = value;
        return {};
      }
    }
    return error("fortran_order is neither True nor False");
  }

  Status sizes(std::vector<std::int64_t>& sizes) {
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
    char quote = next();
    if (quote == 'u') { // Python 2
      quote = ++at_ < text_.size() ? text_[at_] : '\0';
    }
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
    at_ = std::min(text_.find_first_not_of(" \t\r\n\f", at_), text_.size());
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
  bool has_order_ = false;
  bool has_shape_ = false;
  std::vector<std::int64_t> field_shape_;
  // Its `item_bytes` are those of the part that was read last: in the end, of
  // the whole type.
  NpyLiteral literal_;
};

} // namespace

Error bad_npy(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::uint64_t offset) {
  Error error = read_error(code, detail, std::move(message));
  const auto* row = std::ranges::find(kHelp, detail, &Help::detail);
  error.hint = row == kHelp.end() ? "" : row->hint;
  error.offset = offset;
  return error;
}

std::optional<std::uint64_t> npy_array_bytes(
    std::uint64_t item_bytes,
    const std::vector<std::int64_t>& shape) {
  std::uint64_t bytes = item_bytes;
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    is_empty = is_empty || size == 0;
    const auto count =
        static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1));
    if (__builtin_mul_overflow(bytes, count, &bytes) ||
        !std::in_range<std::int64_t>(bytes)) {
      return std::nullopt;
    }
  }
  return is_empty ? 0 : bytes;
}

Result<NpyLiteral> read_npy_literal(std::string_view text, std::uint64_t base) {
  return LiteralParser(text, base).run();
}

} // namespace lockstep::ckpt::internal
