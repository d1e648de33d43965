#include "runtime/copy.h"

#include "ir/inference.h"

namespace dais {

const Op Copy::op{
    .name = "copy",
    .attrs = &AttrsOf<Copy>::info,
    .infer = [](Inference& c) { c.set(0, c.type(0)); },
    .onnx = {},
};

}  // namespace dais
