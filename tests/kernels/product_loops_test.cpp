// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/product_loops.h"

#include <gtest/gtest.h>

#include "tests/kernels/convolution_case.h"

namespace lockstep::kernels {
namespace {

// Every set of loops that this processor runs, with rows that are no multiple
// of any block, transposed operands, and gaps.
TEST(ProductLoops, OfEveryInstructionSetMultiply) {
  torch::manual_seed(4);
  for (const ProductLoops* loops : usable_product_loops()) {
    for (const std::int64_t rows : {1, 3, 8, 13, 24}) {
      for (const bool is_added : {false, true}) {
        const at::Tensor a = at::randn({40, rows + 3});
        const at::Tensor b = at::randn({40, 64});
        const at::Tensor before = at::randn({rows, 70});
        const at::Tensor found = before.clone();
        loops->multiply(
            {.a = a.const_data_ptr<float>(),
             .a_row = 1,
             .a_step = rows + 3,
             .b = b.const_data_ptr<float>(),
             .b_step = 64,
             .b_panel = loops->panel,
             .to = found.mutable_data_ptr<float>(),
             .to_row = 70,
             .rows = rows,
             .columns = 64,
             .depth = 40,
             .is_added = is_added});
        const at::Tensor product =
            a.narrow(1, 0, rows).t().to(at::kDouble).mm(b.to(at::kDouble));
        const at::Tensor exact =
            is_added ? product + before.narrow(1, 0, 64) : product;
        EXPECT_LT(rms_error(found.narrow(1, 0, 64), exact), 1e-6 * rms(exact))
            << loops->panel << ", " << rows;
        EXPECT_TRUE(at::equal(found.narrow(1, 64, 6), before.narrow(1, 64, 6)));
      }
    }
  }
}

} // namespace
} // namespace lockstep::kernels
