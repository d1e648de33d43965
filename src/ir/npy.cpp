#include "ir/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/file.h"
#include "ir/stored.h"

namespace dais {
namespace {

struct Element {
  DType dtype;
  const char* descr;
};
constexpr Element kElements[] = {
    {DType::f32, "<f4"}, {DType::f64, "<f8"},   {DType::f16, "<f2"}, {DType::i64, "<i8"},
    {DType::i32, "<i4"}, {DType::i16, "<i2"},   {DType::i8, "|i1"},  {DType::u64, "<u8"},
    {DType::u32, "<u4"}, {DType::u16, "<u2"},   {DType::u8, "|u1"},  {DType::boolean, "|b1"},
    {DType::c64, "<c8"}, {DType::c128, "<c16"},
};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(Code::invalid_argument, "not a readable .npy file: " + what, path,
              "Save it with numpy.save(file, array)");
}

/// The text of a header entry: "'descr': '<f4', …" gives "'<f4'" for "descr".
std::string entry(const std::string& path, const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == std::string::npos ? at : header.find(':', at);
  if (colon == std::string::npos) fail(path, "its header has no '" + key + "'");
  size_t end = colon + 1;
  int depth = 0;
  for (; end < header.size(); ++end) {
    if (header[end] == '(') ++depth;
    if (header[end] == ')') --depth;
    if (depth == 0 && (header[end] == ',' || header[end] == '}')) break;
  }
  std::string text = header.substr(colon + 1, end - colon - 1);
  std::erase(text, ' ');
  return text;
}

Shape parse_shape(const std::string& path, const std::string& text) {
  Shape shape;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    if (*at == '(' || *at == ')' || *at == ',') {
      ++at;
      continue;
    }
    int64_t size = 0;
    auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0) fail(path, "its shape is " + text);
    shape.push_back(size);
    at = next;
  }
  return shape;
}

Tensor transposed(const Tensor& fortran, const Shape& shape) {
  Tensor out(fortran.dtype(), shape);
  const Shape to = strides_of(shape);
  const auto size = static_cast<int64_t>(dtype_size(out.dtype()));
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t rest = i, from = 0, stride = 1;
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      from += rest / to[axis] * stride;
      rest %= to[axis];
      stride *= shape[axis];
    }
    std::memcpy(out.storage<std::byte>() + i * size, fortran.storage<std::byte>() + from * size,
                static_cast<size_t>(size));
  }
  return out;
}

}  // namespace

NpyView view_npy(Bytes bytes, const std::string& path) {
  if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    fail(path, "its first bytes are not those of one");
  const bool wide = bytes[6] >= 2;
  size_t length = bytes[8] | bytes[9] << 8, begin = 10;
  if (wide) {
    if (bytes.size() < 12) fail(path, "it ends early");
    length |= static_cast<size_t>(bytes[10]) << 16 | static_cast<size_t>(bytes[11]) << 24;
    begin = 12;
  }
  if (length > bytes.size() - begin) fail(path, "it ends early");
  const std::string header(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  std::string descr = entry(path, header, "descr");
  if (descr.size() > 3 && descr[1] == '=') descr[1] = '<';
  const auto* code = std::find_if(
      std::begin(kElements), std::end(kElements),
      [&](const Element& known) { return "'" + std::string(known.descr) + "'" == descr; });
  if (code == std::end(kElements)) fail(path, "its element type is " + descr);
  const Shape shape = parse_shape(path, entry(path, header, "shape"));
  const auto elements = static_cast<uint64_t>(shape.elements());
  const size_t wanted = elements * dtype_size(code->dtype);
  // The count alone is compared first: the product may wrap.
  if (elements > bytes.size() || wanted > bytes.size() - begin - length)
    fail(path, "its shape " + shape.text() + " needs more data than it holds");
  return {code->dtype, shape, entry(path, header, "fortran_order") == "True",
          bytes.subspan(begin + length, wanted)};
}

Tensor parse_npy(Bytes bytes, const std::string& where) {
  const NpyView view = view_npy(bytes, where);
  const Tensor tensor = stored_tensor(view.data, view.dtype, view.shape);
  return view.fortran_order ? transposed(tensor, view.shape) : tensor;
}

Tensor read_npy(const std::filesystem::path& path) {
  return parse_npy(MappedFile::open(path)->bytes(), path.string());
}

bool npy_has(DType dtype) {
  return std::any_of(std::begin(kElements), std::end(kElements),
                     [&](const Element& code) { return code.dtype == dtype; });
}

std::string npy_header(const Tensor& tensor, const std::string& where) {
  const auto* code =
      std::find_if(std::begin(kElements), std::end(kElements),
                   [&](const Element& known) { return known.dtype == tensor.dtype(); });
  if (code == std::end(kElements))
    throw Error(Code::unsupported,
                "NumPy has no element type " + std::string(dtype_name(tensor.dtype())), where,
                "Write it as .pb");
  std::string header =
      "{'descr': '" + std::string(code->descr) + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : tensor.shape()) header += std::to_string(size) + ",";
  header += "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const std::string header = npy_header(tensor, path.string());
  AtomicFile file(path);
  file.write({reinterpret_cast<const uint8_t*>(header.data()), header.size()});
  file.write({static_cast<const uint8_t*>(tensor.raw()), tensor.bytes()});
  file.commit();
}

}  // namespace dais
