// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/load/format_table.h"

#include <algorithm>
#include <array>
#include <vector>

#include "lockstep/ckpt/formats/dcp/dcp.h"
#include "lockstep/ckpt/formats/exported/exported_checkpoint.h"
#include "lockstep/ckpt/formats/legacy/legacy.h"
#include "lockstep/ckpt/formats/numpy/numpy.h"
#include "lockstep/ckpt/formats/pytorch/pytorch.h"
#include "lockstep/ckpt/formats/safetensors/safetensors.h"
#include "lockstep/ckpt/formats/tar/tar_reader.h"
#include "lockstep/ckpt/formats/torchscript/libtorch_writer.h"
#include "lockstep/ckpt/formats/torchscript/script_tree.h"
#include "lockstep/ckpt/formats/unpacked/unpacked_reader.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

constexpr std::string_view kPyTorchEndings = ".pt .pth .pth.tar .bin .ckpt .th";
constexpr std::string_view kPyTorchFile = "a PyTorch file";

Result<std::vector<std::string>> all_attributes(const Value& root) {
  LOCKSTEP_ASSIGN(const auto found, attributes_in(root));
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const FlatAttribute& entry : found) {
    names.push_back(attribute_name(entry.dict, entry.item->first));
  }
  return names;
}

// Asked in this order: an archive of arrays is also a zip archive, and an array
// may look like the length in front of a safetensors header.
constexpr std::array kFormats{
    Format{
        .name = "npy",
        .endings = ".npy",
        .kind = "one NumPy array",
        .pickles = PicklePlace::kArray,
        .claims = claims_npy,
        .read = read_npy},
    Format{
        .name = "safetensors",
        .endings = ".safetensors",
        .kind = "a safetensors file",
        .claims = claims_safetensors,
        .read = read_safetensors,
        .writer =
            {.name = "safetensors",
             .help = "safetensors files",
             .is_tensors_only = true,
             .lost_attributes = lost_safetensors_attributes,
             .changed_values = flat_changes,
             .expands_views = true,
             .index_path = safetensors_index_path,
             .write = write_safetensors}},
    Format{
        .name = "npz",
        .endings = ".npz",
        .kind = "a NumPy archive",
        .pickles = PicklePlace::kRecords,
        .claims = claims_npz,
        .read = read_npz,
        .writer =
            {.name = "npz",
             .help = "NumPy archives of arrays",
             .is_tensors_only = true,
             .lost_attributes = all_attributes,
             .changed_values = flat_changes,
             .expands_views = true,
             .write = write_npz}},
    Format{
        .name = "zip",
        .title = "PyTorch zip checkpoint",
        .endings = kPyTorchEndings,
        .kind = kPyTorchFile,
        .key_label = "data/",
        .pickles = PicklePlace::kRecords,
        .is_archive = true,
        .claims = claims_zip,
        .read = read_zip,
        .writer =
            {.name = "pt",
             .help = "PyTorch's zip format (1.6 and newer)",
             .keeps_records = true,
             .write = write_pt}},
    Format{
        .name = "sharded",
        .pickles = PicklePlace::kElsewhere,
        .claims = claims_sharded_index,
        .read = read_sharded_index},
    Format{
        .name = "dcp",
        .endings = ".distcp .metadata",
        .pickles = PicklePlace::kElsewhere,
        .is_folder = true,
        .claims = claims_dcp,
        .read = read_dcp,
        .writer =
            {.name = "dcp",
             .help = "folder of torch.distributed.checkpoint",
             .lost_attributes = lost_dcp_attributes,
             .changed_values = dcp_changes,
             .expands_views = true,
             .write = write_dcp}},
    Format{
        .name = "safetensors-pieces",
        .title = "safetensors files of torch.distributed.checkpoint",
        .claims = claims_pieces,
        .read = read_pieces},
    Format{
        .name = "legacy",
        .title = "PyTorch legacy checkpoint",
        .endings = kPyTorchEndings,
        .kind = kPyTorchFile,
        .key_label = "key ",
        .pickles = PicklePlace::kStream,
        .claims = claims_legacy,
        .read = read_legacy,
        .writer =
            {.name = "pt-legacy",
             .help = "PyTorch's format before zip (0.4 to 1.5; newer versions "
                     "read it)",
             .write = write_legacy}},
    Format{
        .name = "torchscript",
        .title = "PyTorch TorchScript archive",
        .endings = kPyTorchEndings,
        .kind = kPyTorchFile,
        .key_label = "data/",
        .pickles = PicklePlace::kRecords,
        .is_archive = true,
        .source_folder = "code/",
        .own_names = {.contains = is_script_name, .owner = "TorchScript"},
        .hint =
            "written by TorchScript or C++ torch::save: torch.jit.load reads "
            "it",
        .writer =
            {.name = "libtorch",
             .help = "archive that C++ torch::load reads",
             .lost_attributes = all_attributes,
             .changed_values = libtorch_changes,
             .keeps_script_values = true,
             .can_rewrite = false, // the code
             .write = write_libtorch}},
    Format{
        .name = "exported",
        .title = "PyTorch exported program",
        .endings = ".pt2",
        .kind = "an exported PyTorch program",
        .key_label = "data/",
        .pickles = PicklePlace::kRecords,
        .is_archive = true,
        .hint = "written by torch.export.save: torch.export.load runs it, "
                "'lockstep train --model FILE' trains it",
        .writer =
            {.name = "pt2",
             .help = "the same program with other weights",
             .needs_file = true,
             .rewrite = rewrite_exported,
             .write = write_no_program}},
    Format{
        .name = "tar",
        .title = "PyTorch tar checkpoint",
        .endings = ".tar",
        .key_label = "key ",
        .pickles = PicklePlace::kMembers,
        .claims = claims_tar,
        .read = read_tar},
    Format{
        .name = "tar-folder",
        .title = "PyTorch tar checkpoint, unpacked",
        .key_label = "key ",
        .pickles = PicklePlace::kElsewhere,
        .is_folder = true,
        .claims = claims_tar_folder,
        .read = read_tar_folder},
    Format{
        .name = "zip-folder",
        .title = "PyTorch zip checkpoint, unpacked",
        .key_label = "data/",
        .pickles = PicklePlace::kElsewhere,
        .is_folder = true,
        .claims = claims_unpacked,
        .read = read_unpacked},
};

