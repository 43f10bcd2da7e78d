// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/print.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/big_int.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/storage_class.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

std::string quoted(std::string_view text, std::uint64_t max_bytes) {
  return "'" + escape(text, max_bytes) + "'";
}

// How Python spells a byte inside b'...'.
std::string byte_text(char byte, char quote) {
  constexpr std::string_view kSpecial = "\\\t\n\r";
  constexpr std::string_view kLetters = "\\tnr";
  const std::size_t special = kSpecial.find(byte);
  if (special != std::string_view::npos) {
    return {'\\', kLetters[special]};
  }
  if (byte < ' ' || byte > '~') { // also 0x80 and above where char is signed
    return format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return byte == quote ? std::string{'\\', byte} : std::string{byte};
}

std::string bytes_text(std::string_view bytes, std::uint64_t max_bytes) {
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const bool has_double = bytes.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string text;
  for (const char byte : bytes) {
    const std::string piece = byte_text(byte, quote);
    if (text.size() + piece.size() > max_bytes) {
      text += "...";
      break;
    }
    text += piece;
  }
  return std::string("b") + quote + text + quote;
}

std::string device_text(const Device& device) {
  return device.index < 0
             ? format("device('{}')", escape(device.type))
             : format("device('{}:{}')", escape(device.type), device.index);
}

std::string numbers_text(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) {
    text += text.size() == 1 ? "" : ", ";
    text += std::to_string(number);
  }
  text += ']';
  return text;
}

// Text of everything that fits one line.
struct Scalar {
  std::uint64_t max_text = 200;

  std::string operator()(None /*none*/) const {
    return "None";
  }
  std::string operator()(bool value) const {
    return value ? "True" : "False";
  }
  std::string operator()(std::int64_t value) const {
    return std::to_string(value);
  }
  std::string operator()(const BigInt& value) const {
    return internal::big_int_text(value, max_text);
  }
  std::string operator()(double value) const {
    return shortest(value);
  }
  std::string operator()(const std::string& value) const {
    return quoted(value, max_text);
  }
  std::string operator()(const Bytes& value) const {
    return bytes_text(value.data, max_text);
  }
  std::string operator()(const Complex& value) const {
    return complex_text(value.real, value.imag);
  }
  std::string operator()(const Size& value) const {
    return "torch.Size(" + numbers_text(value.sizes) + ")";
  }
  std::string operator()(const Device& value) const {
    return device_text(value);
  }
  std::string operator()(const DTypeValue& value) const {
    return format("torch.{}", dtype_info(value.dtype).name);
  }
  std::string operator()(const Storage& value) const {
    return format("storage of {} bytes", value.nbytes);
  }
  std::string operator()(const Tensor& value) const {
    const std::string quantizer = quantizer_text(value);
    return "tensor(" + describe(value) +
           (quantizer.empty() ? "" : ", " + quantizer) + ")";
  }
  template <class T>
  std::string operator()(const T& node) const {
    return counted(node.items.size(), "element");
  }
};

class Printer {
 public:
  explicit Printer(const PrintOptions& options)
      : options_(options), lines_left_(options.max_lines) {}

  void print(const Value& value) {
    if (const Dict* dict = value.as_dict()) {
      const bool plain = dict->kind == Dict::Kind::kDict;
      const std::string name(plain ? "" : dict_class(*dict));
      print_items(dict->items, plain ? "{" : name + "({", plain ? "}" : "})");
    } else if (const List* list = value.as_list()) {
      print_elements(list->items, "[", "]");
    } else if (const Tuple* tuple = value.as_tuple()) {
      print_elements(tuple->items, "(", ")");
    } else if (const Set* set = value.as_set()) {
      print_elements(set->items, "{", "}");
    } else if (const Object* object = value.as_object()) {
      print_object(value, *object);
    } else {
      text += value.visit(Scalar{options_.max_text});
    }
  }

  std::string text;

 private:
  static bool is_short(const std::vector<Value>& values) {
    return values.size() <= 16 &&
           std::ranges::all_of(values, [](const Value& value) {
             return value.number() || value.as_bool() != nullptr ||
                    value.is_none();
           });
  }

  // False if nothing more may be printed.
  bool begin_line() {
    if (lines_left_ == 0) {
      return false;
    }
    --lines_left_;
    text += "\n" + std::string(2 * depth_, ' ');
    return true;
  }

