#include "passes/passes.h"

namespace dais {

bool remove_dead(Graph& graph, const Target&) { return graph.remove_dead(); }

}  // namespace dais
