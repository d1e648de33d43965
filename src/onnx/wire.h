#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace dais::onnx {

/// How a field of the protobuf wire format is laid out.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Walks the fields of one message without copying: texts, bytes and nested messages are spans of
/// the buffer it was made from, which must outlive them. Every step is checked against the
/// message's end; broken input throws `invalid_model` naming the message and the byte.
class WireReader {
 public:
  WireReader(Bytes message, const char* what) : WireReader(message, what, message.data(), 0) {}

  /// Moves to the next field; false at the end of the message.
  bool next();
  uint32_t field() const { return field_; }
  Wire wire() const { return wire_; }

  int64_t integer() const;
  float number() const;
  double wide_number() const;
  Bytes bytes() const;
  std::string_view text() const;
  /// A reader of the nested message of this field; at most kMaxDepth deep.
  WireReader message(const char* what) const;
  Bytes rest() const { return message_; }

  /// Adds this field's values, packed or not.
  void append(std::vector<int64_t>& out) const;
  void append(std::vector<float>& out) const;

  /// Calls visit(uint64_t) with each varint of this field, packed or not.
  template <typename Visit>
  void each_varint(Visit&& visit) const {
    if (wire_ == Wire::varint) return visit(value_);
    size_t at = 0;
    while (at < span_.size()) visit(varint(span_, at));
  }
  /// Calls visit(T) with each fixed-size value of this field, packed or not.
  template <typename T, typename Visit>
  void each_fixed(Visit&& visit) const {
    if (wire_ == (sizeof(T) == 4 ? Wire::fixed32 : Wire::fixed64)) {
      T value;
      std::memcpy(&value, &value_, sizeof(T));
      return visit(value);
    }
    if (wire_ != Wire::bytes || span_.size() % sizeof(T) != 0) fail("holds no list of numbers");
    for (size_t at = 0; at < span_.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, span_.data() + at, sizeof(T));
      visit(value);
    }
  }

  [[noreturn]] void fail(const char* problem) const;

  static constexpr int kMaxDepth = 64;

 private:
  WireReader(Bytes message, const char* what, const uint8_t* origin, int depth)
      : message_(message), what_(what), origin_(origin), depth_(depth) {}
  uint64_t varint(Bytes from, size_t& at) const;
  Bytes take(uint64_t size);
  void expect(Wire wire, const char* problem) const {
    if (wire_ != wire) fail(problem);
  }

  Bytes message_;
  const char* what_;
  const uint8_t* origin_;  ///< of the outermost message, for byte positions in errors
  int depth_;
  size_t at_ = 0;
  uint32_t field_ = 0;
  Wire wire_ = Wire::varint;
  uint64_t value_ = 0;
  Bytes span_;
};

/// Builds one message. Fields appear in the order of the calls. Large bytes are not copied when
/// an owner keeps them alive.
class WireWriter {
 public:
  void integer(uint32_t field, int64_t value);
  void number(uint32_t field, float value);
  void text(uint32_t field, std::string_view value);
  void bytes(uint32_t field, Bytes value, std::shared_ptr<const void> owner);
  void message(uint32_t field, const WireWriter& nested);
  void integers(uint32_t field, std::span<const int64_t> values);  ///< packed
  void numbers(uint32_t field, std::span<const float> values);     ///< packed

  size_t size() const { return own_.size() + borrowed_; }
  std::string data() const;
  void write_to(AtomicFile& file) const;

 private:
  struct Piece {
    size_t at;  ///< how much of own_ comes before it
    Bytes bytes;
    std::shared_ptr<const void> owner;
  };
  void varint(uint64_t value);
  void tag(uint32_t field, Wire wire) { varint(uint64_t{field} << 3 | static_cast<uint8_t>(wire)); }
  template <typename Visit>
  void each_piece(Visit&& visit) const;

  std::string own_;
  std::vector<Piece> pieces_;
  size_t borrowed_ = 0;
};

}  // namespace dais::onnx
