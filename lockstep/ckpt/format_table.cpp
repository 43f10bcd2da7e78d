// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/format_table.h"

#include <array>

#include "lockstep/ckpt/pytorch/pt_reader.h"
#include "lockstep/ckpt/pytorch/pt_writer.h"
#include "lockstep/ckpt/safetensors/safetensors_index.h"
#include "lockstep/ckpt/safetensors/safetensors_reader.h"
#include "lockstep/ckpt/safetensors/safetensors_writer.h"

namespace lockstep::ckpt {
namespace {

constexpr std::array kReaders{
    FormatReader{"zip", claims_zip, read_zip},
    FormatReader{"safetensors", claims_safetensors, read_safetensors},
    FormatReader{"sharded", claims_sharded_index, read_sharded_index},
};

constexpr std::array kWriters{
    FormatWriter{"pt", "PyTorch's zip format (1.6 and newer)", write_pt},
    FormatWriter{"safetensors", "safetensors files", write_safetensors},
};

} // namespace

std::span<const FormatReader> format_readers() {
  return kReaders;
}

std::span<const FormatWriter> format_writers() {
  return kWriters;
}

} // namespace lockstep::ckpt
