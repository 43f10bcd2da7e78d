// SPDX-License-Identifier: BSD-3-Clause
//
// Lists the tensors of a checkpoint and writes a copy, without LibTorch and
// without Python: ckpt_only FILE COPY
#include <iostream>
#include <string>

#include <lockstep/ckpt.h>

namespace ckpt = lockstep::ckpt;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: ckpt_only FILE COPY\n";
    return 2;
  }
  const auto file = ckpt::load(argv[1]);
  if (!file) {
    std::cerr << to_string(file.error()) << "\n"; // what, where, what to do
    return 1;
  }
  const auto listed = ckpt::for_each_tensor(
      file->root,
      [](const std::string& name, const ckpt::Tensor& tensor) {
        std::cout << name << "  " << describe(tensor) << "\n";
      });
  if (!listed) {
    std::cerr << to_string(listed.error()) << "\n";
    return 1;
  }
  if (const auto saved = ckpt::save(argv[2], file->root); !saved) {
    std::cerr << to_string(saved.error()) << "\n";
    return 1;
  }
}
