// SPDX-License-Identifier: BSD-3-Clause
//
// Where the tensors are in an argument or a result. DataParallel splits and
// joins those and repeats everything else. Known: tensors, tuple, pair, array,
// vector, list, deque, optional, variant, map, unordered_map, OrderedDict,
// List<Tensor>, the Example of LibTorch's loaders, nested in any way. A class
// that is not known does not compile until structure_base.h's word is given:
// `Fields` or `AsIs` for its `Structure`, or `as_is(value)`.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>
#include <torch/data/example.h>
#include <torch/ordered_dict.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/structure_base.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// Tensors of any structure, one after the other.
using TensorList = std::vector<at::Tensor>;

namespace structure {

/// Types with members that std::apply hands out.
template <class T, class... Members>
struct TupleStructure {
  static constexpr bool kHasTensors = (lockstep::kHasTensors<Members> || ...);
  static constexpr bool kIsJoinable = sizeof...(Members) > 0 &&
                                      (lockstep::kIsJoinable<Members> && ...);
  template <class V, class F>
  static void visit(V& value, const F& f) {
    std::apply([&f](auto&... part) { (visit_tensors(part, f), ...); }, value);
  }
  static std::string describe(const T& value) {
    return std::apply(
        [](const auto&... part) {
          const std::vector<std::string> parts{structure::describe(part)...};
          return "(" + join(parts, ", ") + ")";
        },
        value);
  }
};

/// Ranges of elements of one type.
template <class T, class Element>
struct SequenceStructure {
  static constexpr bool kHasTensors = lockstep::kHasTensors<Element>;
  static constexpr bool kIsJoinable = lockstep::kIsJoinable<Element>;
  template <class V, class F>
  static void visit(V& value, const F& f) {
    if constexpr (kHasTensors) {
      for (auto& element : value) {
        visit_tensors(element, f);
      }
    }
  }
  static std::string describe(const T& value) {
    std::vector<std::string> elements;
    if constexpr (kHasTensors) {
      for (const auto& element : value) {
        elements.push_back(structure::describe(element));
      }
    }
    return "[" + join(elements, ", ") + "]";
  }
};

/// Elements that cannot be replaced: somebody else's, or keys.
template <class T, class Element>
struct ViewStructure : AsIs {
  static_assert(
      !lockstep::kHasTensors<Element>,
      "a view or set of tensors cannot be split: pass a std::vector, or "
      "lockstep::as_is(value)");
};

/// Maps from names (or other ordered keys) to values.
template <class T, class Value>
struct MapStructure {
  static constexpr bool kHasTensors = lockstep::kHasTensors<Value>;
  static constexpr bool kIsJoinable = lockstep::kIsJoinable<Value>;
  template <class V, class F>
  static void visit(V& value, const F& f) {
    if constexpr (kHasTensors) {
      for (const auto& entry : sorted(value)) {
        visit_tensors(*entry.second, f);
      }
    }
  }
  static std::string describe(const T& value) {
    std::vector<std::string> entries;
    if constexpr (kHasTensors) {
      for (const auto& [key, element] : sorted(value)) {
        entries.push_back(
            format_key(*key) + ": " + structure::describe(*element));
      }
    }
    return "{" + join(entries, ", ") + "}";
  }

 private:
  // Hash maps of equal content may be in different orders.
  template <class V>
  static auto sorted(V& map) {
    using Item = std::remove_reference_t<decltype(*map.begin())>;
    using Key = decltype(&key_of(std::declval<Item&>()));
    using Element = decltype(&value_of(std::declval<Item&>()));
    std::vector<std::pair<Key, Element>> entries;
    entries.reserve(map.size());
    for (auto& item : map) {
      entries.emplace_back(&key_of(item), &value_of(item));
    }
    std::ranges::sort(entries, [](const auto& a, const auto& b) {
      return *a.first < *b.first;
    });
    return entries;
  }
  template <class Item>
  static auto& key_of(Item& item) {
    if constexpr (requires { item.key(); }) {
      return std::as_const(item).key();
    } else {
      return item.first;
    }
  }
  template <class Item>
  static auto& value_of(Item& item) {
    if constexpr (requires { item.value(); }) {
      return item.value();
    } else {
      return item.second;
    }
  }
  template <class Key>
  static std::string format_key(const Key& key) {
    if constexpr (std::is_convertible_v<const Key&, std::string>) {
      return key;
    } else {
      return std::to_string(key);
    }
  }
};

} // namespace structure

template <class... Ts>
struct Structure<std::tuple<Ts...>>
    : structure::TupleStructure<std::tuple<Ts...>, Ts...> {};
template <class A, class B>
struct Structure<std::pair<A, B>>
    : structure::TupleStructure<std::pair<A, B>, A, B> {};
template <class T, std::size_t N>
struct Structure<std::array<T, N>>
    : structure::SequenceStructure<std::array<T, N>, T> {};
