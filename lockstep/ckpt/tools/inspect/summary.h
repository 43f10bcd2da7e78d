// SPDX-License-Identifier: BSD-3-Clause
//
// What one screen should say about a checkpoint. Reads no tensor bytes.
//   auto summary = summarize(*ckpt::load("checkpoint.pth.tar"));
//   summary->parameters                         // 11172810
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/tools/model/module_facts.h"

namespace lockstep::ckpt {

/// An entry of the top level.
struct KeySummary {
  std::string key = {};
  /// "int", "OrderedDict", "Tensor".
  std::string_view type = {};
  /// Shared with the checkpoint; `describe` gives it a line when it is shown.
  Value value = {};
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  /// Units: bytes, of the elements.
  std::uint64_t bytes = 0;
};

/// Tensors of one dtype.
struct DTypeSummary {
  DType dtype = DType::kFloat32;
  std::uint64_t tensors = 0;
  /// Units: bytes, of the elements.
  std::uint64_t bytes = 0;
};

/// Number of storages with a device tag.
struct DeviceSummary {
  std::string location = {};
  std::uint64_t storages = 0;
};

/// A prefix that keys of the weights share because of a wrapper.
struct PrefixSummary {
  /// "module."; empty if there is none.
  std::string prefix = {};
  std::uint64_t keys = 0;
  std::uint64_t of = 0;
};

/// One screen's facts.
struct Summary {
  /// Copies of `Checkpoint`'s members.
  std::string format = {};
  std::string era = {};
  std::string archive_name = {};
  std::uint64_t file_bytes = 0;
  /// "present", "absent" or "absent in data".
  std::string crc = {};
  std::vector<KeySummary> keys = {};
  /// Tensors reached by name, and their elements together.
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  /// Units: bytes, each storage once.
  std::uint64_t storage_bytes = 0;
  /// As in `Checkpoint`.
  std::uint64_t constants = 0;
  std::uint64_t constant_bytes = 0;
  /// Key of the model's weights; empty if they are the top level.
  std::string weights_key = {};
  /// Elements of the weights without BatchNorm's statistics, and how many
  /// tensors these are; the statistics themselves.
  std::uint64_t parameters = 0;
  std::uint64_t parameter_tensors = 0;
  std::uint64_t buffer_tensors = 0;
  std::vector<DTypeSummary> dtypes = {};
  std::vector<DeviceSummary> devices = {};
  PrefixSummary prefix = {};
  /// Class of a whole module in the file: "torch.nn...DataParallel".
  std::string wrapped_class = {};
  /// What that module says of wrappers and devices.
  ModuleFacts model = {};
  /// Storages that several tensors view, and those tensors.
  std::uint64_t shared_storages = 0;
  std::uint64_t shared_tensors = 0;
  std::uint64_t names = 0;
  /// Names that run code or reach the system.
  std::vector<std::string> unsafe_names = {};
  /// Other names outside the allow list of PyTorch's safe loader: classes whose
  /// code Python needs. Of a TorchScript archive, those that LibTorch does not
  /// know either.
  std::vector<std::string> needed_classes = {};
  std::vector<Warning> warnings = {};
  /// "looks like DataParallel: ...".
  std::vector<std::string> hints = {};
};

/// Errors: kUnsafe (E_LIMIT) if shared values expand without end.
Result<Summary> summarize(const Checkpoint& file);

/// Lines for people, with a final line feed; foreign text is escaped.
std::string to_text(const Summary& summary, const std::string& path);

Json to_json(const Summary& summary);

} // namespace lockstep::ckpt
