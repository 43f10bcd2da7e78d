// SPDX-License-Identifier: BSD-3-Clause
//
// A `.pt2` file of torch.export as plain data: the graph of a net and its
// weights. Nothing in it is executed here, and no pickle in it is read.
//   auto file = read_exported(source, options);
//   for (const ExportedWeight& w : file->models[0].weights) { ... }
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/formats/exported/exported_graph.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {

/// How arguments or results are nested: PyTorch's pytree.
struct ExportedTree {
  /// "builtins.tuple", "builtins.dict"; empty for a leaf.
  std::string type = {};
  /// Of a dict its keys in the order of `children`: strings as they are, others
  /// as JSON. Of a named tuple the name of its type.
  std::vector<std::string> keys = {};
  /// Of a type that Python registered, as a dataclass: the names of `children`
  /// and of the fields that are None. Empty if the file does not say.
  std::vector<std::string> fields = {};
  std::vector<std::string> none_fields = {};
  std::vector<ExportedTree> children = {};

  [[nodiscard]] bool is_leaf() const noexcept {
    return type.empty();
  }
  /// A dict, an OrderedDict or a defaultdict, be it empty.
  [[nodiscard]] bool is_dict() const noexcept;
  /// Leaves below, itself included.
  [[nodiscard]] std::size_t leaves() const noexcept;
};

/// Where an input of the graph comes from.
enum class ExportedInputKind : std::uint8_t {
  kUser,
  kParameter,
  kBuffer,
  kTensorConstant,
  kCustomObject,
  kToken,
  /// A number or text that was given when the program was exported.
  kConstant,
};

struct ExportedInput {
  ExportedInputKind kind = ExportedInputKind::kUser;
  /// Names the value in the graph; the value itself of a constant.
  ExportedArgument argument = {};
  /// Parameter, buffer or constant: "layer1.0.weight". Name of a constant.
  std::string target = {};
  /// Of a buffer: it is part of the state_dict.
  bool is_persistent = true;

  /// A parameter, a buffer or a tensor constant.
  [[nodiscard]] bool is_tensor() const noexcept;
};

/// Where an output of the graph goes.
enum class ExportedOutputKind : std::uint8_t {
  kUser,
  kLoss,
  kBufferMutation,
  kGradientToParameter,
  kGradientToUserInput,
  kUserInputMutation,
  kToken,
  kParameterMutation,
};

struct ExportedOutput {
  ExportedOutputKind kind = ExportedOutputKind::kUser;
  ExportedArgument argument = {};
  /// What is changed; empty for the user's and the loss.
  std::string target = {};
};

/// What values a symbol may have, both included.
struct ExportedRange {
  std::optional<std::int64_t> min = {};
  std::optional<std::int64_t> max = {};
};

/// A tensor in the file: a parameter, a buffer or a constant.
struct ExportedWeight {
  std::string name = {};
  /// Record with the bytes of its storage, which several may share:
  /// "data/weights/weight_0". Empty if it is a part of a pickle.
  std::string record = {};
  bool is_parameter = false;
  /// The record is a pickle: a custom object or a tensor of a subclass. It is
  /// not read, and `tensor` has no storage.
  bool is_pickle = false;
  /// It lies with others in one pickle, `record`, as torch wrote before 2.9.
  bool is_packed = false;
  /// Lies beside the weights: a buffer that is not persistent, a constant.
  bool is_constant = false;
  /// Equal storages are shared memory.
  Tensor tensor = {};
};

/// One program of a file.
struct ExportedModel {
  /// "model"
  std::string name = {};
  /// "models/model.json"
  std::string record = {};
  ExportedGraph graph = {};
  /// In the order of `graph.inputs` and `graph.outputs`.
  std::vector<ExportedInput> inputs = {};
  std::vector<ExportedOutput> outputs = {};
  /// The arguments: a tuple of the positional ones (a tuple) and the keyword
  /// ones (a dict).
  ExportedTree in_tree = {};
  ExportedTree out_tree = {};
  /// Names of `forward`'s arguments; empty if the file does not say.
  std::vector<std::string> argument_names = {};
  /// Field names by type of named tuple.
  std::map<std::string, std::vector<std::string>, std::less<>> named_tuples =
      {};
  /// Paths of the modules that were called, "layer1.0"; not the net itself.
  std::vector<std::string> modules = {};
  /// By symbol: "s77".
  std::map<std::string, ExportedRange, std::less<>> ranges = {};
  /// Python expressions that inputs must satisfy.
  std::vector<std::string> guards = {};
  /// By `run_decompositions()`, which drops `detach()` and `no_grad()`.
  bool is_decomposed = false;
  std::int64_t schema_major = 0;
  std::int64_t schema_minor = 0;
  /// "2.13.0+cpu"
  std::string torch_version = {};
  /// In the order of the file, constants last.
  std::vector<ExportedWeight> weights = {};
  /// Places in `weights` by name, of constants and of the others: torch gives
  /// a constant that it lifts the name of a buffer.
  using WeightIndex = std::map<std::string, std::size_t, std::less<>>;
  WeightIndex weight_index = {};
  WeightIndex constant_index = {};

  /// By name, among the constants or among the others; null if absent.
  [[nodiscard]] const ExportedWeight* find_weight(
      std::string_view weight,
      bool is_constant) const;
  /// The tensor of an input that `is_tensor`, as torch finds it: constants and
  /// buffers that are not persistent lie among the constants.
  [[nodiscard]] const ExportedWeight* find_weight(
      const ExportedInput& input) const;
};

/// All of a file. Ownership: keeps the file open, whose tensors are lazy.
struct ExportedFile {
  std::shared_ptr<const ZipReader> zip = {};
  /// In the order of the file.
  std::vector<ExportedModel> models = {};
  std::vector<Warning> warnings = {};
};

// Records of archives of torch 2.6 and 2.7, which hold one program: its graph,
// and the pickles of its weights and constants.
inline constexpr std::string_view kOldGraphRecord =
    "serialized_exported_program.json";
inline constexpr std::string_view kOldWeightsRecord =
    "serialized_state_dict.pt";
inline constexpr std::string_view kOldConstantsRecord =
    "serialized_constants.pt";

/// True if the archive says that it is of torch.export.
bool is_exported(const ZipReader& zip);

/// Opens an archive that may be a program: those of torch 2.6 and 2.7 have no
/// top folder.
/// Errors: as `ZipReader::open`.
Result<ZipReader> open_program_archive(
    std::shared_ptr<ByteSource> source,
    const Limits& limits = {});

/// Reads the programs of an archive; weights are checked against their records
/// and read when asked for. Names, definitions and numbers of values in the
/// graph are checked. `load_part` reads the pickles in which torch before 2.9
/// kept the weights; without it those are missing.
/// Errors: kCorrupt (E_PROGRAM with the offset in the record, E_NO_STORAGE,
/// E_VIEW_BOUNDS and those of `ZipReader`), kUnsupported (E_PROGRAM_VERSION),
/// kUnsafe (E_LIMIT, E_DEPTH).
Result<ExportedFile> read_exported(
    std::shared_ptr<const ZipReader> zip,
    const LoadOptions& options = {},
    PartLoader load_part = nullptr);

/// Reads a record that is a checkpoint of its own, but no program.
/// Errors: kUnsupported (E_PROGRAM) for one that cannot be; as `load`.
Result<Checkpoint> read_exported_part(
    const ZipReader& zip,
    const std::string& record,
    const LoadOptions& options,
    PartLoader load_part);

/// Writes the archive of `file` to `path` atomically: the same records, but for
/// those in `replaced`, by name ("data/weights/weight_0"), which get the bytes
/// of the storage. The top folder stays, whatever `options` say.
/// Errors: kInvalidArgument (E_PROGRAM) for a name that no weight has, or a
/// storage of another length, or what is no record of one weight; as `save`.
Status write_exported(
    const std::string& path,
    const ExportedFile& file,
    const std::map<std::string, std::shared_ptr<Storage>>& replaced,
    WriteOptions options = {},
    FileSystem& fs = real_fs());

} // namespace lockstep::ckpt

/// `for (auto& model : read_exported(zip)->models)` would loop over what is
/// gone.
template <>
inline constexpr bool lockstep::kNamesResult<lockstep::ckpt::ExportedFile> =
    true;
