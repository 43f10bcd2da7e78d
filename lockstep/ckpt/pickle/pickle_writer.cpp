// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "lockstep/ckpt/pickle.h"
#include "lockstep/ckpt/pickle/value_pickler.h"

namespace lockstep::ckpt {

Result<PickledTree> write_pickle(
    const Value& root,
    const PickleOptions& options) {
  internal::ValuePickler pickler(options);
  LOCKSTEP_TRY(pickler.write(root));
  return std::move(pickler).finish();
}

} // namespace lockstep::ckpt
