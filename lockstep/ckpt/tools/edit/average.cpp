// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/tools/edit/float_cast.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

/// The type of the numbers that are summed: a complex one is two of them.
std::optional<DType> part_type(DType dtype) {
  const DType part = internal::part_dtype(dtype);
  return internal::is_castable(part) ? std::optional(part) : std::nullopt;
}

/// Types that no mean is taken of: counts and masks.
bool is_count(DType dtype) {
  return dtype == DType::kBool || dtype == DType::kInt64 ||
         dtype == DType::kInt32 || dtype == DType::kInt16 ||
         dtype == DType::kInt8 || dtype == DType::kUInt8 ||
         dtype == DType::kUInt16 || dtype == DType::kUInt32 ||
         dtype == DType::kUInt64;
}

/// The mean of tensors of one shape and type, block by block: a sum in float64
/// in the order of the files.
class MeanSource final : public internal::MadeSource {
 public:
  explicit MeanSource(std::vector<Tensor> tensors)
      : tensors_(std::move(tensors)) {}

  Status stream(const BlockVisitor& visit) override {
    const DType type =
        part_type(tensors_.front().dtype).value_or(DType::kFloat64);
    std::vector<std::unique_ptr<TensorBlocks>> readers;
    readers.reserve(tensors_.size());
    for (const Tensor& tensor : tensors_) {
      readers.push_back(std::make_unique<TensorBlocks>(tensor));
    }
    std::vector<double> sums;
    std::vector<double> numbers;
    std::vector<std::byte> out;
    while (true) {
      LOCKSTEP_ASSIGN(const ByteSpan first, readers.front()->next());
      if (first.empty()) {
        return {};
      }
      const std::size_t count = first.size() / dtype_info(type).size;
      sums.assign(count, 0.0);
      numbers.resize(count);
      out.resize(first.size());
      add(first, type, numbers, sums);
      for (std::size_t i = 1; i < readers.size(); ++i) {
        LOCKSTEP_ASSIGN(const ByteSpan block, readers[i]->next());
        add(block.first(first.size()), type, numbers, sums);
      }
      for (double& sum : sums) {
        sum /= static_cast<double>(tensors_.size());
      }
      internal::cast_floats(
          std::as_bytes(std::span(sums)),
          DType::kFloat64,
          out,
          type);
      LOCKSTEP_TRY(visit(ByteSpan(out)));
    }
  }

 private:
  static void add(
      ByteSpan block,
      DType type,
      std::vector<double>& numbers,
      std::vector<double>& sums) {
    internal::cast_floats(
        block,
        type,
        std::as_writable_bytes(std::span(numbers)),
        DType::kFloat64);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += numbers[i];
    }
  }

  std::vector<Tensor> tensors_;
};

using Entries = std::map<std::string, const Value*>;

class Averager {
 public:
  Averager(std::span<const NamedRoot> files, std::uint64_t max_expanded_bytes)
      : files_(files), expanded_(max_expanded_bytes) {}

  Result<Averaged> run(std::string_view weights_key) {
    for (const NamedRoot& file : files_) {
      LOCKSTEP_ASSIGN(
          WeightsPlace place,
          in_file(weights_to_edit(file.root, weights_key), file.name));
      places_.push_back(std::move(place));
      LOCKSTEP_TRY(index(places_.back(), file.name));
    }
    compare_names();
    const Dict& last = *places_.back().value.as_dict();
    Dict weights = last;
    for (auto& [key, value] : weights.items) {
      value = mean_of(key_text(key), value);
    }
    if (!problems_.empty()) {
      return refusal();
    }
    LOCKSTEP_TRY(std::move(expansion_));
    result_.weights = std::move(weights);
    LOCKSTEP_ASSIGN(const auto apart, unnamed_tensors(result_.weights));
    result_.kept.insert(result_.kept.end(), apart.begin(), apart.end());
    result_.root =
        with_weights(files_.back().root, places_.back(), result_.weights);
    return std::move(result_);
  }

 private:
  Status index(const WeightsPlace& place, const std::string& name) {
    Entries entries;
    for (const auto& [key, value] : place.value.as_dict()->items) {
      if (!entries.emplace(key_text(key), &value).second) {
        return Error{
            .code = ErrorCode::kInvalidArgument,
            .op = "ckpt.edit",
            .message = format(
                "two keys of the weights are named '{}'",
                escape(key_text(key))),
            .path = name,
            .detail = "E_AMBIGUOUS"};
      }
    }
    entries_.push_back(std::move(entries));
    return {};
  }

