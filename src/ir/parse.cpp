#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "ir/text.h"
#include "ir/text_scanner.h"

namespace dais {
namespace {

constexpr int kMaxNesting = 32;

class Parser {
 public:
  explicit Parser(std::string_view text) : scan_(text) {}

  std::unique_ptr<Graph> whole_graph() {
    auto graph = std::make_unique<Graph>();
    body(*graph, nullptr);
    if (!scan_.at_end()) scan_.fail("text goes on after the outputs");
    return graph;
  }

  Type type() {
    if (++depth_ > kMaxNesting) scan_.fail("types are nested too deeply");
    Type out;
    const std::string name(scan_.word());
    if (name == "seq" || name == "optional") {
      scan_.expect("(");
      Type element = type();
      out = name == "seq" ? Type::sequence(std::move(element)) : Type::optional(std::move(element));
      scan_.expect(")");
    } else if (name == "map") {
      scan_.expect("(");
      const DType key = dtype(std::string(scan_.word()));
      scan_.expect(",");
      out = Type::map(key, type());
      scan_.expect(")");
    } else {
      out = Type::tensor(dtype(name));
      scan_.expect("[");
      const std::string_view sizes = scan_.until_closing('[', ']');
      if (sizes != "...") out.shape = dims(sizes);
    }
    --depth_;
    return out;
  }

  bool at_end() { return scan_.at_end(); }
  [[noreturn]] void fail(const std::string& problem) { scan_.fail(problem); }

 private:
  using Names = std::unordered_map<std::string, Value*>;

  DType dtype(const std::string& name) {
    if (const auto found = dtype_from_name(name)) return *found;
    std::vector<std::string> known;
    for (int i = 1; i < kDTypeCount; ++i) known.emplace_back(dtype_name(static_cast<DType>(i)));
    const std::string guess = nearest(name, known);
    scan_.fail("'" + name + "' is no element type",
               guess.empty() ? "" : "Did you mean " + guess + "?");
  }

  /// Splits at commas outside parentheses.
  Dims dims(std::string_view text) {
    Dims out;
    if (text.find_first_not_of(' ') == std::string_view::npos) return out;
    int depth = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && text[i] == '(') ++depth;
      if (i < text.size() && text[i] == ')') --depth;
      if (i < text.size() && (text[i] != ',' || depth != 0)) continue;
      std::string_view part = text.substr(begin, i - begin);
      while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
      while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
      if (part.empty()) scan_.fail("a size is missing");
      out.push_back(Dim::parse(part));
      begin = i + 1;
    }
    return out;
  }

  std::string name() {
    scan_.expect("%");
    if (scan_.peek() == '"') return scan_.quoted();
    const std::string out(scan_.word("_./"));
    if (out.empty()) scan_.fail("a value name is missing");
    return out;
  }

  void define(Names& names, const std::string& wanted, Value* value) {
    if (!names.try_emplace(wanted, value).second) scan_.fail("%" + wanted + " is defined twice");
  }

  Value* use(const Names& names) {
    if (scan_.take("none")) return nullptr;
    const std::string wanted = name();
    const auto found = names.find(wanted);
    if (found != names.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [key, value] : names) known.push_back(key);
    std::sort(known.begin(), known.end());
    const std::string guess = nearest(wanted, known);
    scan_.fail("%" + wanted + " is not defined before",
               guess.empty() ? "" : "Did you mean %" + guess + "?");
  }

  void body(Graph& graph, const Graph* around) {
    if (++depth_ > kMaxNesting) scan_.fail("regions are nested too deeply");
    if (around) graph.nest_dims_in(*around);
    Names names;
    while (!scan_.take("output")) {
      if (scan_.at_end()) scan_.fail("the graph has no output line");
      if (scan_.take("input")) {
        const std::string wanted = name();
        scan_.expect(":");
        define(names, wanted, graph.add_input(type(), wanted));
      } else if (scan_.take("constant")) {
        const std::string wanted = name();
        scan_.expect("=");
        define(names, wanted, graph.add_constant(tensor(), wanted));
      } else {
        node(graph, names);
      }
    }
    if (scan_.peek() == '%' || scan_.peek() == 'n') do
        graph.outputs.push_back(use(names));
      while (scan_.take(","));
    if (std::count(graph.outputs.begin(), graph.outputs.end(), nullptr) > 0)
      scan_.fail("an output cannot be none");
    --depth_;
  }

