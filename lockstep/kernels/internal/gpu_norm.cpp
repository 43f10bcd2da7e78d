// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/gpu_norm.h"

#include <algorithm>
#include <cstdint>

#include <c10/core/DeviceGuard.h>

#include "lockstep/kernels/internal/gpu_norm_at_once.h"
#include "lockstep/kernels/internal/gpu_norm_parts.h"
#include "lockstep/kernels/internal/gpu_norm_table.h"
#include "lockstep/kernels/internal/gpu_norm_tables.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

GpuProgram& program() {
  static GpuProgram kernels(gpu_norm_source());
  return kernels;
}

using Table = GpuNormTable;

// The kernel of the table's type.
template <class... Arguments>
void launch(
    const Table& table,
    const char* of_float32,
    const char* of_bfloat16,
    const GpuGrid& grid,
    Arguments... arguments) {
  program().launch(
      table.is_float32() ? of_float32 : of_bfloat16,
      table.device(),
      grid,
      arguments...);
}

const float* floats_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}
float* new_floats_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}
const void* data_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

void* new_data_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}

bool is_aligned(const Tensor& tensor) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its number
  const auto address = reinterpret_cast<std::uintptr_t>(data_of(tensor));
  return address % Table::kPackBytes == 0;
}

// Whose first number lies at a multiple of a pack.
Tensor aligned(const Tensor& tensor) {
  return is_aligned(tensor) ? tensor : tensor.clone();
}

bool has_one_pixel(const Tensor& x) {
  const at::IntArrayRef pixels = x.sizes().slice(2);
  return std::ranges::all_of(pixels, [](auto size) { return size == 1; });
}

// Rows without gaps, one after the other, in the layout that results get: of
// strides along a single pixel LibTorch's `is_contiguous` knows less.
bool is_table(const Tensor& x) {
  const at::MemoryFormat layout = x.suggest_memory_format();
  return x.is_contiguous(layout) &&
         (layout != at::MemoryFormat::Contiguous || has_one_pixel(x));
}

class GpuNorm final : public NormAlgorithm {
 public:
  [[nodiscard]] bool takes(const Tensor& x) const override {
    return (x.scalar_type() == at::kFloat ||
            x.scalar_type() == at::kBFloat16) &&
           x.numel() > 0 && is_table(x) && is_aligned(x) &&
           x.size(1) * x.element_size() % Table::kPackBytes == 0;
  }

  [[nodiscard]] NormOutput by_batch(
      const Tensor& x,
      const NormLayer& layer,
      const Tensor& addend,
      bool has_relu) const override {
    const c10::DeviceGuard guard(x.device());
    const Table table(x);
    const Tensor added = addend.defined() ? aligned(addend) : addend;
    if (!table.fits_at_once()) {
      const ChannelParameters found = batch_parameters(x, table, layer);
      return {normalised(x, table, found, added, has_relu), found};
    }
    NormOutput found{
        .y = new_like(x),
        .parameters = {.rows = table.floats({4, table.channels()})}};
    launch(
        table,
        "normalise_at_once_Float32",
        "normalise_at_once_Bfloat16",
        table.at_once(),
        data_of(x),
        data_of(added),
        static_cast<int>(table.rows()),
        table.channels(),
        floats_of(layer.weight),
        floats_of(layer.bias),
        layer.eps,
        layer.momentum,
        new_floats_of(layer.running_mean),
        new_floats_of(layer.running_var),
        static_cast<int>(has_relu),
        found.parameters.rows.mutable_data_ptr<float>(),
        found.y.mutable_data_ptr());
    return found;
  }

  [[nodiscard]] NormOutput by_running(
      const Tensor& x,
      const NormLayer& layer,
      const Tensor& addend,
      bool has_relu) const override {
    const c10::DeviceGuard guard(x.device());
    const Table table(x);
    const ChannelParameters found = running_parameters(table, layer);
    const Tensor added = addend.defined() ? aligned(addend) : addend;
    return {normalised(x, table, found, added, has_relu), found};
  }

  [[nodiscard]] NormGradients gradients(
      const NormGradientInputs& inputs,
      bool wants_input) const override {
    const c10::DeviceGuard guard(inputs.x.device());
    const Table table(inputs.x);
    NormGradients found{
        .of_weight = table.floats({table.channels()}),
        .of_bias = table.floats({table.channels()})};
    if (inputs.output.defined()) {
      found.of_addend = new_like(inputs.x);
    }
    const Tensor grad = aligned(inputs.grad);
    if (table.fits_at_once()) {
      found.of_input = wants_input ? new_like(inputs.x) : Tensor();
      at_once(inputs, table, grad, found);
      return found;
    }
    const Tensor factors = sums(inputs, table, grad, found);
    if (wants_input) {
      found.of_input = new_like(inputs.x);
      const bool is_kept = found.of_addend.defined();
      const auto shares = table.shares();
      launch(
          table,
          "gradient_Float32",
          "gradient_Bfloat16",
          shares.grid,
          data_of(is_kept ? found.of_addend : grad),
          data_of(inputs.x),
          table.rows(),
          shares.rows,
          table.channels(),
          floats_of(inputs.parameters.rows),
          floats_of(factors),
          static_cast<int>(inputs.has_relu && !is_kept),
          found.of_input.mutable_data_ptr());
    }
    return found;
  }

