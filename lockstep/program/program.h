// SPDX-License-Identifier: BSD-3-Clause
//
// A net that was defined in Python, as a module of LibTorch: torch.export wrote
// its graph and its weights, no Python runs here.
//   Program net = load_program("net.pt2");
//   torch::optim::SGD sgd(net->parameters(), 0.1);
//   loss(net->forward(images), targets).backward();
//   save_program(*net, "trained.pt2");   // torch.export.load reads it
//
// What a net from Python takes and gives: tensors, numbers, texts, None, and
// tuples, lists and dicts of these.
//   ProgramValue result = net->forward(ProgramArguments{.args = {x, mask}});
//   at::Tensor logits = result["logits"].tensor();
//
// Note [Programs]
// Names of parameters and buffers are Python's. The graph was recorded once:
// Python's branches are gone, sizes are those of the export or symbols
// (docs/python_models.md). train() and eval() switch dropout, batch norms and
// their like, each node by the mode of the module it came from; what was
// exported with a flag off stays off.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "lockstep/models/model.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/tensor/structure.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// One value. Copies are of their own, but for the memory of tensors.
class ProgramValue {
 public:
  /// None.
  ProgramValue() = default;
  // Implicit on purpose: values convert where forward is called.
  // NOLINTBEGIN(google-explicit-constructor)
  ProgramValue(at::Tensor tensor) : value_(std::move(tensor)) {}
  ProgramValue(std::same_as<bool> auto value) : value_(value) {}
  /// Errors: throws kInvalidArgument (E_PROGRAM_VALUE) for more than int64
  /// holds.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  ProgramValue(T value) : value_(whole(value)) {}
  ProgramValue(std::floating_point auto value)
      : value_(static_cast<double>(value)) {}
  ProgramValue(std::string text) : value_(std::move(text)) {}
  ProgramValue(const char* text) : value_(std::string(text)) {}
  // NOLINTEND(google-explicit-constructor)

  using Item = std::pair<std::string, ProgramValue>;
  static ProgramValue tuple(std::vector<ProgramValue> items);
  static ProgramValue list(std::vector<ProgramValue> items);
  static ProgramValue dict(std::vector<Item> items);

  [[nodiscard]] bool is_none() const noexcept;
  [[nodiscard]] bool is_tensor() const noexcept;
  /// A whole one, any other, True or False.
  [[nodiscard]] bool is_number() const noexcept;
  /// Of a temporary, `net->forward(x)["out"]`, what these give is a value of
  /// its own; else it belongs to this one. Errors of these: throw kMismatch
  /// (E_PROGRAM_VALUE) for another kind.
  [[nodiscard]] const at::Tensor& tensor() const&;
  [[nodiscard]] at::Tensor tensor() &&;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] const std::string& text() const&;
  [[nodiscard]] std::string text() &&;
  /// The value of a dict's key. Errors: also kNotFound, with the keys.
  [[nodiscard]] const ProgramValue& operator[](std::string_view key) const&;
  [[nodiscard]] ProgramValue operator[](std::string_view key) &&;
  /// An item of a tuple, a list or a dict. Errors: also kNotFound.
  [[nodiscard]] const ProgramValue& operator[](std::size_t index) const&;
  [[nodiscard]] ProgramValue operator[](std::size_t index) &&;

  /// Items of a tuple, a list or a dict; none of any other value.
  [[nodiscard]] std::span<const ProgramValue> items() const& noexcept;
  [[nodiscard]] std::vector<ProgramValue> items() &&;
  /// Keys of a dict, in the order of its items.
  [[nodiscard]] std::span<const std::string> keys() const& noexcept;
  [[nodiscard]] std::vector<std::string> keys() &&;
  /// "builtins.tuple", "builtins.list", "builtins.dict"; empty for what holds
  /// no items.
  [[nodiscard]] std::string_view container() const noexcept;
  /// As LibTorch's own value. Errors: throws kMismatch for what holds items.
  [[nodiscard]] c10::IValue ivalue() const;
  /// A copy with a tensor without dimensions for each number, as Python's
  /// loader makes them: bool, int64, float64.
  [[nodiscard]] ProgramValue with_tensors() const;
  /// "{'out': tensor, 'more': (tensor, 5)}"
  [[nodiscard]] std::string describe() const;

  /// Calls `f(tensor)` for each tensor, in order, and of a constant value
  /// `f.number(text)`, if there is such a member, for each number.
  template <class F>
  void visit(const F& f) {
    if (auto* tensor = std::get_if<at::Tensor>(&value_)) {
      f(*tensor);
    } else if (auto* held = std::get_if<Container>(&value_)) {
      for (ProgramValue& item : held->items) {
        item.visit(f);
      }
    }
  }
  template <class F>
  void visit(const F& f) const {
    if (const auto* tensor = std::get_if<at::Tensor>(&value_)) {
      f(*tensor);
    }
    if constexpr (requires { f.number(std::string()); }) {
      if (is_number()) {
        f.number(describe());
      }
    }
    for (const ProgramValue& item : items()) {
      item.visit(f);
    }
  }

 private:
  struct Container {
    std::string_view type = {};
    std::vector<std::string> keys = {};
    std::vector<ProgramValue> items = {};
  };
  static ProgramValue container_of(Container container);
  [[noreturn]] static void raise_too_large(std::uint64_t number);
  template <std::integral T>
  static std::int64_t whole(T value) {
    const auto number = static_cast<std::int64_t>(value);
    if constexpr (std::unsigned_integral<T>) {
      if (number < 0) {
        raise_too_large(value);
      }
    }
    return number;
  }
  template <class T>
  const T& get(std::string_view wanted) const;

  std::variant<
      std::monostate,
      at::Tensor,
      bool,
      std::int64_t,
      double,
      std::string,
      Container>
      value_ = {};
};

