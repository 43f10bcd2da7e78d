// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/out_arguments.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::structure {

bool Values::is_other_than(const Values& before) const {
  return !std::ranges::equal(
      parts_,
      before.parts_,
      [](const Part& a, const Part& b) {
        return a.is_other == b.is_other && !a.is_other(a.value, b.value);
      });
}

void refuse_changed_value(std::size_t place) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "parallel.forward",
       .message = format(
           "forward changed its argument {}, a value, of which each replica "
           "has its own",
           place),
       .hint = "return it as a tensor, or make it a tensor of the batch"});
}

void refuse_tensor_pointer(std::size_t place) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "parallel.forward",
       .message = format(
           "argument {} points to tensors: all replicas would read and write "
           "the same ones",
           place),
       .hint = "take a T&, which is split and joined, or return the tensors; a "
               "const T* is given to each replica as it is"});
}

} // namespace lockstep::structure