 private:
  static ChannelParameters batch_parameters(
      const Tensor& x,
      const Table& table,
      const NormLayer& layer) {
    const auto shares = table.shares_for_sums();
    const Tensor sums = table.floats({2, shares.grid.rows, table.channels()});
    auto* const means = sums.mutable_data_ptr<float>();
    auto* const squares =
        means + std::int64_t{shares.grid.rows} * table.channels();
    launch(
        table,
        "moments_Float32",
        "moments_Bfloat16",
        shares.grid,
        data_of(x),
        table.rows(),
        shares.rows,
        table.channels(),
        means,
        squares);
    ChannelParameters found{.rows = table.floats({4, table.channels()})};
    program().launch(
        "finish_moments",
        table.device(),
        table.warps(),
        means,
        squares,
        static_cast<int>(shares.grid.rows),
        table.rows(),
        static_cast<int>(shares.rows),
        table.channels(),
        floats_of(layer.weight),
        floats_of(layer.bias),
        layer.eps,
        layer.momentum,
        new_floats_of(layer.running_mean),
        new_floats_of(layer.running_var),
        found.rows.mutable_data_ptr<float>());
    return found;
  }

  static ChannelParameters running_parameters(
      const Table& table,
      const NormLayer& layer) {
    ChannelParameters found{.rows = table.floats({4, table.channels()})};
    program().launch(
        "use_running",
        table.device(),
        table.threads(),
        floats_of(layer.running_mean),
        floats_of(layer.running_var),
        table.channels(),
        floats_of(layer.weight),
        floats_of(layer.bias),
        layer.eps,
        found.rows.mutable_data_ptr<float>());
    return found;
  }

  static Tensor normalised(
      const Tensor& x,
      const Table& table,
      const ChannelParameters& parameters,
      const Tensor& addend,
      bool has_relu) {
    const auto shares = table.shares();
    Tensor y = new_like(x);
    launch(
        table,
        "normalise_Float32",
        "normalise_Bfloat16",
        shares.grid,
        data_of(x),
        data_of(addend),
        table.rows(),
        shares.rows,
        table.channels(),
        floats_of(parameters.rows),
        static_cast<int>(has_relu),
        y.mutable_data_ptr());
    return y;
  }

  static void at_once(
      const NormGradientInputs& inputs,
      const Table& table,
      const Tensor& grad,
      const NormGradients& found) {
    launch(
        table,
        "gradients_at_once_Float32",
        "gradients_at_once_Bfloat16",
        table.at_once(),
        data_of(grad),
        data_of(inputs.x),
        data_of(inputs.output),
        static_cast<int>(table.rows()),
        table.channels(),
        floats_of(inputs.weight),
        floats_of(inputs.parameters.rows),
        static_cast<int>(inputs.has_relu),
        new_data_of(found.of_addend),
        found.of_weight.mutable_data_ptr<float>(),
        found.of_bias.mutable_data_ptr<float>(),
        new_data_of(found.of_input));
  }

  // The pass over the batch, and what the input's gradient is made of: [3, C].
  static Tensor sums(
      const NormGradientInputs& inputs,
      const Table& table,
      const Tensor& grad,
      const NormGradients& found) {
    const auto shares = table.shares_for_sums();
    const Tensor both = table.floats({2, shares.grid.rows, table.channels()});
    auto* const sums = both.mutable_data_ptr<float>();
    auto* const products =
        sums + std::int64_t{shares.grid.rows} * table.channels();
    launch(
        table,
        "gradient_sums_Float32",
        "gradient_sums_Bfloat16",
        shares.grid,
        data_of(grad),
        data_of(inputs.x),
        data_of(inputs.output),
        table.rows(),
        shares.rows,
        table.channels(),
        floats_of(inputs.parameters.rows),
        static_cast<int>(inputs.has_relu),
        new_data_of(found.of_addend),
        sums,
        products);
    Tensor factors = table.floats({3, table.channels()});
    program().launch(
        "finish_gradients",
        table.device(),
        table.warps(),
        sums,
        products,
        static_cast<int>(shares.grid.rows),
        table.rows(),
        table.channels(),
        floats_of(inputs.weight),
        floats_of(inputs.parameters.rows),
        found.of_weight.mutable_data_ptr<float>(),
        found.of_bias.mutable_data_ptr<float>(),
        factors.mutable_data_ptr<float>());
    return factors;
  }
};

} // namespace

const NormAlgorithm& gpu_norm() {
  static const GpuNorm algorithm;
  return algorithm;
}

std::string gpu_norm_source() {
  std::string source;
  for (const std::string_view part :
       {kGpuNormParts, kGpuNormTables, kGpuNormAtOnce}) {
    source += part;
  }
  return source;
}

} // namespace lockstep::kernels
