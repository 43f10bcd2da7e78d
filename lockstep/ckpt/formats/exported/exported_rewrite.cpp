// SPDX-License-Identifier: BSD-3-Clause
//
// The program of a file with other weights. Names, shapes and element types are
// the graph's; what the storages hold may change.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/core/row_major.h"
#include "lockstep/ckpt/core/save_error.h"
#include "lockstep/ckpt/formats/exported/exported_checkpoint.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

using internal::MadeSource;

/// A weight and the tensor that takes its place.
struct NewWeight {
  const ExportedWeight* weight = nullptr;
  const Tensor* tensor = nullptr;
};

Error tied_error(std::string message, std::string hint) {
  return internal::save_error(
      ErrorCode::kUnsupported,
      "E_PROGRAM_TIED",
      std::move(message),
      std::move(hint));
}

// Calls `visit` with a place in `bytes` and the element that belongs there.
template <class Visit>
Status for_each_place(const NewWeight& row, Visit visit) {
  const std::size_t size = dtype_info(row.tensor->dtype).size;
  internal::RowMajor place(row.weight->tensor);
  return for_each_block(*row.tensor, [&](ByteSpan block) {
    for (; block.size() >= size; block = block.subspan(size)) {
      visit(place.offset() * size, block.first(size));
      place.next();
    }
    return Status();
  });
}

// A record as it will be: what no weight views stays as it was.
Result<std::vector<std::byte>> new_bytes(const std::vector<NewWeight>& rows) {
  LOCKSTEP_ASSIGN(
      const ByteSpan old,
      rows.front().weight->tensor.storage->source->load());
  std::vector<std::byte> bytes(old.begin(), old.end());
  for (const NewWeight& row : rows) {
    LOCKSTEP_TRY(for_each_place(row, [&](std::size_t at, ByteSpan element) {
      std::memcpy(bytes.data() + at, element.data(), element.size());
    }));
  }
  return bytes;
}

/// Made again when it is written, so that one record is in memory at a time.
class NewRecord final : public MadeSource {
 public:
  explicit NewRecord(std::vector<NewWeight> rows, Value root)
      : rows_(std::move(rows)), root_(std::move(root)) {}

  Status stream(const BlockVisitor& visit) override {
    LOCKSTEP_ASSIGN(const auto bytes, new_bytes(rows_));
    return visit(ByteSpan(bytes));
  }

 private:
  std::vector<NewWeight> rows_;
  Value root_; // owns the tensors
};

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.storage == b.storage && a.dtype == b.dtype && a.sizes == b.sizes &&
         a.strides == b.strides && a.offset == b.offset &&
         a.is_conj == b.is_conj && a.is_neg == b.is_neg;
}

class Rewriter {
 public:
  Rewriter(
      const Checkpoint& file,
      const Value& root,
      std::uint64_t max_expanded_bytes)
      : file_(file), root_(root), budget_(max_expanded_bytes) {}

  using Records = std::map<std::string, std::shared_ptr<Storage>>;

  Result<Records> run() {
    const auto& models = file_.program->models;
    if (models.size() == 1) {
      add(models[0], &file_.root, &root_, "");
    } else {
      const Entries old = entries_of(&file_.root);
      const Entries now = entries_of(&root_);
      for (const ExportedModel& model : models) {
        add(model,
            entry_of(old, model.name),
            entry_of(now, model.name),
            model.name + ".");
      }
    }
    LOCKSTEP_TRY(check());
    LOCKSTEP_TRY(check_shared());
    return records();
  }

 private:
  // Entries of a dict by their keys, which are texts.
  using Entries = std::map<std::string_view, const Value*, std::less<>>;

  static Entries entries_of(const Value* value) {
    Entries entries;
    const Dict* dict = nullptr;
    if (value != nullptr) {
      dict = value->as_dict();
    }
    for (std::size_t i = 0; dict != nullptr && i < dict->items.size(); ++i) {
      const auto& [key, entry] = dict->items[i];
      if (key.as_string() != nullptr) {
        entries.emplace(key.text(), &entry);
      }
    }
    return entries;
  }
  static const Value* entry_of(const Entries& entries, std::string_view key) {
    const auto found = entries.find(key);
    return found == entries.end() ? nullptr : found->second;
  }
  // One program: its state_dict, or that beside its constants.
  void add(
      const ExportedModel& model,
      const Value* before,
      const Value* after,
      const std::string& front) {
    const Entries old = entries_of(before);
    const Entries now = entries_of(after);
    if (before == nullptr || !has_constants(*before)) {
      compare(model, old, now, front, false);
      return;
    }
    for (const std::string_view part : {kExportedState, kExportedConstants}) {
      compare(
          model,
          entries_of(entry_of(old, part)),
          entries_of(entry_of(now, part)),
          front + std::string(part) + ".",
          part == kExportedConstants);
    }
    for (const auto& [key, value] : now) {
      if (!old.contains(key)) {
        add_foreign(front, key);
      }
    }
  }

  void add_foreign(const std::string& front, std::string_view name) {
    problems_.push_back(format(
        "'{}' is no weight of the program",
        escape(front + std::string(name))));
  }

