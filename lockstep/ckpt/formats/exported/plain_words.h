// SPDX-License-Identifier: BSD-3-Clause
//
// Words that texts of a program may hold: see `is_plain_expression`.
#pragma once

#include <array>
#include <string_view>

namespace lockstep::ckpt {

// Functions of sympy and of torch.utils._sympy.functions that are printed.
inline constexpr auto kExpressionFunctions = std::to_array<std::string_view>({
    "Abs",
    "Add",
    "And",
    "BitwiseFn_bitwise_and",
    "BitwiseFn_bitwise_or",
    "BitwiseFn_bitwise_xor",
    "BooleanFalse",
    "BooleanTrue",
    "CeilDiv",
    "CeilToInt",
    "CleanDiv",
    "Eq",
    "Equality",
    "ExprCondPair",
    "Float",
    "FloatPow",
    "FloatTrueDiv",
    "FloorDiv",
    "FloorToInt",
    "Ge",
    "GreaterThan",
    "Gt",
    "Identity",
    "IntTrueDiv",
    "Integer",
    "IsNonOverlappingAndDenseIndicator",
    "LShift",
    "Le",
    "LessThan",
    "Lt",
    "Max",
    "Min",
    "Mod",
    "ModularIndexing",
    "Mul",
    "Ne",
    "Not",
    "OpaqueUnaryFn_acos",
    "OpaqueUnaryFn_asin",
    "OpaqueUnaryFn_asinh",
    "OpaqueUnaryFn_atan",
    "OpaqueUnaryFn_cos",
    "OpaqueUnaryFn_cosh",
    "OpaqueUnaryFn_exp",
    "OpaqueUnaryFn_log",
    "OpaqueUnaryFn_log2",
    "OpaqueUnaryFn_sin",
    "OpaqueUnaryFn_sinh",
    "OpaqueUnaryFn_sqrt",
    "OpaqueUnaryFn_tan",
    "OpaqueUnaryFn_tanh",
    "Or",
    "Piecewise",
    "Pow",
    "PowByNatural",
    "PythonMod",
    "RShift",
    "Rational",
    "RoundDecimal",
    "RoundToInt",
    "StrictGreaterThan",
    "StrictLessThan",
    "Symbol",
    "ToFloat",
    "TruncToFloat",
    "TruncToInt",
    "Unequality",
    "Where",
    "ceiling",
    "exp",
    "floor",
    "log",
    "sqrt",
});

// Functions and methods of conditions between sizes.
inline constexpr auto kGuardFunctions = std::to_array<std::string_view>({
    "IsNonOverlappingAndDenseIndicator",
    "abs",
    "bool",
    "cast_symbool_to_symint_guardless",
    "float",
    "int",
    "max",
    "min",
    "pow",
    "round",
});
inline constexpr auto kGuardMethods = std::to_array<std::string_view>(
    {"size", "stride", "storage_offset", "numel", "dim"});
inline constexpr auto kGuardModules = std::to_array<std::string_view>({"math"});
// Of other modules nothing else is called.
inline constexpr auto kGuardDotted =
    std::to_array<std::string_view>({"torch._sym_sqrt", "torch.sym_float"});
inline constexpr auto kGuardConstants =
    std::to_array<std::string_view>({"math.inf", "math.nan"});

// Functions of sympy whose first argument is written as a text.
inline constexpr auto kTextFunctions =
    std::to_array<std::string_view>({"Float", "Integer", "Rational", "Symbol"});

inline constexpr auto kExpressionNames = std::to_array<std::string_view>(
    {"False", "None", "True", "false", "int_oo", "oo", "true"});

// What sympy prints with `=`.
inline constexpr auto kExpressionOptions = std::to_array<std::string_view>({
    "commutative",
    "evaluate",
    "even",
    "extended_real",
    "finite",
    "integer",
    "negative",
    "nonnegative",
    "nonpositive",
    "nonzero",
    "odd",
    "positive",
    "precision",
    "rational",
    "real",
    "zero",
});

// The arguments of `forward`.
inline constexpr std::string_view kArguments = "L";
inline constexpr auto kGuardNames = std::to_array<std::string_view>(
    {"False", "None", "True", "inf", "int_oo", kArguments});

inline constexpr auto kWordOperators =
    std::to_array<std::string_view>({"and", "not", "or"});
// sympy writes a Piecewise as Piecewise(...), a guard as "a if b else c".
inline constexpr auto kGuardWordOperators =
    std::to_array<std::string_view>({"and", "else", "if", "not", "or"});

} // namespace lockstep::ckpt
