// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/csv_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return "";
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Lines of old Macs end with a carriage return alone.
std::string with_line_feeds(std::string text) {
  if (text.find('\n') == std::string::npos) {
    std::ranges::replace(text, '\r', '\n');
  }
  return text;
}

// Takes rows off the front of a text.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path)
      : text_(text), path_(path) {
    if (text_.starts_with(kByteOrderMark)) {
      text_.remove_prefix(kByteOrderMark.size());
    }
    const std::string_view first = text_.substr(0, text_.find('\n'));
    for (const char mark : {',', ';', '\t'}) {
      if (first.find(mark) != std::string_view::npos) {
        separator_ = mark;
        break;
      }
    }
  }

  /// False at the end. Appends the cells of the next row that is not empty.
  bool next(std::vector<std::string>& cells) {
    skip_empty_lines();
    row_line_ = line_;
    if (text_.empty()) {
      return false;
    }
    do {
      cells.push_back(cell());
    } while (goes_on());
    return true;
  }
  /// Of the row that was taken last.
  [[nodiscard]] std::int64_t line() const {
    return row_line_;
  }

 private:
  void skip_empty_lines() {
    for (;;) {
      const auto end = text_.find('\n');
      const std::string_view line = text_.substr(0, end);
      if (!without_blanks(line).empty() || text_.empty()) {
        return;
      }
      if (line.find(separator_) != std::string_view::npos) {
        return; // cells between tabs
      }
      take_line(end);
    }
  }

  void take_line(std::size_t end) {
    text_ = end == std::string_view::npos ? std::string_view()
                                          : text_.substr(end + 1);
    ++line_;
  }

  // Whether another cell of the row follows.
  bool goes_on() {
    if (text_.empty()) {
      return false;
    }
    const bool is_separator = text_[0] == separator_;
    if (is_separator) {
      text_.remove_prefix(1);
    } else {
      take_line(0);
    }
    return is_separator;
  }

  std::string cell() {
    const auto first = text_.find_first_not_of(' ');
    if (first != std::string_view::npos && text_[first] == '"') {
      text_.remove_prefix(first + 1);
      return quoted();
    }
    const std::array stops{separator_, '\n'};
    const auto end = std::min(
        text_.size(),
        text_.find_first_of(std::string_view(stops.data(), stops.size())));
    std::string found(without_blanks(text_.substr(0, end)));
    text_.remove_prefix(end);
    return found;
  }

  std::string quoted() {
    std::string found;
    for (;;) {
      const auto quote = text_.find('"');
      if (quote == std::string_view::npos) {
        bad_csv(path_, row_line_, "a quote is not closed");
      }
      found += text_.substr(0, quote);
      line_ += std::ranges::count(text_.substr(0, quote), '\n');
      text_.remove_prefix(quote + 1);
      if (!text_.starts_with('"')) {
        break;
      }
      found += '"'; // two stand for one
      text_.remove_prefix(1);
    }
    const std::array stops{separator_, '\n'};
    const auto end = std::min(
        text_.size(),
        text_.find_first_of(std::string_view(stops.data(), stops.size())));
    if (!without_blanks(text_.substr(0, end)).empty()) {
      bad_csv(path_, line_, "text follows a cell in quotes");
    }
    text_.remove_prefix(end);
    return found;
  }

  std::string_view text_;
  const std::string& path_;
  char separator_ = ',';
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;
};

void check_columns(const CsvFile& csv) {
  const auto is_number = [](const std::string& name) {
    return parse_number<double>(name).has_value();
  };
  if (std::ranges::all_of(csv.columns, is_number)) {
    bad_csv(
        csv.path,
        1,
        "the first line has numbers only; expected names of columns",
        "put a line of names in front: x0,x1,y");
  }
  std::vector<std::string> sorted = csv.columns;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) {
    bad_csv(csv.path, 1, format("two columns are called '{}'", escape(*twice)));
  }
}

} // namespace

void bad_csv(
    const std::string& path,
    std::int64_t line,
    const std::string& message,
    std::string hint) {
  raise(
      {.code = ErrorCode::kCorrupt,
       .op = "data.csv",
       .message = format("line {}: {}", line, message),
       .hint = std::move(hint),
       .path = path,
       .detail = "E_CSV"});
}

CsvFile read_csv(FileSystem& fs, const std::string& path) {
  const std::string text = with_line_feeds(read_text(fs, path).value());
  const std::size_t good = utf8_prefix(text);
  if (good != text.size() || text.find('\0') != std::string::npos) {
    bad_csv(
        path,
        1 + std::ranges::count(std::string_view(text).substr(0, good), '\n'),
        "the file is no UTF-8 text",
        "save the table as CSV in UTF-8");
  }
  Parser parser(text, path);
  CsvFile csv{.path = path};
  if (!parser.next(csv.columns)) {
    bad_csv(path, 1, "the table is empty");
  }
  check_columns(csv);
  for (;;) {
    const std::size_t before = csv.cells.size();
    if (!parser.next(csv.cells)) {
      return csv;
    }
    const std::size_t count = csv.cells.size() - before;
    if (count != csv.columns.size()) {
      bad_csv(
          path,
          parser.line(),
          format(
              "expected {} cells, as there are columns, got {}",
              csv.columns.size(),
              count));
    }
    csv.lines.push_back(parser.line());
  }
}

std::vector<std::string> csv_columns(FileSystem& fs, const std::string& path) {
  constexpr std::uint64_t kFirst = 1 << 16;
  const auto file = fs.open_read(path);
  if (!file) {
    return {};
  }
  std::string head(std::min((*file)->size(), kFirst), '\0');
  const auto bytes = std::as_writable_bytes(std::span(head));
  std::vector<std::string> columns;
  if (!(*file)->read_at(0, bytes)) {
    return {};
  }
  try {
    const std::string text = with_line_feeds(std::move(head));
    Parser(text, path).next(columns);
  } catch (const Exception&) {
    return {};
  }
  return columns;
}

} // namespace lockstep::internal
