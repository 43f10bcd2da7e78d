// SPDX-License-Identifier: BSD-3-Clause
//
// Looks at checkpoints: what one screen should say, tensors as rows, how two
// files differ, what can be rescued of a damaged one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/model.h"
#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

// What one screen should say about a checkpoint. Reads no tensor bytes.
//   auto summary = summarize(*ckpt::load("checkpoint.pth.tar"));
//   summary->parameters                         // 11172810

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

/// An argument or a result of an exported program.
struct ProgramTensor {
  std::string name = {};
  /// "float32"; of what is no tensor "int".
  std::string type = {};
  /// Numbers, symbols ("s77"), "?" for an expression.
  std::vector<std::string> sizes = {};
  bool is_tensor = true;
};

/// "aten.conv2d.default", and how often a graph calls it.
struct ProgramOperator {
  std::string name = {};
  std::uint64_t count = 0;
};

/// What a size may be, both ends included.
struct ProgramSize {
  std::string symbol = {};
  std::optional<std::int64_t> min = {};
  std::optional<std::int64_t> max = {};
};

/// The graph of an exported program.
struct ProgramSummary {
  std::string name = {};
  std::vector<ProgramTensor> inputs = {};
  std::vector<ProgramTensor> outputs = {};
  std::uint64_t calls = 0;
  /// The most frequent first.
  std::vector<ProgramOperator> operators = {};
  /// Sizes that may change.
  std::vector<ProgramSize> sizes = {};
};

/// Of the programs of a `.pt2` file; empty for others.
std::vector<ProgramSummary> summarize_programs(const Checkpoint& file);

/// How the graphs of two `.pt2` files differ: "call 3 is aten.relu.default and
/// aten.gelu.default". Empty if they are equal, or one file has none.
std::string graph_difference(const Checkpoint& a, const Checkpoint& b);

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
  /// Beside them those without bytes, as on the device "meta".
  std::uint64_t tensors_without_bytes = 0;
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
  /// There are several, so that nobody knows which is meant.
  bool has_several_models = false;
  /// What that module says of wrappers and devices.
  ModuleFacts model = {};
  /// Storages that several tensors view, and those tensors.
  std::uint64_t shared_storages = 0;
  std::uint64_t shared_tensors = 0;
  /// Graphs of a `.pt2` file, whose sample inputs are pickles that are not
  /// read.
  std::vector<ProgramSummary> programs = {};
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

// The tensors of a checkpoint as rows: filtered by name, sorted, folded to a
// depth. For `ls` and `tree`.
//   auto rows = list_tensors(file.root, {.filter = "^fc", .sort = kBytes});

/// Order of the rows.
enum class ListOrder {
  /// As in the file.
  kFile,
  kName,
  /// Largest first.
  kBytes,
  kDType,
};

/// Which rows, and in what order.
struct ListOptions {
  ListOrder order = ListOrder::kFile;
  /// Regular expression, as in Perl and Python, that a name must match
  /// somewhere; empty for all.
  std::string filter = {};
};

/// One tensor.
struct ListRow {
  /// Dotted: "state_dict.fc.weight".
  std::string name = {};
  Tensor tensor = {};
  /// Units: bytes of the elements.
  std::uint64_t bytes = 0;
};

/// The tensors below `root`. Reads no tensor bytes. Errors: kInvalidArgument
/// for a broken expression; kUnsafe (E_LIMIT).
Result<std::vector<ListRow>> list_tensors(
    const Value& root,
    const ListOptions& options = {});

/// A part of a dotted name, or a tensor at the end of one.
struct TreeRow {
  /// One part of the name: "layer1"; the whole name is in `path`.
  std::string label = {};
  std::string path = {};
  /// 0 at the top.
  std::size_t level = 0;
  /// Tensors at and below the row, and the bytes of their elements.
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  /// The tensor itself; null for a part that only leads to others, or that is
  /// folded because of the depth.
  const Tensor* tensor = nullptr;
};

/// Rows of a tree, parents before children, in the order of first appearance.
/// Rows at or below level `max_depth` are folded into their parents; 0 folds
/// nothing. Ownership: the rows point into `tensors`.
std::vector<TreeRow> tree_rows(
    const std::vector<ListRow>& tensors,
    std::size_t max_depth = 0);

// Compares the tensors of two checkpoints, in whatever formats, block by block.
//   auto report = diff(a.root, b.root, {.maps = {{"module.", ""}}});
//   report->rows.empty()                        // equal

/// What differs.
enum class DiffKind : std::uint8_t {
  kOnlyA,
  kOnlyB,
  kShape,
  kDType,
  kValues,
  /// What the integers of a quantized tensor stand for.
  kQuantizer,
  /// One of them has no bytes, as on the device "meta".
  kNoBytes,
};

