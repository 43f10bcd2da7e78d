// SPDX-License-Identifier: BSD-3-Clause
//
// Writes a checkpoint and reads it again, or another file, for the tests of
// packages: round_trip [COPY [FILE]]
#include <iostream>
#include <string>

#include <lockstep/ckpt.h>

namespace ckpt = lockstep::ckpt;

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "round_trip.pt";
  ckpt::Dict dict;
  dict.items.emplace_back("epoch", 3);
  ckpt::save(path, dict).value();
  const auto file = ckpt::load(argc > 2 ? argv[2] : path);
  std::cout << to_text(file.value().root) << "\n";
} catch (const lockstep::Exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
