#pragma once

namespace dais {

class OpRegistry;
class Kernels;

/// Generated from the family list in this folder's CMakeLists.txt.
void define_all_ops(OpRegistry& registry);
void register_all_cpu_kernels(Kernels& kernels);

}  // namespace dais