/// "only in A", "only in B", "shape", "dtype", "values", "quantizer", "no
/// bytes".
std::string_view diff_kind_name(DiffKind kind);

/// When two elements count as equal, and how names find each other.
struct DiffOptions {
  /// Equal if |a - b| <= atol + rtol * |b|. NaN equals NaN.
  double rtol = 0;
  double atol = 0;
  /// Tensors of different element types are equal if their numbers are.
  bool ignore_dtype = false;
  /// Names that start with the first get the second instead, in both files.
  std::vector<std::pair<std::string, std::string>> maps = {};
  Limits limits = {};
};

/// One tensor that differs.
struct DiffRow {
  DiffKind kind = DiffKind::kValues;
  /// After the maps.
  std::string name = {};
  /// "float32 [2, 3]"; empty where the tensor is absent; of a quantized tensor
  /// also "scale 0.1, zero point 2".
  std::string a = {};
  std::string b = {};
  /// kDType and kValues: elements beyond the tolerance, the first of them in
  /// row-major order, and the largest differences of all.
  std::uint64_t different = 0;
  std::uint64_t elements = 0;
  std::uint64_t first = 0;
  std::string first_a = {};
  std::string first_b = {};
  double max_abs = 0;
  double max_rel = 0;
};

/// The result of a comparison.
struct DiffReport {
  /// Names in both files.
  std::uint64_t compared = 0;
  std::uint64_t equal = 0;
  std::vector<DiffRow> rows = {};
  /// A map that would make more names meet: "module.="; empty without one.
  std::string map_hint = {};
  /// NumPy arrays of either file that are no tensors: not compared.
  std::vector<std::string> unread = {};
  /// Tensors of equal types and shapes whose elements neither file holds, as on
  /// the device "meta".
  std::vector<std::string> without_bytes = {};
};

/// Compares; memory does not grow with the size of the tensors.
/// Errors: kInvalidArgument if a map gives two tensors one name; those of the
/// storages; kUnsafe (E_LIMIT).
Result<DiffReport>
diff(const Value& a, const Value& b, const DiffOptions& options = {});

// Reads every element: the content digest, and tensors that hold NaN or Inf.
//   auto result = check_elements(file.root);

/// A tensor with elements that are not finite numbers.
struct NotFinite {
  std::string name = {};
  std::uint64_t nan_count = 0;
  std::uint64_t inf_count = 0;
};

/// What the elements tell.
struct DeepCheck {
  /// 64 hex digits, as `digest` gives.
  std::string digest = {};
  std::uint64_t elements = 0;
  std::vector<NotFinite> not_finite = {};
};

/// Errors: as `digest_rows`.
Result<DeepCheck> check_elements(const Value& root, const Limits& limits = {});

// Rescues the sound tensors of a damaged zip checkpoint into a new file. A
// tensor counts as sound if its record is complete and its CRC is right.
//   auto report = salvage(*open_source("cut.pth"), "rescued.pth");

/// A tensor that is not in the new file, or another record.
struct LostPart {
  std::string name = {};
  /// "the bytes are damaged: ..."
  std::string reason = {};
};

/// What was rescued.
struct SalvageReport {
  /// Tensors by name.
  std::uint64_t rescued = 0;
  std::vector<LostPart> lost = {};
  /// Records beside the value that are not in the new file, likewise.
  std::vector<LostPart> lost_records = {};
  /// What is odd about the byte order that the file claims (W_BYTEORDER), and
  /// names in the flat file that two tensors had (W_SAME_NAME).
  std::vector<Warning> warnings = {};
  /// Units: bytes in front of the archive, which are left out.
  std::uint64_t foreign_bytes = 0;
  /// The directory was lost, or is that of another file: records were found by
  /// their local headers.
  bool is_without_directory = false;
  /// The tree held values that are not written (classes): the new file is one
  /// dict of names and tensors.
  bool is_flat = false;
};

/// Reads `source`, writes `out` atomically as `save_options` say; both may not
/// be the same file. Without `out` nothing is written. In the copy, entries of
/// dicts whose tensor is lost are gone; elements of lists are None; sound
/// records that are no part of the value are carried over, but not the code and
/// the constants of a TorchScript program, and the byte order stays unknown if
/// it is: `extra_records` of `save_options` do not count. Errors: kUnsupported
/// (E_WRONG_FORMAT) if no zip begins in the first 64 KiB; kCorrupt if the
/// pickle is lost, since nothing else names the tensors; kIo.
Result<SalvageReport> salvage(
    const std::shared_ptr<ByteSource>& source,
    const std::string& out,
    const LoadOptions& options = {},
    const SaveOptions& save_options = {},
    FileSystem& fs = real_fs());

} // namespace lockstep::ckpt
#pragma GCC visibility pop
