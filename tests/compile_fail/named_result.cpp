// SPDX-License-Identifier: BSD-3-Clause
//
// So does a loop over what a temporary result holds (named_value.cpp).
#include "lockstep/ckpt/load.h"

namespace ckpt = lockstep::ckpt;

std::size_t entries() {
  std::size_t count = 0;
#ifdef LOCKSTEP_MISUSE
  for (const auto& [key, value] : ckpt::load("m.pt")->root.as_dict()->items) {
#else
  const auto file = ckpt::load("m.pt");
  for (const auto& [key, value] : file->root.as_dict()->items) {
#endif
    count += key.text().size();
  }
  return count;
}
