// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/tools/edit/wrapper_prefix.h"
#include "lockstep/ckpt/tools/model/find_model.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

constexpr std::array<std::string_view, 3> kBufferNames{
    "running_mean",
    "running_var",
    "num_batches_tracked"};

bool is_buffer(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  const std::string_view last =
      dot == std::string_view::npos ? name : name.substr(dot + 1);
  return std::ranges::find(kBufferNames, last) != kBufferNames.end();
}

// Sum: a Summary, or one of its keys.
template <class Sum>
void add_to(Sum& sum, const Tensor& tensor) {
  ++sum.tensors;
  sum.elements += static_cast<std::uint64_t>(tensor.numel());
  sum.bytes += contiguous_bytes(tensor);
}

class Summarizer {
 public:
  explicit Summarizer(const Checkpoint& file) : file_(file) {}

  Result<Summary> run() {
    copy_facts();
    list_keys();
    LOCKSTEP_TRY(count_tensors());
    LOCKSTEP_TRY(count_weights());
    add_names();
    add_hints();
    return std::move(summary_);
  }

 private:
  void copy_facts() {
    summary_.format = file_.format;
    summary_.era = file_.era;
    summary_.archive_name = file_.archive_name;
    summary_.file_bytes = file_.file_bytes;
    summary_.crc = file_.crc == CrcState::kPresent  ? "present"
                   : file_.crc == CrcState::kAbsent ? "absent"
                                                    : "absent in data";
    summary_.constants = file_.constants;
    summary_.constant_bytes = file_.constant_bytes;
    summary_.warnings = file_.warnings;
    summary_.programs = summarize_programs(file_);
  }

  // `torch.save(model.state_dict)`: the tensors are the model's.
  [[nodiscard]] const Value& tensor_root() const {
    const Value* module = module_in(file_.root);
    return module == nullptr ? file_.root : *module;
  }

  Status count_tensors() {
    std::map<DType, DTypeSummary> dtypes;
    std::vector<std::pair<const Storage*, const Tensor*>> views;
    std::map<std::string, std::uint64_t> devices;
    std::size_t entry = 0;
    const TensorVisitor add = [&](const std::string& /*name*/,
                                  const Tensor& tensor) {
      add_to(summary_, tensor);
      if (entry < summary_.keys.size()) {
        add_to(summary_.keys[entry], tensor);
      }
      DTypeSummary& row = dtypes[tensor.dtype];
      row.dtype = tensor.dtype;
      ++row.tensors;
      row.bytes += contiguous_bytes(tensor);
      views.emplace_back(tensor.storage.get(), &tensor);
    };
    const TensorVisitor add_whole =
        [this](const std::string& /*name*/, const Tensor& whole) {
          summary_.tensors_without_bytes += whole.storage != nullptr ? 1 : 0;
        };
    LOCKSTEP_TRY(for_each_tensor(
        tensor_root(),
        TensorVisitors{
            .named = &add,
            .placed = &add,
            .beside = &add,
            .wholes = &add_whole,
            .entry = &entry},
        {.budget = file_.budget.get()}));
    for (const auto& [dtype, row] : dtypes) {
      summary_.dtypes.push_back(row);
    }
    count_shared(std::move(views));
    for (const auto& storage : file_.storages) {
      summary_.storage_bytes += storage->nbytes;
      ++devices[storage->location];
    }
    for (const auto& [location, count] : devices) {
      summary_.devices.push_back({.location = location, .storages = count});
    }
    return {};
  }

  // One tensor under two names counts once.
  void count_shared(
      std::vector<std::pair<const Storage*, const Tensor*>> views) {
    std::ranges::sort(views);
    const auto repeated = std::ranges::unique(views);
    views.erase(repeated.begin(), repeated.end());
    for (auto first = views.begin(); first != views.end();) {
      const auto last =
          std::ranges::find_if(first, views.end(), [&](const auto& view) {
            return view.first != first->first;
          });
      if (last - first > 1) {
        ++summary_.shared_storages;
        summary_.shared_tensors += static_cast<std::uint64_t>(last - first);
      }
      first = last;
    }
  }

  // Without what lies below them.
  void list_keys() {
    const Dict* top = file_.root.as_dict();
    for (std::size_t i = 0; top != nullptr && i < top->items.size(); ++i) {
      const auto& [key, value] = top->items[i];
      summary_.keys.push_back(
          {.key = key_text(key),
           .type = value.as_dict() != nullptr ? dict_class(*value.as_dict())
                                              : value.type_name(),
           .value = value});
    }
  }

