// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <variant>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/load/format_table.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {
namespace {

bool is_code(const ZipRecord& record, std::string_view folder) {
  return record.name.starts_with(folder) && record.name.ends_with(".py");
}

// Classes around a model and the name of the child that is the model.
struct WrapperClass {
  std::string_view class_name = {};
  std::string_view child = {};
};
constexpr std::array kWrapperClasses{
    WrapperClass{"torch.nn.parallel.data_parallel.DataParallel", "module"},
    WrapperClass{
        "torch.nn.parallel.distributed.DistributedDataParallel",
        "module"},
    WrapperClass{
        "torch.nn.parallel.distributed_cpu.DistributedDataParallelCPU",
        "module"},
    WrapperClass{
        "torch.nn.parallel.distributed_c10d._DistributedDataParallelC10d",
        "module"},
    WrapperClass{"torch.optim.swa_utils.AveragedModel", "module"},
    WrapperClass{"torch._dynamo.eval_frame.OptimizedModule", "_orig_mod"}};

std::string device_name(const Value& value) {
  if (const std::int64_t* index = value.as_int()) {
    return std::to_string(*index);
  }
  if (const Device* device = value.as_device()) {
    return device->index < 0 ? device->type
                             : format("{}:{}", device->type, device->index);
  }
  return std::string(value.text());
}

void add_devices(const Value& state, ModuleFacts& facts) {
  const Value* ids = state.find("device_ids");
  const auto elements = ids == nullptr ? nullptr : ids->elements();
  if (elements != nullptr) {
    for (const Value& id : *elements) {
      facts.device_ids.push_back(device_name(id));
    }
  }
  if (const Value* output = state.find("output_device")) {
    facts.output_device = device_name(*output);
  }
}

} // namespace

const Value* module_in(const Value& value) {
  if (is_module(value)) {
    return &value;
  }
  const Object* object = value.as_object();
  if (object == nullptr || object->global != "builtins.getattr" ||
      object->args == nullptr) {
    return nullptr;
  }
  const Tuple* args = object->args->as_tuple();
  constexpr std::size_t kArguments = 2;
  if (args == nullptr || args->items.size() != kArguments) {
    return nullptr;
  }
  const std::string* method = args->items[1].as_string();
  const bool is_state_dict = method != nullptr && *method == "state_dict";
  return is_state_dict && is_module(args->items[0]) ? args->items.data()
                                                    : nullptr;
}

const Value* wrapped_module(const Value& module) {
  const Object* object = module.as_object();
  const auto* wrapper = object == nullptr ? kWrapperClasses.end()
                                          : std::ranges::find(
                                                kWrapperClasses,
                                                object->global,
                                                &WrapperClass::class_name);
  if (wrapper == kWrapperClasses.end() || object->state == nullptr) {
    return nullptr;
  }
  const Value* children = object->state->find("_modules");
  const Value* child =
      children == nullptr ? nullptr : children->find(wrapper->child);
  return child != nullptr && is_module(*child) ? child : nullptr;
}

ModuleFacts module_facts(const Value& value) {
  ModuleFacts facts;
  const Value* module = module_in(value);
  if (module == nullptr) {
    return facts;
  }
  facts.class_name = module->as_object()->global;
  facts.is_uncalled = module != &value;
  while (const Value* inner = wrapped_module(*module)) {
    if (facts.device_ids.empty()) {
      add_devices(*module->as_object()->state, facts);
    }
    facts.inner_class = inner->as_object()->global;
    module = inner;
  }
  return facts;
}

std::string whole_model_hint(const ModuleFacts& facts) {
  const char* command = facts.inner_class.empty()
                            ? "'lockstep ckpt extract-model'"
                            : "'lockstep ckpt extract-model --unwrap'";
  return facts.is_uncalled
             ? format("{}: {} recovers the weights", kUncalledText, command)
             : format(
                   "holds a whole model: {} gives its state_dict, which loads "
                   "without the model's code",
                   command);
}

std::string to_text(const ModuleFacts& facts) {
  std::string text = escape(facts.class_name);
  if (!facts.inner_class.empty()) {
    text = format("{} in {}", escape(facts.inner_class), text);
  }
  if (!facts.device_ids.empty()) {
    constexpr std::size_t kShown = 16;
    std::vector<std::string> ids;
    for (const std::string& id : facts.device_ids) {
      if (ids.size() < kShown) {
        ids.push_back(escape(id, 20));
      }
    }
    text += format(
        ", device_ids [{}{}]",
        join(ids, ", "),
        ids.size() < facts.device_ids.size() ? ", ..." : "");
  }
  if (!facts.output_device.empty()) {
    text += format(", output_device {}", escape(facts.output_device, 20));
  }
  return text;
}

Result<std::vector<ClassSource>> class_sources(
    const Checkpoint& file,
    const std::shared_ptr<ByteSource>& source) {
  std::vector<ClassSource> sources = file.class_sources;
  const std::string_view folder = format_of(file).source_folder;
  if (folder.empty() || source == nullptr) {
    return sources;
  }
  LOCKSTEP_ASSIGN(const ZipReader zip, ZipReader::open(source, {}));
  for (const ZipRecord& record : zip.records()) {
    if (!is_code(record, folder)) {
      continue;
    }
    std::vector<std::byte> scratch;
    LOCKSTEP_TRY(zip.check_crc(record));
    LOCKSTEP_ASSIGN(const ByteSpan bytes, zip.read(record, scratch));
    sources.push_back(
        {.name = record.name, .text = std::string(as_text(bytes))});
  }
  return sources;
}

} // namespace lockstep::ckpt
