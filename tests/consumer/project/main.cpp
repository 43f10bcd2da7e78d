// SPDX-License-Identifier: BSD-3-Clause
//
// Prints what README.md promises for a few lines: app FILE.
#include <cstdio>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/value_walk.h"

namespace ckpt = lockstep::ckpt;

int main(int argc, char** argv) {
  const auto file = ckpt::load(argc > 1 ? argv[1] : "");
  if (!file) {
    std::fprintf(stderr, "%s\n", to_string(file.error()).c_str());
    return 1;
  }
  const auto status = ckpt::for_each_tensor(
      file->root,
      [](const std::string& name, const ckpt::Tensor& tensor) {
        std::printf("%s %s\n", name.c_str(), describe(tensor).c_str());
      });
  return status && ckpt::save("copy.pt", file->root) ? 0 : 1;
}
