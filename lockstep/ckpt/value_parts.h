// SPDX-License-Identifier: BSD-3-Clause
//
// What values hold beside numbers, texts, tensors and containers.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {

/// A number's type: no bool and no character.
template <class T>
concept IntegerType =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
    !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
    !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

struct None {
  friend bool operator==(None, None) = default;
};
/// Integer beyond 64 bits: two's complement, little-endian, minimal length.
struct BigInt {
  std::string bytes = {};
};
struct Bytes {
  std::string data = {};
};
struct Complex {
  double real = 0;
  double imag = 0;
};
/// `torch.Size`, written as such.
struct Size {
  std::vector<std::int64_t> sizes = {};
};
/// `torch.device('cuda', 1)`; index -1 if absent.
struct Device {
  std::string type = "cpu";
  int index = -1;
};
/// `torch.float32` as a value.
struct DTypeValue {
  DType dtype = DType::kFloat32;
};

/// Class name of the node that stands for a value inside itself; its only
/// argument counts the levels up to that value.
inline constexpr const char* kReferenceGlobal = "<ref>";

} // namespace lockstep::ckpt
