// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/load/format_table.h"

#include <array>

#include "lockstep/ckpt/formats/dcp/dcp_reader.h"
#include "lockstep/ckpt/formats/dcp/dcp_writer.h"
#include "lockstep/ckpt/formats/legacy/legacy_reader.h"
#include "lockstep/ckpt/formats/legacy/legacy_writer.h"
#include "lockstep/ckpt/formats/numpy/npz_writer.h"
#include "lockstep/ckpt/formats/numpy/numpy_reader.h"
#include "lockstep/ckpt/formats/pytorch/pt_reader.h"
#include "lockstep/ckpt/formats/pytorch/pt_writer.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_index.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_reader.h"
#include "lockstep/ckpt/formats/safetensors/safetensors_writer.h"
#include "lockstep/ckpt/formats/tar/tar_reader.h"
#include "lockstep/ckpt/formats/torchscript/libtorch_writer.h"
#include "lockstep/ckpt/formats/unpacked/unpacked_reader.h"

namespace lockstep::ckpt {
namespace {

constexpr std::array kReaders{
    FormatReader{"npz", claims_npz, read_npz},
    FormatReader{"zip", claims_zip, read_zip},
    FormatReader{"npy", claims_npy, read_npy},
    FormatReader{"safetensors", claims_safetensors, read_safetensors},
    FormatReader{"sharded", claims_sharded_index, read_sharded_index},
    FormatReader{"dcp", claims_dcp, read_dcp},
    FormatReader{"legacy", claims_legacy, read_legacy},
    FormatReader{"tar", claims_tar, read_tar},
    FormatReader{"tar-folder", claims_tar_folder, read_tar_folder},
    FormatReader{"zip-folder", claims_unpacked, read_unpacked},
};

constexpr std::array kWriters{
    FormatWriter{
        .name = "pt",
        .help = "PyTorch's zip format (1.6 and newer)",
        .write = write_pt},
    FormatWriter{
        .name = "safetensors",
        .help = "safetensors files",
        .is_tensors_only = true,
        .metadata = KeptMetadata::kOfRoot,
        .write = write_safetensors},
    FormatWriter{
        .name = "npz",
        .help = "NumPy archives of arrays",
        .is_tensors_only = true,
        .metadata = KeptMetadata::kNone,
        .write = write_npz},
    FormatWriter{
        .name = "dcp",
        .help = "folder of torch.distributed.checkpoint",
        .metadata = KeptMetadata::kNone,
        .write = write_dcp},
    FormatWriter{
        .name = "pt-legacy",
        .help = "PyTorch's format before zip (0.4 to 1.5; newer versions read "
                "it)",
        .write = write_legacy},
    FormatWriter{
        .name = "libtorch",
        .help = "archive that C++ torch::load reads",
        .metadata = KeptMetadata::kNone,
        .write = write_libtorch},
};

} // namespace

std::span<const FormatReader> format_readers() {
  return kReaders;
}

std::span<const FormatWriter> format_writers() {
  return kWriters;
}

} // namespace lockstep::ckpt
