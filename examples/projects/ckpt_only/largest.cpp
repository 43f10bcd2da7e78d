// SPDX-License-Identifier: BSD-3-Clause
//
// The largest magnitude in each float tensor of a file: largest FILE
#include <algorithm>
#include <cmath>
#include <iostream>

#include <lockstep/ckpt.h>

namespace ckpt = lockstep::ckpt;

int main(int argc, char** argv) try {
  for (const auto& [name, tensor] : ckpt::tensors(argc > 1 ? argv[1] : "")) {
    if (tensor.dtype != ckpt::DType::kFloat32) {
      continue;
    }
    float largest = 0;
    for (const float x : tensor.span<float>()) { // where the file is mapped
      largest = std::max(largest, std::abs(x));
    }
    std::cout << name << "  " << largest << "\n";
  }
} catch (const lockstep::Exception& error) {
  std::cerr << error.what() << "\n"; // what, where, what to do
  return 1;
}
