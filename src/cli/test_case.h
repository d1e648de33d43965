#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/compile.h"
#include "cli/compare.h"
#include "onnx/exporter.h"

namespace dais::cli {

/// One model with inputs and right answers, in one of three layouts: a folder of the ONNX backend
/// suite, an entry of a cases.json, or a light model (`NAME.onnx` beside `NAME_output_0.pb`, whose
/// inputs are 0, 1/n, 2/n, … (n-1)/n).
struct TestCase {
  enum class Layout { folder, entry, light };
  std::string name;
  Layout layout = Layout::folder;
  std::filesystem::path model;
  nlohmann::json entry;  ///< of a cases.json
};

struct CaseOptions {
  CompileOptions compile;
  Tolerance tolerance;
  /// Of models with quantised operators also accept differences of so many 255ths of an output's
  /// range, and outputs whose rows have their largest element in the same place.
  double steps = 0;
  bool top1 = false;
  /// Also evaluate the model in f64 and measure both answers by that; above 0, accept outputs
  /// whose distance (RMS) is at most so many times that of the answer on file.
  bool measure = false;
  double exact = 0;
  /// Also writes the model as ONNX, reads it back and expects the same bits; below the newest opset
  /// ops may become several, and the tolerance holds instead.
  bool round_trip = false;
  int64_t round_trip_opset = onnx::kNewestOpset;
  int runs = 1;  ///< the last one counts: later runs may take other paths than the first
};

/// What run_case throws when an op of the model has no form in an opset below the newest.
class NoForm : public Error {
 public:
  explicit NoForm(const Error& error) : Error(error) {}
};

/// Every case below the folders, and those of a cases.json ("" for none), sorted by name.
std::vector<TestCase> find_cases(const std::vector<std::string>& folders, const std::string& cases);

/// How far an output and the answer on file are from the truth, and from each other.
struct Measured {
  std::string output;
  Distance ours, theirs, apart;
};

/// Where the nodes of a model ran that has a device: those of subgraphs too, but no arithmetic on
/// sizes and no views.
struct Placement {
  size_t device = 0, host = 0;
  std::map<std::string, size_t> left;  ///< "concat: why it is not on the device", and how many
  void add(const Placement& other);
};

struct CaseResult {
  std::string difference;  ///< the first one; empty when all outputs are right
  Placement placement = {};
  std::vector<Measured> measured = {};
};

/// Runs a case. Throws Error when the
/// model cannot be read or run (which is what some cases ask for; then nothing differs).
CaseResult run_case(const TestCase& test, const CaseOptions& options);

}  // namespace dais::cli