/// How a program's forward is called, as in Python. Several keyword arguments
/// of an export are given by name: their order is the export's.
struct ProgramArguments {
  std::vector<ProgramValue> args = {};
  std::vector<ProgramValue::Item> kwargs = {};
};

template <>
struct Structure<ProgramValue> {
  static constexpr bool kHasTensors = true;
  static constexpr bool kIsJoinable = true;
  template <class V, class F>
  static void visit(V& value, const F& f) {
    value.visit(f);
  }
  static std::string describe(const ProgramValue& value) {
    return value.describe();
  }
  static ProgramValue as_sample(const ProgramValue& value) {
    return value.with_tensors();
  }
};

template <>
struct Structure<ProgramArguments>
    : Fields<&ProgramArguments::args, &ProgramArguments::kwargs> {};

namespace program {
struct ProgramData;
} // namespace program

/// How a program is loaded.
struct ProgramOptions {
  /// Which of several programs in the file; empty: the only one.
  std::string model = {};
  /// What the graph may call beside the operators of ATen that are neither
  /// private, backward ones nor known to trust their callers: namespaces
  /// ("mylib") and operators ("aten._unsafe_index"). A file is a program:
  /// name only what you know.
  std::vector<std::string> allow = {};
  /// Shared libraries that register operators; loaded for good.
  std::vector<std::string> libraries = {};
  /// Map the file: weights alias it until they change, and it must keep its
  /// length while the net lives (`torch.export.save` to the same path cuts it;
  /// a rename is safe). Off: weights are read.
  bool use_mmap = true;
  /// Refuse inputs that break the file's guards, as Python's
  /// `module(check_guards=True)` does, but for those that only keep a size from
  /// being 0 or 1. Off: the graph runs with them, and for
  /// inputs of another branch it is another net.
  bool check_guards = true;
};

/// One size of an input: `fixed`, or any if the export made it dynamic.
struct ProgramSize {
  std::optional<std::int64_t> fixed = {};
};

/// A tensor that a program takes.
struct ProgramInput {
  /// "x"
  std::string name = {};
  std::vector<ProgramSize> sizes = {};
  at::ScalarType dtype = at::kFloat;
};

/// Threads: forward may run in several at the same time, as of any module.
class ProgramImpl : public Model, public UnsavedBuffers {
 public:
  /// `tensors`: one for each input of the graph, undefined for the user's.
  ProgramImpl(
      std::shared_ptr<const program::ProgramData> data,
      std::vector<at::Tensor> tensors);