std::vector<FormatWriter> writers_of_rows() {
  std::vector<FormatWriter> writers;
  for (const Format& row : kFormats) {
    if (row.writer.write != nullptr && !row.writer.needs_file) {
      const bool is_usual = row.writer.name == SaveOptions().format;
      writers.insert(is_usual ? writers.begin() : writers.end(), row.writer);
    }
  }
  return writers;
}

} // namespace

std::span<const Format> formats() {
  return kFormats;
}

Result<const Format*> find_format(const ReadInput& input) {
  for (const Format& row : kFormats) {
    if (row.claims == nullptr) {
      continue;
    }
    LOCKSTEP_ASSIGN(const bool claimed, row.claims(input));
    if (claimed) {
      return &row;
    }
  }
  return nullptr;
}

const Format& format_of(std::string_view name) {
  static constexpr Format kUnknown{};
  const auto* row = std::ranges::find(kFormats, name, &Format::name);
  return row == kFormats.end() ? kUnknown : *row;
}

const Format& format_of(const Checkpoint& file) {
  return format_of(file.format);
}

std::span<const FormatWriter> format_writers() {
  static const std::vector<FormatWriter> writers = writers_of_rows();
  return writers;
}

const Format* format_to_write(std::string_view writer) {
  const auto* row =
      std::ranges::find_if(kFormats, [writer](const Format& format) {
        return format.writer.write != nullptr && format.writer.name == writer;
      });
  return row == kFormats.end() ? nullptr : row;
}

std::string_view ending_of(const Format& format, std::string_view path) {
  std::string_view rest = format.endings;
  while (!rest.empty()) {
    const std::size_t space = std::min(rest.find(' '), rest.size());
    if (path.ends_with(rest.substr(0, space))) {
      return rest.substr(0, space);
    }
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return {};
}

} // namespace lockstep::ckpt
