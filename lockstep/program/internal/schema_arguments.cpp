// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/schema_arguments.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/dtype_map.h"
#include "lockstep/tensor/internal/wrapped_number.h"

namespace lockstep::program {
namespace {

using ckpt::ExportedArgument;
using Kind = ckpt::ExportedKind;

// MemoryFormat of the schema, from 1.
constexpr std::array kMemoryFormats = {
    c10::MemoryFormat::Contiguous,
    c10::MemoryFormat::ChannelsLast,
    c10::MemoryFormat::ChannelsLast3d,
    c10::MemoryFormat::Preserve};
// Layout of the schema, from 1.
constexpr std::array kLayouts = {
    c10::Layout::Sparse,
    c10::Layout::SparseCsr,
    c10::Layout::SparseCsc,
    c10::Layout::SparseBsr,
    c10::Layout::SparseBsc,
    c10::Layout::Mkldnn,
    c10::Layout::Strided};

Input constant(c10::IValue value) {
  return {.make = take_constant, .constant = std::move(value)};
}

bool is_symbol(const ExportedArgument& value) {
  return value.kind == Kind::kSymInt || value.kind == Kind::kSymFloat ||
         value.kind == Kind::kSymBool;
}

class InputMaker {
 public:
  InputMaker(
      std::string_view argument,
      const Names& names,
      std::string_view place)
      : argument_(argument), names_(names), place_(place) {}

  Input make(
      const c10::Type& type,
      const ExportedArgument& value,
      std::optional<int> length) const {
    if (const auto* optional = type.castRaw<c10::OptionalType>()) {
      return value.kind == Kind::kNone
                 ? constant({})
                 : make(*optional->getElementType(), value, length);
    }
    const auto* row = std::ranges::find(kRows, type.kind(), &Row::kind);
    if (row == kRows.end()) {
      fail(format("is a {}, which is not supported", type.str()));
    }
    if (row->make_list == nullptr) {
      return (this->*row->make)(value);
    }
    return (this->*row->make_list)(*type.containedType(0), value, length);
  }

  /// A value of whatever type it has.
  Input plain(const ExportedArgument& value) const {
    switch (value.kind) {
      case Kind::kNone:
        return constant({});
      case Kind::kString:
        return text(value);
      case Kind::kDevice:
        return device(value);
      case Kind::kList: {
        Input input{.make = take_tensors};
        for (const ExportedArgument& item : value.items) {
          input.items.push_back(plain(item));
        }
        return input;
      }
      case Kind::kTensor:
        return named(value, take_value);
      case Kind::kScalarType:
        return whole(value);
      default:
        return number(value);
    }
  }

  /// Errors: throws kUnsupported (E_PROGRAM): it is of another kind.
  [[noreturn]] void mismatch(std::string_view expected) const {
    fail(format(
        "is of another kind than its operator takes; expected {}",
        expected));
  }

 private:
  using MakeOne = Input (InputMaker::*)(const ExportedArgument&) const;
  using MakeList = Input (InputMaker::*)(
      const c10::Type&,
      const ExportedArgument&,
      std::optional<int>) const;
  struct Row {
    c10::TypeKind kind = {};
    MakeOne make = nullptr;
    MakeList make_list = nullptr;
  };
  static const std::array<Row, 9> kRows;

  [[noreturn]] void fail(const std::string& what) const {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "program.load",
         .message = format("argument '{}' of {} {}", argument_, place_, what),
         .detail = "E_PROGRAM"});
  }

  Input named(const ExportedArgument& value, MakeInput way) const {
    const auto found = names_.find(value.text);
    if (found == names_.end()) {
      fail(format("names '{}', which is not defined", escape(value.text)));
    }
    return {.make = way, .slot = found->second};
  }

  Input tensor(const ExportedArgument& value) const {
    if (value.kind == Kind::kTensor) {
      return named(value, take_value);
    }
    if (is_symbol(value)) {
      return named(value, take_wrapped);
    }
    const Input made = number(value);
    return constant(wrapped_number(made.constant.toScalar()));
  }

  Input number(const ExportedArgument& value) const {
    switch (value.kind) {
      case Kind::kInt:
        return constant(value.integer);
      case Kind::kBool:
        return constant(value.integer != 0);
      case Kind::kFloat:
        return constant(value.number);
      case Kind::kComplex:
        return constant(c10::complex<double>(value.number, value.imaginary));
      default:
        break;
    }
    return is_symbol(value) ? named(value, take_value)
                            : (mismatch("a number"), Input());
  }

  template <class Table>
  auto from_table(const Table& table, std::int64_t number) const {
    if (number < 1 || number > static_cast<std::int64_t>(table.size())) {
      fail(format("is {}, which is not known", number));
    }
    return table[static_cast<std::size_t>(number - 1)];
  }

  Input whole(const ExportedArgument& value) const {
    switch (value.kind) {
      case Kind::kScalarType:
        return constant(static_cast<std::int64_t>(scalar_type(value)));
      case Kind::kMemoryFormat:
        return constant(static_cast<std::int64_t>(
            from_table(kMemoryFormats, value.integer)));
      case Kind::kLayout:
        return constant(
            static_cast<std::int64_t>(from_table(kLayouts, value.integer)));
      case Kind::kInt:
      case Kind::kBool:
        return constant(value.integer);
      case Kind::kSymInt:
        return named(value, take_value);
      default:
        mismatch("a whole number");
    }
  }

