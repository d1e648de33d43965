#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/command.h"
#include "cli/custom_ops.h"
#include "cli/run_options.h"
#include "cli/test_case.h"

namespace dais::cli {
namespace {

using nlohmann::json;

struct Options {
  std::vector<std::string> folders;
  std::string cases, filter, skip, optimize = "full";
  DeviceFlags place;
  CaseOptions run;
  bool json = false;
};

struct Outcome {
  std::string name, status, detail;
  double seconds = 0;
  std::vector<Measured> measured;
  Placement placement = {};
  bool lost = false;  ///< the device runs nothing any more
};

/// Names of cases that may fail: "name  # reason" a line.
std::map<std::string, std::string> read_skips(const std::string& path) {
  std::map<std::string, std::string> out;
  if (path.empty()) return out;
  std::ifstream file(path);
  if (!file) throw Error(Code::not_found, "cannot read the list of allowed failures", path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const auto hash = line.find('#');
    std::string name = line.substr(0, hash);
    name.erase(std::remove_if(name.begin(), name.end(), ::isspace), name.end());
    if (name.empty()) continue;
    const std::string reason = hash == std::string::npos ? "" : line.substr(hash + 1);
    if (reason.find_first_not_of(' ') == std::string::npos)
      throw Error(Code::invalid_argument, "'" + name + "' is listed without a reason",
                  path + ":" + std::to_string(number), "Write it as: " + name + "  # why");
    out[name] = reason.substr(reason.find_first_not_of(' '));
  }
  return out;
}

Outcome judge(const TestCase& test, const Options& options,
              const std::map<std::string, std::string>& skips) {
  Outcome out{test.name, "passed", {}, 0, {}};
  const bool device = options.run.compile.backend != nullptr;
  const auto start = std::chrono::steady_clock::now();
  try {
    CaseResult result = run_case(test, options.run);
    out.detail = std::move(result.difference);
    out.measured = std::move(result.measured);
    out.placement = std::move(result.placement);
  } catch (const NoForm&) {
    out.status = "no form";
    return out;
  } catch (const Error& error) {
    out.detail = error.what();
    out.lost = device && error.code() == Code::unavailable;
  } catch (const std::exception& error) {
    out.detail = error.what();
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto skip = skips.find(test.name);
  if (!out.detail.empty()) {
    out.status = skip == skips.end() ? "failed" : "allowed";
    if (skip != skips.end()) out.detail += " (allowed: " + skip->second + ")";
  } else if (skip != skips.end()) {
    out.status = "unexpected";
    out.detail = "passes, but is listed as an allowed failure: take it off the list";
  }
  return out;
}

json places_json(const Placement& placement) {
  return {{"device", placement.device}, {"cpu", placement.host}, {"left", placement.left}};
}

/// What ran on the device and what did not, the most frequent first.
void print(const Placement& placement) {
  std::printf("%zu nodes ran on the device, %zu on the CPU\n", placement.device, placement.host);
  std::vector<std::pair<size_t, std::string>> left;
  for (const auto& [text, count] : placement.left) left.emplace_back(count, text);
  std::sort(left.rbegin(), left.rend());
  for (const auto& [count, text] : left) std::printf("  %5zu  %s\n", count, text.c_str());
}

void print(const Outcome& outcome, const Options& options) {
  if (options.json) {
    json line = {{"case", outcome.name},
                 {"status", outcome.status},
                 {"detail", outcome.detail},
                 {"seconds", outcome.seconds}};
    if (options.run.compile.backend) line["places"] = places_json(outcome.placement);
    for (const Measured& measured : outcome.measured)
      line["measured"].push_back({{"output", measured.output},
                                  {"rms", measured.ours.rms},
                                  {"largest", measured.ours.largest},
                                  {"rms_on_file", measured.theirs.rms},
                                  {"largest_on_file", measured.theirs.largest},
                                  {"rms_apart", measured.apart.rms},
                                  {"largest_apart", measured.apart.largest}});
    std::printf("%s\n", line.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  } else if (outcome.status != "passed" && outcome.status != "no form") {
    std::printf("%-10s %s\n           %s\n", outcome.status.c_str(), outcome.name.c_str(),
                outcome.detail.c_str());
  }
  if (!options.json)
    for (const Measured& measured : outcome.measured)
      std::printf("%-44s %-16s ours %.1e (%.1e), on file %.1e (%.1e), apart %.1e (%.1e)\n",
                  outcome.name.c_str(), measured.output.c_str(), measured.ours.rms,
                  measured.ours.largest, measured.theirs.rms, measured.theirs.largest,
                  measured.apart.rms, measured.apart.largest);
  std::fflush(stdout);
}

void verify(Program& program, Options& options) {
  options.run.compile.optimize = optimize_from_name(options.optimize);
  options.run.compile.backend = options.place.open();
  auto tests = find_cases(options.folders, options.cases);
  if (!options.filter.empty()) {
    const std::regex pattern(options.filter);
    std::erase_if(tests,
                  [&](const TestCase& test) { return !std::regex_search(test.name, pattern); });
  }
  if (tests.empty())
    throw Error(Code::not_found, "no test case was found", "",
                "Name a folder with model.onnx and test_data_set_0/, or give --cases");
  const auto skips = read_skips(options.skip);
  std::map<std::string, size_t> counts;
  double seconds = 0;
  Placement placement;
  for (const TestCase& test : tests) {
    const Outcome outcome = judge(test, options, skips);
    placement.add(outcome.placement);
    ++counts[outcome.status];
    seconds += outcome.seconds;
    print(outcome, options);
    if (outcome.lost)
      throw Error(Code::unavailable, "the device is lost after '" + outcome.name + "'", "",
                  "The cases behind it were not run");
  }
  const size_t bad = counts["failed"] + counts["unexpected"];
  if (options.json) {
    json summary = {{"cases", tests.size()},
                    {"passed", counts["passed"]},
                    {"failed", counts["failed"]},
                    {"allowed", counts["allowed"]},
                    {"unexpected", counts["unexpected"]},
                    {"no_form", counts["no form"]},
                    {"seconds", seconds}};
    if (options.run.compile.backend) summary["places"] = places_json(placement);
    std::printf("%s\n", json{{"summary", summary}}.dump().c_str());
  } else {
    std::printf(
        "%zu cases: %zu passed, %zu failed, %zu allowed to fail, %zu passed against the "
        "list; %.1f s\n",
        tests.size(), counts["passed"], counts["failed"], counts["allowed"], counts["unexpected"],
        seconds);
    if (options.run.compile.backend) print(placement);
    if (counts["no form"])
      std::printf("%zu of them have no form in opset %lld\n", counts["no form"],
                  static_cast<long long>(options.run.round_trip_opset));
  }
  program.status = bad ? 1 : 0;
}

}  // namespace

void add_verify(Program& program) {
  auto* command = program.app.add_subcommand(
      "verify", "Run test folders of the ONNX backend suite and compare their outputs");
  const auto options = std::make_shared<Options>();
  command->add_option("folder", options->folders,
                      "Folders with model.onnx and test_data_set_*; searched recursively");
  command->add_option("--cases", options->cases, "A cases.json beside its graphs");
  command->add_option("--rtol", options->run.tolerance.relative, "Relative tolerance")
      ->capture_default_str();
  command->add_option("--atol", options->run.tolerance.absolute, "Absolute tolerance")
      ->capture_default_str();
  command
      ->add_option("--of-largest", options->run.tolerance.of_largest,
                   "Absolute tolerance, as a share of the output's largest value")
      ->capture_default_str();
  command->add_option(
      "--steps", options->run.steps,
      "Accept differences of so many 255ths of the output's range (quantised models)");
  command->add_flag("--top1", options->run.top1,
                    "Accept the same largest element in every row (quantised models)");
  command->add_flag("--measure", options->run.measure,
                    "Evaluate the model in f64 too and print how far both answers are from that");
  command->add_option("--exact", options->run.exact,
                      "Accept outputs at most so many times as far (RMS) from the f64 answer as "
                      "the one on file");
  command->add_option("--optimize", options->optimize, "Passes to run: off, portable or full")
      ->capture_default_str();
  add_device_flags(*command, options->place);
  add_ops_option(*command);
  command->add_option("--threads", options->run.compile.threads,
                      "Threads to use; 0: all usable cores");
  command->add_option("--runs", options->run.runs, "Run each model so often; compare the last")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--round-trip", options->run.round_trip,
                    "Also write each model as ONNX, read it back and expect the same bits");
  command
      ->add_option("--opset", options->run.round_trip_opset,
                   "Opset that --round-trip writes; below the newest the tolerance holds")
      ->check(CLI::Range(onnx::kOldestWrittenOpset, onnx::kNewestOpset))
      ->capture_default_str();
  command->add_option("--filter", options->filter, "Run the cases whose name matches this regex");
  command->add_option("--skip", options->skip, "File of allowed failures: name  # reason");
  command->add_flag("--json", options->json, "One JSON line per case, then a summary");
  command->footer("Example: dais verify tests/onnx/node --filter '^test_softmax' --json");
  command->callback([&program, options] { verify(program, *options); });
}

}  // namespace dais::cli
