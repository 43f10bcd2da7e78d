// SPDX-License-Identifier: BSD-3-Clause
//
// A loop over what a temporary value holds would run over memory that is freed:
// it does not compile. With a name, or by value, it does.
#include "lockstep/ckpt/load.h"

namespace ckpt = lockstep::ckpt;

ckpt::Value read();

std::size_t entries() {
  std::size_t count = 0;
#ifdef LOCKSTEP_MISUSE
  for (const auto& [key, value] : read().as_dict()->items) {
#else
  for (const auto& [key, value] : (*read().as_dict()).items) {
#endif
    count += key.text().size();
  }
  return count;
}
