// SPDX-License-Identifier: BSD-3-Clause
//
// What the metrics refuse, in words of the user's program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace lockstep::internal {

/// Throws kInvalidArgument (E_METRIC_OPTION).
[[noreturn]] void refuse_metric_option(
    std::string_view metric,
    std::string message);

/// Throws kInvalidArgument (E_METRIC_INPUT).
[[noreturn]] void refuse_metric_input(
    std::string_view metric,
    std::string message,
    std::string hint = {});

/// Throws kInvalidArgument (E_METRIC_OPTION) if `value` is below `least`.
void check_at_least(
    std::string_view metric,
    std::string_view field,
    std::int64_t value,
    std::int64_t least);

/// Both are there, dense, of real numbers and on one device; outputs are of
/// floating point.
void check_pair(
    std::string_view metric,
    const at::Tensor& outputs,
    const at::Tensor& targets);

/// The sizes of `outputs` are `shape`; -1 stands for any size. `text`: the
/// shape as the user knows it, "[N, 3, H, W]".
void check_shape(
    std::string_view metric,
    const at::Tensor& outputs,
    std::span<const std::int64_t> shape,
    std::string_view text);

/// Targets of the sizes of the outputs.
void check_like_outputs(
    std::string_view metric,
    const at::Tensor& outputs,
    const at::Tensor& targets);

/// Integer targets of the sizes of `outputs` without their dimension 1.
void check_labels(
    std::string_view metric,
    const at::Tensor& outputs,
    const at::Tensor& targets);

/// Throws kInvalidArgument (E_METRIC_SUMS) unless there are `size` sums.
void check_sums(
    std::string_view metric,
    std::span<const double> sums,
    std::int64_t size);

/// Throws kInvalidArgument (E_METRIC_LABEL) if `outside`, a count of labels, is
/// not 0. `classes`: what labels may be, "0 to 9".
void check_outside(
    std::string_view metric,
    double outside,
    std::string_view classes,
    std::optional<std::int64_t> ignore_index = {});

/// `class_names`, or as many numbers if there are none.
/// Errors: throws kInvalidArgument (E_METRIC_OPTION) for another number of
/// names.
std::vector<std::string> row_names(
    std::string_view metric,
    std::span<const std::string> class_names,
    std::int64_t count);

} // namespace lockstep::internal
