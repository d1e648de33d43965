#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "ir/tensor.h"

namespace dais {

/// One attribute value in its neutral form, shared by text, ONNX, equality and hashing.
using AttrValue = std::variant<std::monostate, int64_t, float, std::string, std::vector<int64_t>,
                               std::vector<float>, std::vector<std::string>, Tensor>;

std::string attr_text(const AttrValue& value);
bool attr_equal(const AttrValue& a, const AttrValue& b);

struct AttrField {
  std::string_view name;
  AttrValue (*get)(const void* attrs);
  bool (*set)(void* attrs, const AttrValue& value);  ///< false: a value of the wrong kind
  bool required = false;  ///< ONNX files state it even when it is at its default
};

/// The fields of one attribute struct. One field list gives equality, hash, text, parsing and ONNX.
struct AttrsInfo {
  std::span<const AttrField> fields;
  std::shared_ptr<void> (*make)();
  std::shared_ptr<void> (*copy)(const void* attrs);

  const AttrField* find(std::string_view name) const;
};

/// Declares a member of an attribute struct: field("axis", &Softmax::axis).
template <typename Struct, typename Member>
struct Field {
  std::string_view name;
  Member Struct::*member;
  bool required = false;
};
template <typename Struct, typename Member>
constexpr Field<Struct, Member> field(std::string_view name, Member Struct::*member) {
  return {name, member};
}
/// The same for an attribute that has no default in ONNX.
template <typename Struct, typename Member>
constexpr Field<Struct, Member> required_field(std::string_view name, Member Struct::*member) {
  return {name, member, true};
}

namespace detail {

template <typename T>
struct AttrConvert {  // int64_t, float, string and vectors: stored as they are
  static AttrValue get(const T& member) { return member; }
  static bool set(T& member, const AttrValue& value) {
    if constexpr (std::is_same_v<T, float>) {
      if (auto* number = std::get_if<int64_t>(&value)) {
        member = static_cast<float>(*number);
        return true;
      }
    }
    auto* held = std::get_if<T>(&value);
    if (held) member = *held;
    // An empty list carries no element type.
    if constexpr (std::is_same_v<T, std::vector<float>> ||
                  std::is_same_v<T, std::vector<std::string>>) {
      auto* list = std::get_if<std::vector<int64_t>>(&value);
      if (list && list->empty()) {
        member.clear();
        return true;
      }
    }
    return held != nullptr;
  }
};

template <>
struct AttrConvert<bool> {
  static AttrValue get(bool member) { return int64_t{member}; }
  static bool set(bool& member, const AttrValue& value) {
    auto* number = std::get_if<int64_t>(&value);
    if (number) member = *number != 0;
    return number != nullptr;
  }
};

template <>
struct AttrConvert<DType> {
  static AttrValue get(DType member) { return static_cast<int64_t>(member); }
  static bool set(DType& member, const AttrValue& value) {
    auto* number = std::get_if<int64_t>(&value);
    if (!number || *number < 0 || *number >= kDTypeCount) return false;
    member = static_cast<DType>(*number);
    return true;
  }
};

template <>
struct AttrConvert<Tensor> {
  static AttrValue get(const Tensor& member) {
    if (!member) return std::monostate{};
    return member;
  }
  static bool set(Tensor& member, const AttrValue& value) {
    auto* held = std::get_if<Tensor>(&value);
    if (held) member = *held;
    return held != nullptr || std::holds_alternative<std::monostate>(value);
  }
};

template <typename T>
struct AttrConvert<std::optional<T>> {
  static AttrValue get(const std::optional<T>& member) {
    if (!member) return std::monostate{};
    return AttrConvert<T>::get(*member);
  }
  static bool set(std::optional<T>& member, const AttrValue& value) {
    if (std::holds_alternative<std::monostate>(value)) {
      member.reset();
      return true;
    }
    T inner{};
    if (!AttrConvert<T>::set(inner, value)) return false;
    member = std::move(inner);
    return true;
  }
};

template <typename Struct, size_t index>
constexpr AttrField make_field() {
  constexpr auto declared = std::get<index>(Struct::fields);
  using Member = std::remove_reference_t<decltype(std::declval<Struct>().*(declared.member))>;
  return {declared.name,
          [](const void* attrs) {
            return AttrConvert<Member>::get(
                static_cast<const Struct*>(attrs)->*(std::get<index>(Struct::fields).member));
          },
          [](void* attrs, const AttrValue& value) {
            return AttrConvert<Member>::set(
                static_cast<Struct*>(attrs)->*(std::get<index>(Struct::fields).member), value);
          },
          declared.required};
}

template <typename Struct, size_t... index>
constexpr std::array<AttrField, sizeof...(index)> make_fields(std::index_sequence<index...>) {
  return {make_field<Struct, index>()...};
}

}  // namespace detail

/// AttrsOf<Softmax>::info describes the struct Softmax, which has `static constexpr auto fields`.
template <typename Struct>
struct AttrsOf {
  static constexpr auto fields = detail::make_fields<Struct>(
      std::make_index_sequence<std::tuple_size_v<decltype(Struct::fields)>>());
  static constexpr AttrsInfo info{
      fields, [] { return std::shared_ptr<void>(std::make_shared<Struct>()); },
      [](const void* attrs) {
        return std::shared_ptr<void>(std::make_shared<Struct>(*static_cast<const Struct*>(attrs)));
      }};
};

/// An immutable attribute struct of some type.
class Attrs {
 public:
  Attrs() = default;
  Attrs(const AttrsInfo* info, std::shared_ptr<const void> data)
      : info_(info), data_(std::move(data)) {}
  template <typename Struct>
  static Attrs of(Struct value) {
    return {&AttrsOf<Struct>::info, std::make_shared<const Struct>(std::move(value))};
  }

  const AttrsInfo* info() const { return info_; }
  const void* data() const { return data_.get(); }
  std::string text() const;  ///< "axis=1, perm=[0,2,1]"; fields at their default are left out
  size_t hash() const;
  friend bool operator==(const Attrs& a, const Attrs& b);

 private:
  const AttrsInfo* info_ = nullptr;
  std::shared_ptr<const void> data_;
};

}  // namespace dais
