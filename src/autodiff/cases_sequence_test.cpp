#include "autodiff/gradient_case.h"

namespace dais {

void sequence_cases(GradientCases&) {}

}  // namespace dais
