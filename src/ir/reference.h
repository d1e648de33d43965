#pragma once

#include "ir/call.h"

namespace dais {

/// Runs the reference loops of the call's node. An error that has no place yet gets the node's.
void run_reference(Call& call);

}  // namespace dais