  /// For nets of one tensor that give one, be it in a dict or a tuple of one.
  /// Errors: as the general form; throws kMismatch (E_PROGRAM_VALUE) for
  /// another result.
  at::Tensor forward(const at::Tensor& x) override;
  /// For nets of several tensors that give one.
  template <std::convertible_to<at::Tensor>... Rest>
  at::Tensor
  forward(const at::Tensor& x, const at::Tensor& y, const Rest&... rest) {
    return single(forward(ProgramArguments{.args = {x, y, rest...}}));
  }
  /// Any arguments, any result. Constants of the export may be left out.
  /// Errors: throws kInvalidArgument (E_PROGRAM_INPUT) for arguments of another
  /// structure, kMismatch (E_PROGRAM_INPUT) for sizes that the export excludes;
  /// c10::Error of an operator, with its line of Python.
  ProgramValue forward(const ProgramArguments& arguments);

  /// Shares the compiled graph; tensors are copied, and what shares memory
  /// does so in the copy.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<c10::Device>& device = std::nullopt) const override;
  /// As Python's: tied weights are in it once. LibTorch's, which a reference to
  /// the base calls, gives them for each name, and an optimizer of LibTorch
  /// steps twice then.
  [[nodiscard]] std::vector<at::Tensor> parameters(bool recurse = true) const;
  /// Errors of eval: throws kUnsupported (E_PROGRAM) if a node trains and
  /// cannot be switched. Warns once where training turns nothing on, because
  /// the export was made in eval mode.
  void train(bool on = true) override;
  using Model::to;
  /// A type is for floating point and complex tensors, as in Python.
  void to(c10::Device device, at::ScalarType dtype, bool non_blocking = false)
      override;
  void to(at::ScalarType dtype, bool non_blocking = false) override;
  void to(c10::Device device, bool non_blocking = false) override;

  /// The tensors that forward takes, in order.
  [[nodiscard]] std::vector<ProgramInput> inputs() const;
  /// Shapes of the tensors that forward gives, in order, by the graph's names.
  [[nodiscard]] std::vector<ProgramInput> outputs() const;
  /// Tells the graph from others, whatever its weights: the checksum of its
  /// JSON and its length.
  [[nodiscard]] std::string digest() const;
  /// Calls of operators in the graph.
  [[nodiscard]] std::size_t num_nodes() const;
  /// Buffers that are no part of the state_dict and tensor constants, by name.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>>
  unsaved_tensors() const;
  /// Of a buffer of the net itself. All buffers are registered.
  [[nodiscard]] bool is_unsaved(std::string_view buffer) const override;

  [[nodiscard]] const program::ProgramData& data() const noexcept {
    return *data_;
  }
  /// One for each input of the graph, undefined for the user's.
  [[nodiscard]] const std::vector<at::Tensor>& tensors() const noexcept {
    return tensors_;
  }

 private:
  static at::Tensor single(const ProgramValue& result);
  void register_parts();
  void convert(at::ScalarType dtype, bool non_blocking);
  void move_constants(c10::Device device);
  void apply_mutations(
      std::vector<c10::IValue>& outputs,
      const std::vector<c10::IValue>& inputs,
      const std::vector<std::uint8_t>& training);

  std::shared_ptr<const program::ProgramData> data_;
  std::vector<at::Tensor> tensors_;
  // By the place that nodes name; the first is this module.
  std::vector<std::shared_ptr<torch::nn::Module>> parts_ = {};
};

/// Holder of `ProgramImpl`, used like any LibTorch module.
class Program : public torch::nn::ModuleHolder<ProgramImpl> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): as LibTorch's holders
  Program(std::nullptr_t) : ModuleHolder(nullptr) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as LibTorch's holders
  Program(std::shared_ptr<ProgramImpl> impl) : ModuleHolder(std::move(impl)) {}

  /// `net(x)`: forward.
  template <class... Args>
  auto operator()(Args&&... args) {
    return (*this)->forward(std::forward<Args>(args)...);
  }
};

/// Loads a net that torch.export.save wrote.
/// Errors: throws kNotFound, kIo; kCorrupt, kUnsupported and kUnsafe of a file
/// that is broken or not read (docs/error_details.md: E_PROGRAM); kUnsupported
/// (E_OPERATOR) with all operators that are missing or refused.
Program load_program(
    const std::string& path,
    const ProgramOptions& options = {});

/// Writes the file that `net` came from with the weights it has now; nothing
/// else changes. Replaces `path` atomically.
/// Errors: throws kIo; kMismatch (E_PROGRAM) for a weight whose type or shape
/// is no longer the file's.
void save_program(const ProgramImpl& net, const std::string& path);
inline void save_program(const Program& net, const std::string& path) {
  save_program(*net, path);
}

} // namespace lockstep
#pragma GCC visibility pop