  bool open(std::string_view bracket, std::size_t size) {
    text += bracket;
    if (size == 0) {
      return false;
    }
    if (depth_ >= options_.max_depth || lines_left_ == 0) {
      text += "...";
      return false;
    }
    ++depth_;
    return true;
  }

  void close() {
    --depth_;
    text += "\n" + std::string(2 * depth_, ' ');
  }

  void print_elements(
      const std::vector<Value>& values,
      std::string_view left,
      std::string_view right) {
    if (is_short(values)) {
      text += left;
      for (const Value& value : values) {
        text += &value == values.data() ? "" : ", ";
        print(value);
      }
      text += values.size() == 1 && right == ")" ? "," : "";
      text += right;
      return;
    }
    if (open(left, values.size())) {
      for (const Value& value : values) {
        if (!begin_line()) {
          text += "\n" + std::string(2 * depth_, ' ') + "...";
          break;
        }
        print(value);
        text += ",";
      }
      close();
    }
    text += right;
  }

  void print_items(
      const std::vector<Item>& items,
      std::string_view left,
      std::string_view right) {
    if (open(left, items.size())) {
      for (const auto& [key, value] : items) {
        if (!begin_line()) {
          text += "\n" + std::string(2 * depth_, ' ') + "...";
          break;
        }
        print(key);
        text += ": ";
        print(value);
        text += ",";
      }
      close();
    }
    text += right;
  }

  // "sparse_coo float32 [3, 3](indices=tensor(...), values=tensor(...))"
  void print_layout(const LayoutTensor& tensor) {
    text += describe(tensor);
    std::string separator = "(";
    for (const TensorPart& part : tensor.parts) {
      text += separator;
      text += part.name.empty() ? "" : std::string(part.name) + "=";
      text += part.value->visit(Scalar{options_.max_text});
      separator = ", ";
    }
    text += tensor.parts.empty() ? "" : ")";
  }

  void print_object(const Value& whole, const Object& object) {
    if (object.global == kReferenceGlobal) {
      text +=
          "<ref #" + object.args->as_tuple()->items.at(0).visit(Scalar{}) + ">";
      return;
    }
    if (const auto tensor = layout_tensor(whole)) {
      print_layout(*tensor);
      return;
    }
    text += "<" + escape(object.global, options_.max_text);
    if (object.args != nullptr && storage_of(object) == nullptr) {
      print(*object.args);
    }
    if (object.state != nullptr) {
      text += " ";
      print(*object.state);
    }
    if (!object.items.empty()) {
      text += " ";
      print_items(object.items, "{", "}");
    }
    text += ">";
  }

  PrintOptions options_;
  std::uint64_t lines_left_;
  std::uint64_t depth_ = 0;
};

} // namespace

std::string to_text(const Value& value, const PrintOptions& options) {
  Printer printer(options);
  printer.print(value);
  return std::move(printer.text);
}

std::string describe(const Value& value) {
  constexpr std::uint64_t kShort = 60;
  if (const Dict* dict = value.as_dict()) {
    return format(
        "{} with {}",
        dict_class(*dict),
        counted(dict->items.size(), "item"));
  }
  if (const Tensor* tensor = value.as_tensor()) {
    return describe(*tensor);
  }
  if (const Object* object = value.as_object()) {
    if (const auto layout = layout_tensor(value)) {
      return describe(*layout);
    }
    return escape(object->global);
  }
  const std::string text = value.visit(Scalar{kShort});
  const bool is_container = value.as_list() != nullptr ||
                            value.as_tuple() != nullptr ||
                            value.as_set() != nullptr;
  return is_container ? format("{} with {}", value.type_name(), text) : text;
}

std::string describe_shard(const Value& value) {
  const auto layout = layout_tensor(value);
  return layout && layout->part("local") != nullptr ? describe(*layout) : "";
}

std::string scalar_text(const Value& value, std::uint64_t max_text) {
  return value.visit(Scalar{max_text});
}

std::string shape_text(const Tensor& tensor) {
  return numbers_text(tensor.sizes);
}

std::string describe(const Tensor& tensor) {
  std::string text(dtype_info(tensor.dtype).name);
  text += ' ';
  text += shape_text(tensor);
  return text;
}

std::string_view dict_class(const Dict& dict) {
  switch (dict.kind) {
    case Dict::Kind::kOrderedDict:
      return "OrderedDict";
    case Dict::Kind::kCounter:
      return "Counter";
    default:
      return "dict";
  }
}

} // namespace lockstep::ckpt