// NOLINTBEGIN(modernize-avoid-c-arrays): the user's type
template <class T, std::size_t N>
struct Structure<T[N]> : structure::SequenceStructure<T[N], T> {};
// NOLINTEND(modernize-avoid-c-arrays)
template <class T>
struct Structure<std::vector<T>>
    : structure::SequenceStructure<std::vector<T>, T> {};
template <class T>
struct Structure<std::list<T>> : structure::SequenceStructure<std::list<T>, T> {
};
template <class T>
struct Structure<std::deque<T>>
    : structure::SequenceStructure<std::deque<T>, T> {};
template <class T>
struct Structure<c10::ArrayRef<T>>
    : structure::ViewStructure<c10::ArrayRef<T>, T> {};
template <class T, std::size_t N>
struct Structure<std::span<T, N>>
    : structure::ViewStructure<std::span<T, N>, T> {};
template <class T>
struct Structure<std::set<T>> : structure::ViewStructure<std::set<T>, T> {};
template <class T>
struct Structure<std::unordered_set<T>>
    : structure::ViewStructure<std::unordered_set<T>, T> {};
template <class K, class T>
struct Structure<std::map<K, T>> : structure::MapStructure<std::map<K, T>, T> {
};
template <class K, class T>
struct Structure<std::unordered_map<K, T>>
    : structure::MapStructure<std::unordered_map<K, T>, T> {};
template <class K, class T>
struct Structure<torch::OrderedDict<K, T>>
    : structure::MapStructure<torch::OrderedDict<K, T>, T> {};

template <class T>
struct Structure<std::optional<T>> {
  static constexpr bool kHasTensors = lockstep::kHasTensors<T>;
  static constexpr bool kIsJoinable = lockstep::kIsJoinable<T>;
  template <class V, class F>
  static void visit(V& value, const F& f) {
    if (value) {
      structure::visit_tensors(*value, f);
    }
  }
  static std::string describe(const std::optional<T>& value) {
    return value ? structure::describe(*value) : "none";
  }
};

template <class... Ts>
struct Structure<std::variant<Ts...>> {
  static constexpr bool kHasTensors = (lockstep::kHasTensors<Ts> || ...);
  static constexpr bool kIsJoinable = (lockstep::kIsJoinable<Ts> && ...);
  template <class V, class F>
  static void visit(V& value, const F& f) {
    std::visit([&f](auto& held) { structure::visit_tensors(held, f); }, value);
  }
  static std::string describe(const std::variant<Ts...>& value) {
    return std::visit(
        [](const auto& held) { return structure::describe(held); },
        value);
  }
};

// Copies of a List share their elements, so changes go to a list of their own.
template <>
struct Structure<c10::List<at::Tensor>> {
  static constexpr bool kHasTensors = true;
  static constexpr bool kIsJoinable = true;
  template <class F>
  static void visit(const c10::List<at::Tensor>& list, const F& f) {
    for (const at::Tensor& tensor : list.vec()) {
      f(tensor);
    }
  }
  template <class F>
  static void visit(c10::List<at::Tensor>& list, const F& f) {
    TensorList tensors = list.vec();
    for (at::Tensor& tensor : tensors) {
      f(tensor);
    }
    list = c10::List<at::Tensor>(c10::ArrayRef<at::Tensor>(tensors));
  }
  static std::string describe(const c10::List<at::Tensor>& list) {
    return structure::describe(list.vec());
  }
};

template <class Data, class Target>
struct Structure<torch::data::Example<Data, Target>>
    : Fields<
          &torch::data::Example<Data, Target>::data,
          &torch::data::Example<Data, Target>::target> {};
template <class Data>
struct Structure<torch::data::Example<Data, void>>
    : Fields<&torch::data::Example<Data, void>::data> {};

namespace structure {

/// The tensors of `value`, in the order of its structure.
template <class T>
TensorList flatten(const T& value) {
  TensorList tensors;
  visit_tensors(value, [&tensors](const at::Tensor& tensor) {
    tensors.push_back(tensor);
  });
  return tensors;
}

/// Takes the first number that `visit_tensors` meets.
struct NumberFinder {
  void operator()(const at::Tensor& /*tensor*/) const {}
  void number(const std::string& text) const {
    found = found.empty() ? text : found;
  }
  std::string& found;
};

/// The first number that `value` holds although its type may hold nothing but
/// tensors: "3". Empty without one.
template <class T>
std::string number_in(const T& value) {
  std::string found;
  visit_tensors(value, NumberFinder{found});
  return found;
}

/// A copy of `like` with these tensors in place of its own; as many as
/// `flatten(like)` gives.
template <class T>
T rebuild(T like, const TensorList& tensors) {
  auto next = tensors.begin();
  visit_tensors(like, [&next](at::Tensor& tensor) { tensor = *next++; });
  return like;
}

} // namespace structure
} // namespace lockstep
#pragma GCC visibility pop
