// SPDX-License-Identifier: BSD-3-Clause
//
// Where the tensors are in an argument or a result. DataParallel splits and
// joins those and repeats everything else. Known: tensors, tuple, pair, array,
// vector, optional, map, unordered_map, OrderedDict, nested in any way. A
// struct of the user's says which members hold tensors:
//   struct ImageBatch { at::Tensor images, labels; std::string split; };
//   template <>
//   struct lockstep::Structure<ImageBatch>
//       : lockstep::Fields<&ImageBatch::images, &ImageBatch::labels> {};
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/ordered_dict.h>

#include "lockstep/base/strings.h"
#include "lockstep/parallel/scatter_gather.h"

namespace lockstep {

/// How to find the tensors in a `T`; this one is for values, which have none.
/// A specialisation has
/// - `kHasTensors`: there may be tensors in a T,
/// - `kIsJoinable`: nothing but tensors, so that the T of several replicas can
///   be made one,
/// - `visit(value, f)`: calls `f(tensor)` for each tensor, in an order that
///   depends on the structure only; `value` may be const,
/// - `describe(value)`: the structure in words, equal for values that can be
///   joined: "[tensor, tensor]".
template <class T>
struct Structure {
  static constexpr bool kHasTensors = false;
  static constexpr bool kIsJoinable = false;
  template <class V, class F>
  static void visit(V& /*value*/, const F& /*f*/) {}
  static std::string describe(const T& /*value*/) {
    return "value";
  }
};

template <>
struct Structure<at::Tensor> {
  static constexpr bool kHasTensors = true;
  static constexpr bool kIsJoinable = true;
  template <class V, class F>
  static void visit(V& tensor, const F& f) {
    f(tensor);
  }
  static std::string describe(const at::Tensor& /*tensor*/) {
    return "tensor";
  }
};

template <class T>
inline constexpr bool kHasTensors = Structure<T>::kHasTensors;
template <class T>
inline constexpr bool kIsJoinable = Structure<T>::kIsJoinable;

namespace parallel {

template <class V, class F>
void visit_tensors(V& value, const F& f) {
  Structure<std::remove_const_t<V>>::visit(value, f);
}

template <class T>
std::string describe(const T& value) {
  return Structure<T>::describe(value);
}

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
          const std::vector<std::string> parts{parallel::describe(part)...};
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
        elements.push_back(parallel::describe(element));
      }
    }
    return "[" + join(elements, ", ") + "]";
  }
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
            format_key(*key) + ": " + parallel::describe(*element));
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

template <class Member>
struct MemberPointer;
template <class Owner, class Member>
struct MemberPointer<Member Owner::*> {
  using OwnerType = Owner;
  using MemberType = Member;
};

} // namespace parallel

/// For structs of the user's: the members that hold tensors. Other members are
/// repeated in arguments; in results they are those of replica 0.
template <auto... Members>
struct Fields {
  static constexpr bool kHasTensors = true;
  static constexpr bool kIsJoinable =
      (lockstep::kIsJoinable<
           typename parallel::MemberPointer<decltype(Members)>::MemberType> &&
       ...);
  template <class V, class F>
  static void visit(V& value, const F& f) {
    (parallel::visit_tensors(value.*Members, f), ...);
  }
  template <class T>
  static std::string describe(const T& value) {
    const std::vector<std::string> parts{parallel::describe(value.*Members)...};
    return "struct(" + join(parts, ", ") + ")";
  }
};

template <class... Ts>
struct Structure<std::tuple<Ts...>>
    : parallel::TupleStructure<std::tuple<Ts...>, Ts...> {};
template <class A, class B>
struct Structure<std::pair<A, B>>
    : parallel::TupleStructure<std::pair<A, B>, A, B> {};
template <class T, std::size_t N>
struct Structure<std::array<T, N>>
    : parallel::SequenceStructure<std::array<T, N>, T> {};
template <class T>
struct Structure<std::vector<T>>
    : parallel::SequenceStructure<std::vector<T>, T> {};
template <class K, class T>
struct Structure<std::map<K, T>> : parallel::MapStructure<std::map<K, T>, T> {};
template <class K, class T>
struct Structure<std::unordered_map<K, T>>
    : parallel::MapStructure<std::unordered_map<K, T>, T> {};
template <class K, class T>
struct Structure<torch::OrderedDict<K, T>>
    : parallel::MapStructure<torch::OrderedDict<K, T>, T> {};

template <class T>
struct Structure<std::optional<T>> {
  static constexpr bool kHasTensors = lockstep::kHasTensors<T>;
  static constexpr bool kIsJoinable = lockstep::kIsJoinable<T>;
  template <class V, class F>
  static void visit(V& value, const F& f) {
    if (value) {
      parallel::visit_tensors(*value, f);
    }
  }
  static std::string describe(const std::optional<T>& value) {
    return value ? parallel::describe(*value) : "none";
  }
};

namespace parallel {

/// The tensors of `value`, in the order of its structure.
template <class T>
TensorList flatten(const T& value) {
  TensorList tensors;
  visit_tensors(value, [&tensors](const at::Tensor& tensor) {
    tensors.push_back(tensor);
  });
  return tensors;
}

/// A copy of `like` with these tensors in place of its own; as many as
/// `flatten(like)` gives.
template <class T>
T rebuild(T like, const TensorList& tensors) {
  auto next = tensors.begin();
  visit_tensors(like, [&next](at::Tensor& tensor) { tensor = *next++; });
  return like;
}

} // namespace parallel
} // namespace lockstep