  void node(Graph& graph, Names& names) {
    std::vector<std::string> outs;
    do outs.push_back(name());
    while (scan_.take(","));
    scan_.expect("=");
    const Op& op = known_op(std::string(scan_.word()));
    scan_.expect("(");
    Values in;
    const auto attrs = op.attrs->make();
    while (!scan_.take(")")) {
      if (scan_.peek() == '%')
        in.push_back(use(names));
      else if (const std::string key(scan_.word()); key == "none")
        in.push_back(nullptr);
      else
        attribute(op, attrs.get(), key);
      if (scan_.peek() != ')') scan_.expect(",");
    }
    std::string node_name;
    if (scan_.take("@")) node_name = scan_.quoted();
    std::vector<std::unique_ptr<Graph>> regions;
    while (scan_.take("{")) {
      regions.push_back(std::make_unique<Graph>());
      body(*regions.back(), &graph);
      scan_.expect("}");
    }
    Node& made = graph.add_node(op, Attrs(op.attrs, attrs), std::move(in), outs.size(), node_name,
                                std::move(regions));
    for (size_t i = 0; i < outs.size(); ++i) {
      define(names, outs[i], made.outs[i]);
      graph.rename(*made.outs[i], outs[i]);
    }
  }

  const Op& known_op(const std::string& wanted) {
    if (const Op* op = op_registry().find(wanted)) return *op;
    std::vector<std::string> known;
    for (const Op* op : op_registry().ops()) known.emplace_back(op->name);
    const std::string guess = nearest(wanted, known);
    scan_.fail("'" + wanted + "' is no operator",
               guess.empty() ? "" : "Did you mean " + guess + "?");
  }

  void attribute(const Op& op, void* attrs, const std::string& key) {
    const AttrField* field = op.attrs->find(key);
    if (!field) {
      std::vector<std::string> known;
      for (const auto& other : op.attrs->fields) known.emplace_back(other.name);
      const std::string guess = nearest(key, known);
      scan_.fail(std::string(op.name) + " has no attribute '" + key + "'",
                 guess.empty() ? "" : "Did you mean " + guess + "?");
    }
    scan_.expect("=");
    if (!field->set(attrs, attribute_value()))
      scan_.fail("attribute '" + key + "' does not take such a value");
  }

  AttrValue attribute_value() {
    if (scan_.peek() == '"') return scan_.quoted();
    if (scan_.take("none")) return std::monostate{};
    if (scan_.take("[")) return attribute_list();
    const std::string_view digits = scan_.number();
    if (scan_.peek() == '[' && dtype_from_name(digits)) return tensor_of(*dtype_from_name(digits));
    return number(digits);
  }

  AttrValue attribute_list() {
    std::vector<int64_t> integers;
    std::vector<float> floats;
    std::vector<std::string> texts;
    while (!scan_.take("]")) {
      if (scan_.peek() == '"') {
        texts.push_back(scan_.quoted());
      } else {
        const AttrValue value = number(scan_.number());
        if (const auto* integer = std::get_if<int64_t>(&value))
          integers.push_back(*integer);
        else
          floats.push_back(std::get<float>(value));
      }
      if (scan_.peek() != ']') scan_.expect(",");
    }
    const int kinds = !integers.empty() + !floats.empty() + !texts.empty();
    if (kinds > 1) scan_.fail("a list mixes kinds of values");
    if (!texts.empty()) return texts;
    if (!floats.empty()) return floats;
    return integers;
  }