  void compare_names() {
    const Entries& last = entries_.back();
    for (std::size_t i = 0; i + 1 < entries_.size(); ++i) {
      for (const auto& [name, value] : entries_[i]) {
        if (!last.contains(name)) {
          problems_.push_back(format(
              "'{}' is in {} alone",
              escape(name),
              escape(files_[i].name, 200)));
        }
      }
      for (const auto& [name, value] : last) {
        if (!entries_[i].contains(name)) {
          problems_.push_back(format(
              "'{}' is missing in {}",
              escape(name),
              escape(files_[i].name, 200)));
        }
      }
    }
  }

  // What is no number is the last file's.
  Value mean_of(const std::string& name, const Value& last) {
    const Tensor* shape = last.as_tensor();
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const auto found = entries_[i].find(name);
      if (found == entries_[i].end()) {
        return last; // noted
      }
      const Tensor* tensor = found->second->as_tensor();
      if (shape == nullptr || tensor == nullptr) {
        note(name, shape == nullptr ? files_.size() - 1 : i, "is no tensor");
        return last;
      }
      if (tensor->sizes != shape->sizes || tensor->dtype != shape->dtype) {
        note(
            name,
            i,
            format(
                "is {}, not {} as in the last",
                describe(*tensor),
                describe(*shape)));
        return last;
      }
      tensors.push_back(*tensor);
    }
    if (is_count(shape->dtype)) {
      result_.kept.push_back(name);
      return last;
    }
    if (!part_type(shape->dtype) || !has_bytes(*shape)) {
      note(
          name,
          files_.size() - 1,
          format("is {}: no mean is taken of such", describe(*shape)));
      return last;
    }
    ++result_.averaged;
    return mean_tensor(name, *shape, std::move(tensors));
  }

  using ViewKey = std::vector<std::tuple<
      const Storage*,
      std::int64_t,
      std::vector<std::int64_t>,
      bool,
      bool>>;

  // Tensors that are one in every file stay one.
  Value mean_tensor(
      const std::string& name,
      const Tensor& last,
      std::vector<Tensor> tensors) {
    ViewKey key;
    for (const Tensor& tensor : tensors) {
      key.emplace_back(
          tensor.storage.get(),
          tensor.offset,
          tensor.strides,
          tensor.is_conj,
          tensor.is_neg);
    }
    Tensor mean = last;
    mean.strides = row_major_strides(last.sizes);
    mean.offset = 0;
    mean.is_conj = false;
    mean.is_neg = false;
    std::shared_ptr<Storage>& storage =
        storages_[{std::move(key), last.sizes, last.dtype}];
    if (storage == nullptr) {
      // A mean has elements of its own, however few bytes the file has for it.
      if (Status added = expanded_.add(last); !added) {
        expansion_ = in_file(
            about(std::move(added), format("tensor '{}'", escape(name))),
            files_.back().name);
        return last;
      }
      storage = std::make_shared<Storage>(Storage{
          .nbytes = contiguous_bytes(last),
          .location = last.storage->location,
          .dtype = last.dtype});
      storage->source = std::make_shared<MeanSource>(std::move(tensors));
    }
    mean.storage = storage;
    return mean;
  }

  void
  note(const std::string& name, std::size_t file, const std::string& what) {
    problems_.push_back(format(
        "'{}' in {} {}",
        escape(name),
        escape(files_[file].name, 200),
        what));
  }

  [[nodiscard]] Error refusal() const {
    constexpr std::size_t kShown = 30;
    std::vector<std::string> shown(
        problems_.begin(),
        problems_.begin() +
            static_cast<std::ptrdiff_t>(std::min(problems_.size(), kShown)));
    if (problems_.size() > kShown) {
      shown.push_back(format("{} more", problems_.size() - kShown));
    }
    return {
        .code = ErrorCode::kMismatch,
        .op = "ckpt.edit",
        .message = "the weights do not fit together: " + join(shown, "; "),
        .hint =
            "average checkpoints of one model; 'lockstep ckpt diff' and "
            "'lockstep ckpt strip' help with names",
        .detail = "E_NOT_ALIKE"};
  }

  std::span<const NamedRoot> files_;
  std::vector<WeightsPlace> places_;
  std::vector<Entries> entries_;
  std::vector<std::string> problems_;
  ExpansionBudget expanded_;
  // The last one that was beyond it.
  Status expansion_;
  std::map<
      std::tuple<ViewKey, std::vector<std::int64_t>, DType>,
      std::shared_ptr<Storage>>
      storages_;
  Averaged result_;
};

} // namespace

Result<Averaged> average(
    std::span<const NamedRoot> files,
    std::string_view weights_key,
    std::uint64_t max_expanded_bytes) {
  if (files.size() < 2) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "ckpt.edit",
        .message = "a mean takes at least two checkpoints"};
  }
  return Averager(files, max_expanded_bytes).run(weights_key);
}

} // namespace lockstep::ckpt
