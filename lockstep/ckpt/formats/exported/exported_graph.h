// SPDX-License-Identifier: BSD-3-Clause
//
// The graph of an exported program (torch.export), as plain data: nodes that
// name operators, what they take and give, and the shapes that were seen.
// Source of the format: torch/_export/serde/schema.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {

struct ExportedGraph;

/// A number that may depend on the sizes of the inputs.
struct ExportedSize {
  /// The number, or what an expression was when the program was exported;
  /// nothing if the file does not say.
  std::optional<std::int64_t> value = {};
  /// As sympy prints it: "Symbol('s77', positive=True, integer=True)". Empty
  /// for a plain number.
  std::string expression = {};

  /// "s77" of an expression that is one symbol; empty for any other.
  [[nodiscard]] std::string_view symbol() const noexcept;

  friend bool operator==(const ExportedSize&, const ExportedSize&) = default;
};

/// What is known of a tensor without its elements.
struct ExportedTensorMeta {
  /// Nothing for a type that the schema does not name.
  std::optional<DType> dtype = {};
  std::vector<ExportedSize> sizes = {};
  /// Units: elements, as the offset.
  std::vector<ExportedSize> strides = {};
  ExportedSize offset = {};
  bool requires_grad = false;
  /// "cpu", "cuda:0": where the tensor was.
  std::string device = {};
  /// False for a sparse tensor and its like.
  bool is_strided = true;
};

/// What a value in the graph is.
enum class ExportedKind : std::uint8_t {
  kNone,
  /// `text` names a tensor.
  kTensor,
  /// `text` names a number: of type int, float or bool.
  kSymInt,
  kSymFloat,
  kSymBool,
  kInt,
  /// `number`.
  kFloat,
  /// `integer` is 0 or 1.
  kBool,
  kString,
  /// `integer` is the schema's: `exported_dtype`.
  kScalarType,
  kMemoryFormat,
  kLayout,
  /// `text`: "cpu", "cuda:0".
  kDevice,
  /// `number` and `imaginary`.
  kComplex,
  /// `text` names it.
  kGraph,
  kOperator,
  kCustomObject,
  kToken,
  /// `items`.
  kList,
  /// `items`, by `keys`.
  kDict,
};

/// A value that a node takes or gives.
struct ExportedArgument {
  ExportedKind kind = ExportedKind::kNone;
  std::int64_t integer = 0;
  double number = 0.0;
  double imaginary = 0.0;
  std::string text = {};
  std::vector<ExportedArgument> items = {};
  std::vector<std::string> keys = {};
  std::shared_ptr<const ExportedGraph> graph = {};
};

/// An argument by the name that the operator's schema gives it.
struct ExportedNamedArgument {
  /// Empty for an argument of a higher-order operator.
  std::string name = {};
  ExportedArgument value = {};
};

/// One call of an operator.
struct ExportedNode {
  /// "torch.ops.aten.conv2d.default"
  std::string target = {};
  std::string name = {};
  std::vector<ExportedNamedArgument> inputs = {};
  std::vector<ExportedArgument> outputs = {};
  /// Lines of the Python that made it.
  std::string stack_trace = {};
  /// The modules it lies in, as the file lists them.
  std::string module_stack = {};
  /// A higher-order operator that gives one tensor, not a list of one.
  bool gives_single_tensor = false;
};

/// Calls in their order. Names are unique; each is defined before it is used.
struct ExportedGraph {
  std::vector<ExportedArgument> inputs = {};
  std::vector<ExportedArgument> outputs = {};
  std::vector<ExportedNode> nodes = {};
  /// By name; also of tensors between nodes.
  std::map<std::string, ExportedTensorMeta, std::less<>> tensors = {};
  /// By name.
  std::map<std::string, ExportedSize, std::less<>> sym_ints = {};
  bool gives_single_tensor = false;
};

/// The element type of a number of the schema ("7" is float32); nothing for
/// numbers that it does not name.
std::optional<DType> exported_dtype(std::int64_t number);

} // namespace lockstep::ckpt
