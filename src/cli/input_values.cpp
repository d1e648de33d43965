#include "cli/input_values.h"

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "ir/npy.h"

namespace dais::cli {

const char* const kInputHelp =
    "NAME=VALUE; VALUE is file.npy, file.pb, uniform:DIMS[:LO:HI], const:DIMS:V, "
    "randint:DIMS:LO:HI or iota:DIMS, DIMS like 1x3x224x224, - for a scalar";

namespace {

[[noreturn]] void fail(const std::string& what, const std::string& remedy = {}) {
  throw Error(Code::invalid_argument, what, "", remedy);
}

/// Counter-based: element i of an input depends on seed, name and i only.
class Random {
 public:
  Random(uint64_t seed, const std::string& name) : state_(seed * 0x9e3779b97f4a7c15u + 1) {
    for (char c : name) state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  }
  /// Uniform in [0, 1), 24 bits.
  double next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 40) * 0x1p-24;
  }

 private:
  uint64_t state_;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

double number(const std::string& text, const std::string& name) {
  try {
    size_t used = 0;
    const double value = std::stod(text, &used);
    if (used == text.size()) return value;
  } catch (const std::exception&) {
  }
  fail("input '" + name + "': '" + text + "' is not a number");
}

Shape parse_dims(const std::string& text, const std::string& name) {
  Shape shape;
  if (text == "-") return shape;
  for (const auto& part : split(text, 'x')) {
    int64_t size = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    if (error != std::errc() || end != part.data() + part.size() || size < 0)
      fail("input '" + name + "': '" + text + "' is no list of sizes",
           "Write sizes like 1x3x224x224, or - for a scalar");
    shape.push_back(size);
  }
  return shape;
}

/// Fills with value(i), converted to the model's element type.
template <typename Value>
Tensor filled(DType dtype, const Shape& shape, Value&& value) {
  Tensor out(dtype, shape);
  if (dtype == DType::boolean) {
    for (bool& element : out.data<bool>()) element = value() >= 0.5;
    return out;
  }
  visit_dtype<NumericTypes>(dtype, [&]<typename T>() {
    for (T& element : out.data<T>()) element = number_cast<T>(value());
  });
  return out;
}

Tensor uniform(DType dtype, const Shape& shape, double low, double high, Random random) {
  return filled(dtype, shape, [&] { return low + (high - low) * random.next(); });
}

Tensor random_integers(DType dtype, const Shape& shape, double low, double high, Random random) {
  return filled(dtype, shape, [&] {
    return static_cast<double>(static_cast<int64_t>(low + (high - low) * random.next()));
  });
}

Tensor generated(const std::string& name, DType dtype, const std::string& text, uint64_t seed) {
  const auto parts = split(text, ':');
  const std::string& kind = parts[0];
  const size_t given = parts.size() - 1;
  auto wants = [&](size_t least, size_t most) {
    if (given < least || given > most)
      fail("input '" + name + "': '" + text + "' has a wrong number of parts", kInputHelp);
  };
  if (kind == "uniform") {
    wants(1, 3);
    if (given == 2) wants(3, 3);
    return uniform(dtype, parse_dims(parts[1], name), given == 3 ? number(parts[2], name) : 0,
                   given == 3 ? number(parts[3], name) : 1, Random(seed, name));
  }
  if (kind == "randint") {
    wants(3, 3);
    return random_integers(dtype, parse_dims(parts[1], name), number(parts[2], name),
                           number(parts[3], name), Random(seed, name));
  }
  if (kind == "const") {
    wants(2, 2);
    const double value = number(parts[2], name);
    return filled(dtype, parse_dims(parts[1], name), [&] { return value; });
  }
  if (kind == "iota") {
    wants(1, 1);
    double next = 0;
    return filled(dtype, parse_dims(parts[1], name), [&] { return next++; });
  }
  const std::string guess = nearest(kind, {"uniform", "randint", "const", "iota"});
  fail("input '" + name + "': '" + text + "' is neither a .npy or .pb file nor a generator",
       guess.empty() ? kInputHelp : "Did you mean " + guess + "?");
}

Datum parse_value(const Value& input, const std::string& text, uint64_t seed) {
  if (text.ends_with(".pb")) {
    const auto file = MappedFile::open(text);
    return onnx::TensorReader(file).read(file->bytes(), input.type);
  }
  if (text.ends_with(".npy")) {
    Tensor tensor = read_npy(text);
    if (tensor.dtype() != input.type.dtype)
      fail("input '" + input.name + "': " + text + " holds " + tensor.describe(),
           "The model wants " + input.type.text());
    return tensor;
  }
  return generated(input.name, input.type.dtype, text, seed);
}

Datum drawn(const Value& input, const std::map<std::string, int64_t>& sizes, uint64_t seed) {
  if (!input.type.is_tensor() || !input.type.shape)
    fail("input '" + input.name + "' is " + input.type.text() + " and cannot be drawn",
         "Give it with --input " + input.name + "=file.pb");
  Shape shape;
  const SymbolLookup lookup = [&](const std::string& symbol) -> std::optional<int64_t> {
    const auto found = sizes.find(symbol);
    return found == sizes.end() ? 1 : found->second;
  };
  for (const Dim& dim : *input.type.shape)
    shape.push_back(std::max<int64_t>(dim.eval(lookup).value_or(1), 0));
  const DType dtype = input.type.dtype;
  if (dtype == DType::string) return Tensor(dtype, shape);
  const bool mask = input.name.find("mask") != std::string::npos;
  if (mask) return filled(dtype, shape, [] { return 1.0; });
  if (is_float(dtype)) return uniform(dtype, shape, 0, 1, Random(seed, input.name));
  return random_integers(dtype, shape, 0, 2, Random(seed, input.name));
}

std::pair<std::string, std::string> halves(const std::string& text, const char* form) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0) fail("'" + text + "' is not of the form " + form);
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace

onnx::ImportOptions import_options(const InputOptions& options) {
  onnx::ImportOptions out;
  for (const auto& text : options.inputs) out.overrides.insert(halves(text, "NAME=VALUE").first);
  return out;
}

std::vector<Datum> make_inputs(const onnx::Model& model, const InputOptions& options) {
  std::map<std::string, std::string> given;
  for (const auto& text : options.inputs) given.insert(halves(text, "NAME=VALUE"));
  std::map<std::string, int64_t> sizes;
  for (const auto& text : options.sizes) {
    const auto [symbol, size] = halves(text, "SYMBOL=SIZE");
    sizes[symbol] = parse_dims(size, symbol).elements();
  }
  std::vector<std::string> names;
  for (const Value* input : model.graph->inputs) names.push_back(input->name);
  for (const auto& [name, text] : given)
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const std::string guess = nearest(name, names);
      std::string all;
      for (const auto& known : names) all += (all.empty() ? "'" : ", '") + known + "'";
      fail("the model has no input '" + name + "'",
           guess.empty() ? "Its inputs are " + all : "Did you mean '" + guess + "'?");
    }
  std::vector<Datum> out;
  for (const Value* input : model.graph->inputs) {
    const auto found = given.find(input->name);
    out.push_back(found == given.end() ? drawn(*input, sizes, options.seed)
                                       : parse_value(*input, found->second, options.seed));
  }
  return out;
}

}  // namespace dais::cli
