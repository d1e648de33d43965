#pragma once

#include <map>

#include "dais/nn.h"
#include "ir/graph.h"

namespace dais::nn {

/// What a Network holds, and what layers need of it.
struct NetworkBody {
  /// How many elements meet in one element of a layer, for the scale of initial weights.
  struct Fans {
    double in = 1, out = 1;
  };
  struct Parameter {
    dais::Value* value;
    Init init;
    Fans fans;
    bool filled = false;
  };

  Graph graph;
  uint64_t seed = 0;
  std::string prefix;                  ///< of the scopes that are open, with dots
  std::map<std::string, int> numbers;  ///< of layers without a name, by prefix and kind
  std::vector<Parameter> parameters;
  std::vector<std::string> fixed;  ///< float constants that training must leave alone
  std::vector<std::string> outputs;
  std::map<std::string, std::string> notes;

  static NetworkBody& of(Value value) { return *value.body_; }
  static dais::Value* inner(Value value) { return value.value_; }
  Value wrap(dais::Value* value) { return {this, value}; }

  /// The name of a layer with its scopes: the wanted one, or `kind` and a number.
  std::string layer_name(const std::string& wanted, const char* kind);
  /// Drawn when the network is written or its graph is asked for, so that looking at the structure
  /// of a large network costs nothing.
  Value parameter(std::string name, const std::vector<int64_t>& shape, Init init, Fans fans);
  Value fixed_constant(Tensor tensor, std::string name);
  /// Draws what is not drawn yet.
  void fill();

  template <typename Struct>
  Value add(Struct attrs, Values in, std::string name = {}) {
    return wrap(graph.add(std::move(attrs), std::move(in), std::move(name)));
  }
};

/// Fills an f32 tensor. Element i depends on seed, name and i only.
void draw(Tensor& tensor, Init init, NetworkBody::Fans fans, uint64_t seed, std::string_view name);

}  // namespace dais::nn