  Status count_weights() {
    const WeightsPlace place = locate_weights(file_.root);
    summary_.weights_key = place.key;
    const Value* weights = &place.value;
    // Else a model may be anywhere.
    if (place.key.empty() && module_in(*weights) == nullptr &&
        !has_tensor_entry(*weights)) {
      weights = find_model(*weights);
    }
    if (const Value* module = module_in(*weights)) {
      summary_.model = module_facts(*weights);
      summary_.wrapped_class = summary_.model.class_name;
      weights = module;
    }
    std::array<std::uint64_t, internal::kWrapperPrefixes.size()> wrapped{};
    const auto note_name = [&](const std::string& name) {
      note_first_part(name);
      ++summary_.prefix.of;
      for (std::size_t i = 0; i < internal::kWrapperPrefixes.size(); ++i) {
        wrapped[i] +=
            name.starts_with(internal::kWrapperPrefixes[i].prefix) ? 1 : 0;
      }
    };
    const TensorVisitor add = [&](const std::string& name,
                                  const Tensor& tensor) {
      note_name(name);
      if (is_buffer(name)) {
        ++summary_.buffer_tensors;
        return;
      }
      ++summary_.parameter_tensors;
      summary_.parameters += static_cast<std::uint64_t>(tensor.numel());
    };
    const TensorVisitor add_whole = [&](const std::string& name,
                                        const Tensor& whole) {
      if (whole.storage != nullptr) { // else its parts have names
        note_name(name);
      }
    };
    LOCKSTEP_TRY(for_each_tensor(
        *weights,
        TensorVisitors{.named = &add, .wholes = &add_whole}));
    for (std::size_t i = 0; i < internal::kWrapperPrefixes.size(); ++i) {
      if (wrapped[i] > summary_.prefix.keys) {
        summary_.prefix.prefix = internal::kWrapperPrefixes[i].prefix;
        summary_.prefix.keys = wrapped[i];
      }
    }
    return {};
  }

  // `root` itself if there is none, or several.
  const Value* find_model(const Value& root) {
    const auto model = only_model(file_.root);
    summary_.has_several_models =
        !model && model.error().code == ErrorCode::kInvalidArgument;
    summary_.weights_key = model ? model->key : "";
    return model ? model->value : &root;
  }

  // "model." of "model.fc.weight".
  void note_first_part(const std::string& name) {
    const std::string part = name.substr(0, name.find('.') + 1);
    first_part_ = summary_.prefix.of == 0 || first_part_ == part ? part : "";
  }

  void add_names() {
    summary_.names = file_.globals.size();
    const OwnNames own = format_of(file_).own_names;
    for (const GlobalUse& use : file_.globals) {
      const bool is_own = own.contains != nullptr && own.contains(use.name);
      if (!use.is_safe && !is_own) {
        (find_global(use.name).is_dangerous() ? summary_.unsafe_names
                                              : summary_.needed_classes)
            .push_back(use.name);
      }
    }
  }

  void add_prefix_hint() {
    if (summary_.prefix.prefix.empty() && !first_part_.empty() &&
        summary_.prefix.of > 1) {
      summary_.hints.push_back(format(
          "all keys start with '{0}': 'lockstep ckpt strip FILE --prefix {0}' "
          "takes it off",
          escape(first_part_, 40)));
    }
    for (const auto& row : internal::kWrapperPrefixes) {
      if (summary_.prefix.prefix == row.prefix &&
          summary_.prefix.keys == summary_.prefix.of) {
        summary_.hints.push_back(format(
            "looks like {}: strip '{}' to load it into a bare model",
            row.wrapper,
            row.prefix));
      }
    }
  }

  void add_hints() {
    // A whole model's prefix is a matter of its wrapper, not of its keys.
    if (!summary_.wrapped_class.empty()) {
      summary_.hints.push_back(whole_model_hint(summary_.model));
    } else {
      add_prefix_hint();
    }
    if (const auto hint = format_of(file_).hint; !hint.empty()) {
      summary_.hints.emplace_back(hint);
    }
    const bool on_device = std::ranges::any_of(
        summary_.devices,
        [](const DeviceSummary& device) { return device.location != "cpu"; });
    if (on_device) {
      summary_.hints.emplace_back(
          "saved from a device: Python without it needs map_location='cpu'");
    }
    if (summary_.storage_bytes > 2 * summary_.bytes &&
        summary_.storage_bytes - summary_.bytes > (1U << 20)) {
      summary_.hints.emplace_back(
          "tensors are slices of larger storages: clone them before saving");
    }
  }