  c10::ScalarType scalar_type(const ExportedArgument& value) const {
    const auto dtype = ckpt::exported_dtype(value.integer);
    const auto type = dtype ? to_scalar_type(*dtype) : std::nullopt;
    if (!type) {
      fail(format("is the unknown element type {}", value.integer));
    }
    return *type;
  }

  Input real(const ExportedArgument& value) const {
    if (value.kind == Kind::kFloat) {
      return constant(value.number);
    }
    if (value.kind == Kind::kInt) {
      return constant(static_cast<double>(value.integer));
    }
    return is_symbol(value) ? named(value, take_real)
                            : (mismatch("a float"), Input());
  }

  Input flag(const ExportedArgument& value) const {
    if (value.kind == Kind::kBool) {
      return constant(value.integer != 0);
    }
    return value.kind == Kind::kSymBool ? named(value, take_value)
                                        : (mismatch("True or False"), Input());
  }

  Input text(const ExportedArgument& value) const {
    return value.kind == Kind::kString ? constant(value.text)
                                       : (mismatch("a text"), Input());
  }

  Input device(const ExportedArgument& value) const {
    return value.kind == Kind::kDevice ? Input{.make = take_device}
                                       : (mismatch("a device"), Input());
  }

  Input generator(const ExportedArgument& /*value*/) const {
    fail("is a random generator, which a file cannot hold");
  }

  Input list(
      const c10::Type& element,
      const ExportedArgument& value,
      std::optional<int> length) const {
    const auto* row =
        std::ranges::find(kListRows, element.kind(), &ListRow::kind);
    if (row == kListRows.end()) {
      fail(format("is a list of {}, which is not supported", element.str()));
    }
    Input input{.make = row->make};
    if (value.kind != Kind::kList) {
      // One number for int[2], as Python takes it.
      if (!length) {
        mismatch("a list");
      }
      input.items.assign(
          static_cast<std::size_t>(*length),
          make(element, value, std::nullopt));
    }
    for (const ExportedArgument& item : value.items) {
      input.items.push_back(make(element, item, std::nullopt));
    }
    return folded(std::move(input));
  }

  // A list of constants is made once.
  static Input folded(Input input) {
    const bool is_constant =
        std::ranges::all_of(input.items, [](const Input& item) {
          return item.make == take_constant && !item.constant.isTensor();
        });
    if (!is_constant || input.items.empty()) {
      return input;
    }
    const Machine machine;
    Frame frame{.machine = machine};
    return constant(input.make(input, frame));
  }

  struct ListRow {
    c10::TypeKind kind = {};
    MakeInput make = nullptr;
  };
  static constexpr std::array kListRows = {
      ListRow{c10::TypeKind::IntType, take_ints},
      ListRow{c10::TypeKind::FloatType, take_reals},
      ListRow{c10::TypeKind::BoolType, take_bools},
      ListRow{c10::TypeKind::TensorType, take_tensors},
      ListRow{c10::TypeKind::OptionalType, take_optional_tensors}};

  std::string_view argument_;
  const Names& names_;
  std::string_view place_;
};

const std::array<InputMaker::Row, 9> InputMaker::kRows = {{
    {c10::TypeKind::TensorType, &InputMaker::tensor},
    {c10::TypeKind::IntType, &InputMaker::whole},
    {c10::TypeKind::FloatType, &InputMaker::real},
    {c10::TypeKind::BoolType, &InputMaker::flag},
    {c10::TypeKind::NumberType, &InputMaker::number},
    {c10::TypeKind::StringType, &InputMaker::text},
    {c10::TypeKind::DeviceObjType, &InputMaker::device},
    {c10::TypeKind::GeneratorType, &InputMaker::generator},
    {c10::TypeKind::ListType, nullptr, &InputMaker::list},
}};

// Numbers to LibTorch, which looks them up in tables without a check.
struct TableKind {
  c10::TypeKind type = {};
  Kind kind = {};
  std::string_view name = {};
};
constexpr std::array kTableKinds = {
    TableKind{
        c10::TypeKind::ScalarTypeType,
        Kind::kScalarType,
        "an element type"},
    TableKind{c10::TypeKind::LayoutType, Kind::kLayout, "a layout"},
    TableKind{
        c10::TypeKind::MemoryFormatType,
        Kind::kMemoryFormat,
        "a memory format"}};

void check_table_kind(
    const c10::Argument& wanted,
    const ExportedArgument& value,
    const InputMaker& maker) {
  const c10::Type* type = wanted.real_type().get();
  if (const auto* optional = type->castRaw<c10::OptionalType>()) {
    type = optional->getElementType().get();
  }
  const auto* row =
      std::ranges::find(kTableKinds, type->kind(), &TableKind::type);
  if (row != kTableKinds.end() && value.kind != row->kind &&
      value.kind != Kind::kNone) {
    maker.mismatch(row->name);
  }
}

} // namespace

Input make_input(
    const c10::Argument& wanted,
    const ExportedArgument& value,
    const Names& names,
    std::string_view place) {
  const InputMaker maker(wanted.name(), names, place);
  check_table_kind(wanted, value, maker);
  return maker.make(*wanted.type(), value, wanted.N());
}

Input make_plain_input(
    const ExportedArgument& value,
    const Names& names,
    std::string_view place) {
  return InputMaker("", names, place).plain(value);
}

} // namespace lockstep::program
