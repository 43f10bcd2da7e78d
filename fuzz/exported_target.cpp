// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "fuzz/targets.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"

namespace lockstep::fuzz {

void fuzz_exported(ByteSpan input) {
  auto zip = ckpt::ZipReader::open(ckpt::make_source(input));
  if (!zip) {
    return;
  }
  const auto file = ckpt::read_exported(
      std::make_shared<const ckpt::ZipReader>(*std::move(zip)),
      {.check_crc = false});
  if (!file) {
    return;
  }
  for (const ckpt::ExportedModel& model : file->models) {
    for (const ckpt::ExportedWeight& weight : model.weights) {
      if (!weight.is_pickle) {
        [[maybe_unused]] const auto bytes =
            weight.tensor.storage->source->load();
      }
    }
  }
}

} // namespace lockstep::fuzz
