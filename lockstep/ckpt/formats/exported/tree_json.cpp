// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/exported/model_parts_json.h"
#include "lockstep/ckpt/formats/exported/program_json.h"

namespace lockstep::ckpt {

bool ExportedTree::is_dict() const noexcept {
  constexpr std::array<std::string_view, 3> kDicts = {
      "builtins.dict",
      "collections.OrderedDict",
      "collections.defaultdict"};
  return std::ranges::find(kDicts, std::string_view(type)) != kDicts.end();
}

std::size_t ExportedTree::leaves() const noexcept {
  std::size_t sum = is_leaf() ? 1 : 0;
  for (const ExportedTree& child : children) {
    sum += child.leaves();
  }
  return sum;
}

namespace internal {
namespace {

// The version that treespec_dumps writes.
constexpr std::int64_t kProtocol = 1;
constexpr std::string_view kNamedTuple = "collections.namedtuple";

class TreeReader {
 public:
  TreeReader(
      std::string_view text,
      std::string_view record,
      const Limits& limits)
      : text_(text),
        record_(record),
        limits_(limits),
        json_(text, record, limits) {}

  Status run(ExportedTree& out) {
    std::size_t element = 0;
    LOCKSTEP_TRY(json_.scanner().elements([&] {
      ++element;
      return element == 1   ? protocol()
             : element == 2 ? node(out)
                            : json_.scanner().skip_value();
    }));
    LOCKSTEP_TRY(json_.scanner().end());
    return element == 2 ? Status()
                        : Status(json_.error("expected [version, structure]"));
  }

 private:
  Status protocol() {
    std::int64_t version = 0;
    LOCKSTEP_TRY(json_.integer(version));
    return version == kProtocol ? Status()
                                : Status(json_.error(format(
                                      "a structure of version {}; expected {}",
                                      version,
                                      kProtocol)));
  }

  Status node(ExportedTree& out) {
    const ProgramJson::Level level(json_);
    LOCKSTEP_TRY(level.status());
    std::string context;
    LOCKSTEP_TRY(json_.fields(
        {{"type", [&] { return json_.text(out.type); }},
         {"context", [&] { return this->context(context, out); }},
         {"children_spec", [&] {
            return json_.list(out.children, [this](ExportedTree& child) {
              return node(child);
            });
          }}}));
    if (out.is_dict()) {
      return dict_keys(context, out);
    }
    if (out.type == kNamedTuple) {
      out.keys = {context};
    } else if (context.starts_with('[')) {
      field_names(context, out);
    }
    return out.is_leaf() && !out.children.empty()
               ? Status(json_.error("a leaf with children before here"))
               : Status();
  }

  // JSON inside a string; an object of a defaultdict.
  Status context(std::string& out, ExportedTree& tree) {
    if (json_.scanner().starts_with('"')) {
      return json_.text(out);
    }
    if (!json_.scanner().starts_with('{')) {
      return json_.scanner().skip_value();
    }
    return json_.fields(
        {{"dict_context", [&] { return keys(json_, text_, tree.keys); }}});
  }

  // '["a", "b"]', or '[["a", "b"], ["c"]]' of a dataclass whose c is None;
  // anything else belongs to its type.
  void field_names(std::string_view context, ExportedTree& out) const {
    std::vector<std::vector<std::string>> lists(1);
    const auto read = [](ProgramJson& json, std::vector<std::string>& names) {
      return json.list(names, [&json](std::string& name) {
        return json.text(name);
      });
    };
    ProgramJson flat(context, record_, limits_);
    if (!read(flat, lists[0])) {
      lists.clear();
      ProgramJson nested(context, record_, limits_);
      const auto list = [&](std::vector<std::string>& names) {
        return read(nested, names);
      };
      if (!nested.list(lists, list) || lists.empty()) {
        return;
      }
    }
    if (lists[0].size() == out.children.size()) {
      out.fields = std::move(lists[0]);
      out.none_fields =
          lists.size() == 2 ? std::move(lists[1]) : std::vector<std::string>();
    }
  }

  Status dict_keys(const std::string& context, ExportedTree& out) {
    if (!context.empty()) {
      ProgramJson json(context, record_, limits_);
      LOCKSTEP_TRY(keys(json, context, out.keys));
    }
    return out.keys.size() == out.children.size()
               ? Status()
               : Status(json_.error(format(
                     "a dict of {} values has {} keys before here",
                     out.children.size(),
                     out.keys.size())));
  }

  static Status keys(
      ProgramJson& json,
      std::string_view text,
      std::vector<std::string>& out) {
    return json.list(out, [&](std::string& key) -> Status {
      if (json.scanner().starts_with('"')) {
        return json.text(key);
      }
      const std::uint64_t begin = json.scanner().offset();
      LOCKSTEP_TRY(json.scanner().skip_value());
      key = text.substr(begin, json.scanner().offset() - begin);
      key.resize(key.find_last_not_of(" \t\r\n") + 1);
      return {};
    });
  }

  std::string_view text_;
  std::string_view record_;
  Limits limits_;
  ProgramJson json_;
};

} // namespace

Status read_tree(
    std::string_view text,
    std::string_view record,
    const Limits& limits,
    ExportedTree& out) {
  return TreeReader(text, record, limits).run(out);
}

} // namespace internal
} // namespace lockstep::ckpt
