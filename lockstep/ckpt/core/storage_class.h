// SPDX-License-Identifier: BSD-3-Clause
//
// PyTorch's classes of storages, by name: "torch.FloatStorage".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// The "Float" of "torch.FloatStorage" and of "torch.cuda.FloatStorage", where
/// `suffix` is "Storage"; nothing for another name.
std::optional<std::string_view> class_stem(
    std::string_view name,
    std::string_view suffix);

/// Dtype of a storage class ("torch.FloatStorage", "torch.cuda.HalfStorage");
/// untyped storages count bytes and give kUInt8. Nothing for another name.
std::optional<DType> storage_class_dtype(std::string_view name);

/// The class of another dtype in the module of a typed one: of
/// "torch.cuda.FloatStorage" and kFloat64 "torch.cuda.DoubleStorage".
std::string storage_class_of(std::string_view name, DType dtype);

/// LibTorch's storage class of a dtype without "Storage": "Float", and also
/// "UInt16" or "Float8_e5m2", which Python does not have.
std::string_view native_storage(DType dtype);

/// A storage as an element of a finished tree: `Object` of its class that holds
/// a one-dimensional tensor over all of it.
Value storage_object(const std::shared_ptr<Storage>& storage);

/// The storage in a value of either form, null for any other.
std::shared_ptr<Storage> storage_of(const Value& value);

} // namespace lockstep::ckpt