  // Every name that was there is there, and no other.
  void compare(
      const ExportedModel& model,
      const Entries& old,
      const Entries& now,
      const std::string& front,
      bool are_constants) {
    for (const auto& [name, value] : now) {
      if (!old.contains(name)) {
        add_foreign(front, name);
      }
    }
    for (const auto& [name, value] : old) {
      const Value* same = entry_of(now, name);
      const ExportedWeight* weight = model.find_weight(name, are_constants);
      if (same == nullptr) {
        problems_.push_back(
            format("'{}' is missing", escape(front + std::string(name))));
      } else if (weight != nullptr) {
        add(*weight, *value, *same);
      }
    }
  }

  void add(const ExportedWeight& weight, const Value& old, const Value& now) {
    if (old.address() != nullptr && old.address() == now.address()) {
      if (!weight.is_pickle) {
        const Tensor* same = now.as_tensor();
        rows_[weight.record].push_back({.weight = &weight, .tensor = same});
      }
      return;
    }
    const Tensor* tensor = now.as_tensor();
    if (weight.is_pickle || weight.is_packed) {
      has_pickles_ = true;
      problems_.push_back(format(
          "'{}' lies in a pickle, which stays as it is",
          escape(weight.name)));
    } else if (tensor == nullptr || !has_bytes(*tensor)) {
      problems_.push_back(
          format("'{}' is no tensor with bytes", escape(weight.name)));
    } else if (
        tensor->dtype != weight.tensor.dtype ||
        tensor->sizes != weight.tensor.sizes) {
      problems_.push_back(format(
          "'{}' is {} in the program, got {}",
          escape(weight.name),
          describe(weight.tensor),
          describe(*tensor)));
    } else {
      if (!is_same_view(*tensor, weight.tensor)) {
        changed_.insert(weight.record);
      }
      rows_[weight.record].push_back({.weight = &weight, .tensor = tensor});
    }
  }

  [[nodiscard]] Status check() const {
    if (problems_.empty()) {
      return {};
    }
    return tied_error(
        format(
            "names, shapes and element types of a .pt2 file are those of its "
            "graph: {}",
            some_problems()),
        has_pickles_
            ? "'lockstep ckpt convert IN.pt2 OUT.pt' takes the weights out; "
              "those of a program that torch 2.9 or newer exports can be "
              "replaced"
            : "'lockstep ckpt convert IN.pt2 OUT.pt' takes the weights out, "
              "and 'lockstep ckpt merge IN.pt2 WEIGHTS.pt OUT.pt2 --replace' "
              "puts such weights into the graph");
  }

  [[nodiscard]] std::string some_problems() const {
    constexpr std::size_t kShown = 20;
    std::vector<std::string> shown(
        problems_.begin(),
        problems_.begin() +
            static_cast<std::ptrdiff_t>(std::min(problems_.size(), kShown)));
    if (problems_.size() > kShown) {
      shown.push_back(format("{} more", problems_.size() - kShown));
    }
    return join(shown, "; ");
  }

  // Weights of one record share memory: what one has, the others show.
  Status check_shared() {
    for (const std::string& record : changed_) {
      const std::vector<NewWeight>& rows = rows_.at(record);
      for (const NewWeight& row : rows) {
        LOCKSTEP_TRY(budget_.add(*row.tensor));
      }
      LOCKSTEP_ASSIGN(const auto bytes, new_bytes(rows));
      for (const NewWeight& row : rows) {
        bool is_equal = true;
        LOCKSTEP_TRY(for_each_place(row, [&](std::size_t at, ByteSpan element) {
          is_equal =
              is_equal &&
              std::memcmp(bytes.data() + at, element.data(), element.size()) ==
                  0;
        }));
        if (!is_equal) {
          problems_.push_back(format(
              "'{}' shares memory with others and has other values than they",
              escape(row.weight->name)));
        }
      }
    }
    return check();
  }

  [[nodiscard]] Records records() const {
    Records records;
    for (const std::string& record : changed_) {
      const std::vector<NewWeight>& rows = rows_.at(record);
      auto storage = std::make_shared<Storage>(
          Storage{.nbytes = rows.front().weight->tensor.storage->nbytes});
      storage->source = std::make_shared<NewRecord>(rows, root_);
      records.emplace(record, std::move(storage));
    }
    return records;
  }

  const Checkpoint& file_;
  const Value& root_;
  ExpansionBudget budget_;
  std::map<std::string, std::vector<NewWeight>> rows_;
  std::set<std::string> changed_;
  std::vector<std::string> problems_;
  // Some of them are weights that lie in pickles.
  bool has_pickles_ = false;
};

} // namespace

Status rewrite_exported(
    const Checkpoint& file,
    const Value& root,
    const std::string& path,
    const WriteOptions& options,
    FileSystem& fs) {
  LOCKSTEP_ASSIGN(
      const auto records,
      Rewriter(file, root, options.max_expanded_bytes).run());
  return write_exported(path, *file.program, records, options, fs);
}

Status write_no_program(
    const std::string& path,
    const Value& /*root*/,
    const WriteOptions& /*options*/,
    FileSystem& /*fs*/) {
  Error error = tied_error(
      "a .pt2 file holds a graph, which is in no other file",
      "torch.export.save writes one; 'lockstep ckpt merge IN.pt2 WEIGHTS.pt "
      "OUT.pt2 --replace' puts weights into it");
  error.path = path;
  return error;
}

} // namespace lockstep::ckpt
