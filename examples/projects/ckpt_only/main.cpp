// SPDX-License-Identifier: BSD-3-Clause
//
// Looks into a checkpoint and writes a copy, without LibTorch and without
// Python: ckpt_only FILE COPY
#include <iostream>

#include <lockstep/ckpt.h>

int main(int argc, char** argv) {
  const auto file = lockstep::ckpt::load(argc > 1 ? argv[1] : "");
  if (!file) {
    std::cerr << to_string(file.error()) << "\n"; // what, where, what to do
    return 1;
  }
  std::cout << to_text(file->root) << "\n";
  const auto saved = lockstep::ckpt::save(argc > 2 ? argv[2] : "", file->root);
  if (!saved) {
    std::cerr << to_string(saved.error()) << "\n";
    return 1;
  }
}
