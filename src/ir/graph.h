#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/type.h"

namespace dais {

struct Use {
  Node* node;
  size_t index;  ///< which input of node
};

/// One SSA value: a graph input, a constant (no producer, `constant` set) or a node's output.
class Value {
 public:
  Type type;
  std::string name;  ///< the file's name where there was one; unique within its graph
  const Tensor* constant() const { return constant_ ? &constant_ : nullptr; }
  Node* producer() const { return producer_; }
  size_t output_index() const { return output_index_; }
  const std::vector<Use>& users() const { return users_; }
  /// Integer contents known while building (sizes computed from shapes), at most 64; also for
  /// constants. They may be symbolic.
  std::optional<Dims> known() const;
  void set_known(std::optional<Dims> known) { known_ = std::move(known); }

 private:
  friend class Graph;
  Tensor constant_;
  Node* producer_ = nullptr;
  size_t output_index_ = 0;
  std::vector<Use> users_;
  std::optional<Dims> known_;
};

/// One operation. `in` holds nullptr where an optional input is left out.
struct Node {
  const Op* op = nullptr;
  Attrs attrs;
  Values in;                                    ///< change through Graph::set_input only
  Values outs;                                  ///< never null
  std::vector<std::unique_ptr<Graph>> regions;  ///< bodies of control flow and fused ops
  std::string name;

  /// The attributes when this is a node of that op, else nullptr: node.as<Softmax>().
  template <typename Struct>
  const Struct* as() const {
    return op == &Struct::op ? static_cast<const Struct*>(attrs.data()) : nullptr;
  }
  bool has(size_t index) const { return index < in.size() && in[index] != nullptr; }
  std::string where() const;  ///< "softmax node 'attn/probs'"

 private:
  friend class Graph;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

/// A function from inputs to outputs as SSA nodes in execution order. Regions of control flow take
/// what they use from outside as explicit inputs, so a Graph never looks beyond itself.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  Values inputs;
  Values outputs;  ///< may repeat a value, or hold inputs and constants

  Value* add_input(Type type, std::string name);
  Value* add_constant(Tensor tensor, std::string name = {});

  /// Appends (or inserts, see InsertBefore) a node and infers its output types.
  /// Throws `invalid_model` naming the node when the op's rules are broken.
  Node& add_node(const Op& op, Attrs attrs, Values in, size_t outputs = 1, std::string name = {},
                 std::vector<std::unique_ptr<Graph>> regions = {});
  template <typename Struct>
  Node& add_node(Struct attrs, Values in, size_t outputs = 1, std::string name = {}) {
    return add_node(Struct::op, Attrs::of(std::move(attrs)), std::move(in), outputs,
                    std::move(name));
  }
  /// The same for one output.
  template <typename Struct>
  Value* add(Struct attrs, Values in, std::string name = {}) {
    return add_node(std::move(attrs), std::move(in), 1, std::move(name)).outs[0];
  }

  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  /// The node behind `node` in execution order; nullptr at the end.
  Node* next(const Node& node) const;
  size_t size() const { return nodes_.size(); }
  const std::vector<std::unique_ptr<Value>>& values() const { return values_; }

  /// New nodes go before `node` (nullptr: at the end) while this object lives.
  class InsertBefore {
   public:
    InsertBefore(Graph& graph, Node* node);
    ~InsertBefore();
    InsertBefore(const InsertBefore&) = delete;

   private:
    Graph& graph_;
    Node* saved_;
  };

  void set_input(Node& node, size_t index, Value* value);
  void add_node_input(Node& node, Value* value);
  /// One more output of a node whose op has further (optional) ones.
  Value* add_output(Node& node);
  /// Every use, and every graph output, of `from` becomes `to`. `to` takes the name of `from` when
  /// `from` is a graph output (so that outputs keep their names).
  void replace_uses(Value* from, Value* to);
  /// Removes a node none of whose outputs is used.
  void erase(Node& node);
  /// Moves a node directly before another.
  void move_before(Node& node, Node& other);
  bool is_output(const Value* value) const;
  /// Drops nodes and constants that nothing uses; true when anything went.
  bool remove_dead();
  /// Runs the op's inference again and stores the outputs' types.
  void infer(Node& node);

  /// A new symbol. Its prefix has one '?' more than any symbol of the inputs, so that a region's
  /// own sizes never meet those of the graph around it.
  Dim fresh_dim();
  /// Reserves that prefix at once, for a region that gets its captures while it is built.
  void nest_dims_in(const Graph& outer) { dim_prefix_ = outer.dim_prefix_ + '?'; }
  std::string unique_name(std::string wanted);
  /// Gives a value another name (made unique), as the file that it comes from calls it.
  void rename(Value& value, std::string wanted);
  std::unique_ptr<Graph> clone() const;
  /// Copies this graph's nodes into `target` with `arguments` for the inputs; gives the outputs.
  Values inline_into(Graph& target, const Values& arguments, const std::string& prefix = {}) const;
  /// Checks every invariant (order, users, names, output types against inference) and throws
  /// `internal` naming the first broken one.
  void verify() const;
  std::string text() const;

 private:
  Value* new_value(Type type, std::string name);

  std::list<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Value>> values_;
  std::unordered_map<std::string, Value*> names_;
  Node* insert_before_ = nullptr;
  size_t next_name_ = 0;
  size_t next_dim_ = 0;
  std::string dim_prefix_ = "?";
};

}  // namespace dais