  const Checkpoint& file_;
  Summary summary_;
  // What all names of the weights begin with; empty if they do not.
  std::string first_part_;
};

// A number, a bool or a text as such; null for everything else.
Json scalar_json(const Value& value) {
  if (const auto number = value.as_int()) {
    return *number;
  }
  if (const auto flag = value.as_bool()) {
    return *flag;
  }
  if (const auto text = value.as_string()) {
    return *text;
  }
  const auto real = value.as_float();
  return value.type() == Value::Type::kFloat ? Json(*real) : Json();
}

Json tensor_row(const ProgramTensor& value) {
  return Json::object()
      .set("name", value.name)
      .set("type", value.type)
      .set("sizes", value.is_tensor ? Json::array(value.sizes) : Json());
}

Json operator_row(const ProgramOperator& row) {
  return Json::object().set("name", row.name).set("count", row.count);
}

Json size_row(const ProgramSize& row) {
  return Json::object()
      .set("symbol", row.symbol)
      .set("min", row.min ? Json(*row.min) : Json())
      .set("max", row.max ? Json(*row.max) : Json());
}

Json program_row(const ProgramSummary& program) {
  return Json::object()
      .set("name", program.name)
      .set("inputs", Json::array(program.inputs, tensor_row))
      .set("outputs", Json::array(program.outputs, tensor_row))
      .set("calls", program.calls)
      .set("operators", Json::array(program.operators, operator_row))
      .set("sizes", Json::array(program.sizes, size_row));
}

Json key_row(const KeySummary& row) {
  return Json::object()
      .set("key", row.key)
      .set("type", row.type)
      .set("text", describe(row.value))
      .set("value", scalar_json(row.value))
      .set("tensors", row.tensors)
      .set("elements", row.elements)
      .set("bytes", row.bytes);
}

Json dtype_row(const DTypeSummary& row) {
  return Json::object()
      .set("dtype", dtype_info(row.dtype).name)
      .set("tensors", row.tensors)
      .set("bytes", row.bytes);
}

Json device_row(const DeviceSummary& row) {
  return Json::object()
      .set("location", row.location)
      .set("storages", row.storages);
}

} // namespace

Result<Summary> summarize(const Checkpoint& file) {
  return Summarizer(file).run();
}

Json to_json(const Summary& summary) {
  Json result = Json::object();
  result.set("format", summary.format)
      .set("era", summary.era)
      .set("archive_name", summary.archive_name)
      .set("file_bytes", summary.file_bytes)
      .set("crc", summary.crc)
      .set("keys", Json::array(summary.keys, key_row))
      .set("tensors", summary.tensors)
      .set("elements", summary.elements)
      .set("bytes", summary.bytes)
      .set("tensors_without_bytes", summary.tensors_without_bytes)
      .set("storage_bytes", summary.storage_bytes)
      .set("constants", summary.constants)
      .set("constant_bytes", summary.constant_bytes)
      .set("weights_key", summary.weights_key)
      .set("parameters", summary.parameters)
      .set("parameter_tensors", summary.parameter_tensors)
      .set("buffer_tensors", summary.buffer_tensors)
      .set("dtypes", Json::array(summary.dtypes, dtype_row))
      .set("devices", Json::array(summary.devices, device_row))
      .set("prefix", summary.prefix.prefix)
      .set("prefix_keys", summary.prefix.keys)
      .set("wrapped_class", summary.wrapped_class)
      .set("inner_class", summary.model.inner_class)
      .set("device_ids", Json::array(summary.model.device_ids))
      .set("output_device", summary.model.output_device)
      .set("shared_storages", summary.shared_storages)
      .set("shared_tensors", summary.shared_tensors)
      .set("names", summary.names)
      .set("unsafe_names", Json::array(summary.unsafe_names))
      .set("needed_classes", Json::array(summary.needed_classes))
      .set("warnings", Json::array(summary.warnings, to_string))
      .set("hints", Json::array(summary.hints));
  if (!summary.programs.empty()) {
    result.set("programs", Json::array(summary.programs, program_row));
  }
  return result;
}

} // namespace lockstep::ckpt