  AttrValue number(std::string_view digits) {
    int64_t integer = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), integer);
    if (error == std::errc() && end == digits.data() + digits.size()) return integer;
    return parsed<float>(digits);
  }

  template <typename Number>
  Number parsed(std::string_view digits) {
    Number value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
      scan_.fail("'" + std::string(digits) + "' is not a number of this type");
    return value;
  }

  Tensor tensor() { return tensor_of(dtype(std::string(scan_.word()))); }

  /// Elements are read before memory is asked for, so a short text cannot claim a large tensor.
  Tensor tensor_of(DType dtype) {
    scan_.expect("[");
    Shape shape;
    for (const Dim& dim : dims(scan_.until_closing('[', ']'))) {
      if (!dim.is_constant()) scan_.fail("the sizes of a constant must be numbers");
      shape.push_back(*dim.constant());
    }
    if (scan_.take("x")) return from_hex(dtype, shape);
    scan_.expect("{");
    if (scan_.take("...")) scan_.fail("the contents of this constant are left out");
    std::vector<std::string> elements;
    while (!scan_.take("}")) {
      elements.push_back(scan_.peek() == '"' ? scan_.quoted() : std::string(scan_.number()));
      if (scan_.peek() != '}') scan_.expect(",");
    }
    if (shape.elements() != static_cast<int64_t>(elements.size()))
      scan_.fail("a constant of shape " + shape.text() + " has " + std::to_string(elements.size()) +
                 " elements");
    return from_elements(dtype, shape, elements);
  }

  Tensor from_elements(DType dtype, const Shape& shape, const std::vector<std::string>& elements) {
    Tensor out(dtype, shape);
    using Kinds = DTypes<DType::f32, DType::i64, DType::f64, DType::f16, DType::bf16, DType::i32,
                         DType::u8, DType::i8, DType::u16, DType::i16, DType::u32, DType::u64,
                         DType::boolean, DType::string>;
    if (!Kinds::contains(dtype)) scan_.fail("elements of this type are written as x\"bytes\"");
    visit_dtype<Kinds>(dtype, [&]<typename T>() {
      for (size_t i = 0; i < elements.size(); ++i) {
        T& element = out.data<T>()[i];
        if constexpr (std::is_same_v<T, std::string>)
          element = elements[i];
        else if constexpr (std::is_same_v<T, bool>)
          element = boolean(elements[i]);
        else if constexpr (std::is_arithmetic_v<T>)
          element = parsed<T>(elements[i]);
        else
          element = T(parsed<float>(elements[i]));
      }
    });
    return out;
  }

  bool boolean(const std::string& text) {
    if (text != "true" && text != "false") scan_.fail("'" + text + "' is neither true nor false");
    return text == "true";
  }

  Tensor from_hex(DType dtype, const Shape& shape) {
    const std::string digits = scan_.quoted();
    if (dtype == DType::string) scan_.fail("strings are not written as bytes");
    if (digits.size() % 2 != 0 ||
        digits.size() / 2 != static_cast<size_t>(shape.elements()) * dtype_size(dtype))
      scan_.fail("the bytes of a constant do not fit its shape " + shape.text());
    Tensor out(dtype, shape);
    auto* bytes = out.storage<uint8_t>();
    for (size_t i = 0; i < digits.size(); i += 2) {
      const auto [end, error] =
          std::from_chars(digits.data() + i, digits.data() + i + 2, bytes[i / 2], 16);
      if (error != std::errc() || end != digits.data() + i + 2)
        scan_.fail("bytes are written as pairs of hexadecimal digits");
      if (dtype == DType::boolean && bytes[i / 2] > 1) scan_.fail("a boolean is 00 or 01");
    }
    return out;
  }

  TextScanner scan_;
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Graph> parse_graph(std::string_view text) { return Parser(text).whole_graph(); }

Type parse_type(std::string_view text) {
  Parser parser(text);
  Type out = parser.type();
  if (!parser.at_end()) parser.fail("text goes on after the type");
  return out;
}

}  // namespace dais
