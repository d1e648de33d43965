#include "onnx/wire.h"

#include "base/error.h"

namespace dais::onnx {

void WireReader::fail(const char* problem) const {
  const auto position = message_.data() ? message_.data() - origin_ + static_cast<int64_t>(at_) : 0;
  throw Error(
      Code::invalid_model, std::string(what_) + " field " + std::to_string(field_) + " " + problem,
      "byte " + std::to_string(position), "The file is damaged or is no ONNX file; get it again");
}

uint64_t WireReader::varint(Bytes from, size_t& at) const {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at >= from.size()) fail("ends inside a number");
    const uint8_t byte = from[at++];
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  fail("holds a number longer than ten bytes");
}

Bytes WireReader::take(uint64_t size) {
  if (size > message_.size() - at_) fail("is longer than what is left of the message");
  const Bytes out = message_.subspan(at_, size);
  at_ += size;
  return out;
}

bool WireReader::next() {
  if (at_ == message_.size()) return false;
  const uint64_t tag = varint(message_, at_);
  if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) fail("is followed by an invalid field number");
  field_ = static_cast<uint32_t>(tag >> 3);
  span_ = {};
  value_ = 0;
  switch (tag & 7) {
    case 0: value_ = varint(message_, at_); break;
    case 1: std::memcpy(&value_, take(8).data(), 8); break;
    case 2: span_ = take(varint(message_, at_)); break;
    case 5: std::memcpy(&value_, take(4).data(), 4); break;
    default: fail("has a wire type that ONNX does not use");
  }
  wire_ = static_cast<Wire>(tag & 7);
  return true;
}

int64_t WireReader::integer() const {
  expect(Wire::varint, "is no integer");
  return static_cast<int64_t>(value_);
}

float WireReader::number() const {
  expect(Wire::fixed32, "is no float");
  return std::bit_cast<float>(static_cast<uint32_t>(value_));
}

double WireReader::wide_number() const {
  expect(Wire::fixed64, "is no double");
  return std::bit_cast<double>(value_);
}

Bytes WireReader::bytes() const {
  expect(Wire::bytes, "is no text, bytes or message");
  return span_;
}

std::string_view WireReader::text() const {
  const Bytes span = bytes();
  return {reinterpret_cast<const char*>(span.data()), span.size()};
}

WireReader WireReader::message(const char* what) const {
  if (depth_ + 1 >= kMaxDepth) fail("is nested too deeply");
  return {bytes(), what, origin_, depth_ + 1};
}

void WireReader::append(std::vector<int64_t>& out) const {
  if (wire_ != Wire::varint && wire_ != Wire::bytes) fail("holds no list of integers");
  each_varint([&](uint64_t value) { out.push_back(static_cast<int64_t>(value)); });
}

void WireReader::append(std::vector<float>& out) const {
  each_fixed<float>([&](float value) { out.push_back(value); });
}

void WireWriter::varint(uint64_t value) {
  while (value >= 0x80) {
    own_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  own_.push_back(static_cast<char>(value));
}

void WireWriter::integer(uint32_t field, int64_t value) {
  tag(field, Wire::varint);
  varint(static_cast<uint64_t>(value));
}

void WireWriter::number(uint32_t field, float value) {
  tag(field, Wire::fixed32);
  own_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void WireWriter::text(uint32_t field, std::string_view value) {
  tag(field, Wire::bytes);
  varint(value.size());
  own_.append(value);
}

void WireWriter::bytes(uint32_t field, Bytes value, std::shared_ptr<const void> owner) {
  constexpr size_t kWorthAPiece = 4096;
  if (!owner || value.size() < kWorthAPiece)
    return text(field, {reinterpret_cast<const char*>(value.data()), value.size()});
  tag(field, Wire::bytes);
  varint(value.size());
  pieces_.push_back({own_.size(), value, std::move(owner)});
  borrowed_ += value.size();
}

void WireWriter::message(uint32_t field, const WireWriter& nested) {
  tag(field, Wire::bytes);
  varint(nested.size());
  for (const Piece& piece : nested.pieces_)
    pieces_.push_back({own_.size() + piece.at, piece.bytes, piece.owner});
  borrowed_ += nested.borrowed_;
  own_.append(nested.own_);
}

void WireWriter::integers(uint32_t field, std::span<const int64_t> values) {
  WireWriter packed;
  for (const int64_t value : values) packed.varint(static_cast<uint64_t>(value));
  message(field, packed);
}

void WireWriter::numbers(uint32_t field, std::span<const float> values) {
  text(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

template <typename Visit>
void WireWriter::each_piece(Visit&& visit) const {
  const Bytes own(reinterpret_cast<const uint8_t*>(own_.data()), own_.size());
  size_t done = 0;
  for (const Piece& piece : pieces_) {
    visit(own.subspan(done, piece.at - done));
    visit(piece.bytes);
    done = piece.at;
  }
  visit(own.subspan(done));
}

std::string WireWriter::data() const {
  std::string out;
  out.reserve(size());
  each_piece(
      [&](Bytes bytes) { out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
  return out;
}

void WireWriter::write_to(AtomicFile& file) const {
  each_piece([&](Bytes bytes) { file.write(bytes); });
}

}  // namespace dais::onnx
