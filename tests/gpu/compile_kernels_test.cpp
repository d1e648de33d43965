// Every embedded kernel compiled by NVRTC for every architecture that it must run on, where NVRTC
// is installed; no GPU is needed. A kernel's text lists the options it is compiled with in lines
// "// Compiled with: -D..." ("no options" where there are none; -DNEEDS=80: not before 8.0).
// What ptxas says of registers, spills and shared memory is recorded in kernels.json beside the
// program when DAIS_KERNEL_REPORT names it; a spill fails unless the kernel is in kMaySpill.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

#include "backends/cuda/api/nvrtc.h"
#include "backends/cuda/text.h"

namespace dais::cuda {
namespace {

/// "attention.cu:attention_tiles": kernels whose spills were measured to pay.
const std::vector<std::string> kMaySpill = {};

struct Variant {
  std::string_view name, text;
  std::vector<std::string> options;
  int needs = 0;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const Text& text : texts()) {
    if (!text.name.ends_with(".cu")) continue;
    std::istringstream lines{std::string(text.contents)};
    for (std::string line; std::getline(lines, line);) {
      constexpr std::string_view kMark = "// Compiled with: ";
      if (!line.starts_with(kMark)) continue;
      const std::string rest = line.substr(kMark.size());
      if (!rest.starts_with("-") && rest != "no options") continue;
      Variant variant{text.name, text.contents, {}, 0};
      std::istringstream words(rest == "no options" ? "" : rest);
      for (std::string word; words >> word;) {
        if (word.starts_with("-DNEEDS="))
          variant.needs = std::atoi(word.c_str() + 8);
        else
          variant.options.push_back(word);
      }
      all.push_back(std::move(variant));
    }
  }
  return all;
}

struct Outcome {
  bool compiled = false;
  std::string log;
};

Outcome compile(const NvrtcApi& nvrtc, const Variant& variant, int arch) {
  std::vector<const char*> names, contents, options;
  for (const Text& header : device_headers()) {
    names.push_back(header.name.data());
    contents.push_back(header.contents.data());
  }
  std::vector<std::string> words = variant.options;
  words.push_back("--gpu-architecture=sm_" + std::to_string(arch));
  words.emplace_back("--std=c++17");
  words.emplace_back("--ptxas-options=-v");
  for (const std::string& word : words) options.push_back(word.c_str());
  NvrtcProgram program;
  const std::string name(variant.name);
  nvrtc.create_program(&program, variant.text.data(), name.c_str(), static_cast<int>(names.size()),
                       contents.data(), names.data());
  Outcome out;
  out.compiled = nvrtc.compile_program(program, static_cast<int>(options.size()), options.data()) ==
                 NvrtcResult::success;
  size_t bytes = 0;
  nvrtc.get_program_log_size(program, &bytes);
  out.log.resize(bytes);
  nvrtc.get_program_log(program, out.log.data());
  while (!out.log.empty() && out.log.back() == '\0') out.log.pop_back();
  nvrtc.destroy_program(&program);
  return out;
}

struct Usage {
  std::string kernel;
  int registers = 0, stack = 0, spill_stores = 0, spill_loads = 0, shared = 0;
};

/// What ptxas -v says, kernel by kernel.
std::vector<Usage> usage_of(const std::string& log) {
  static const std::regex entry("Compiling entry function '([^']+)'"),
      spills("(\\d+) bytes stack frame, (\\d+) bytes spill stores, (\\d+) bytes spill loads"),
      registers("Used (\\d+) registers"), shared("(\\d+) bytes smem");
  std::vector<Usage> all;
  std::istringstream lines(log);
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    const auto number = [&](size_t group) { return std::atoi(found[group].str().c_str()); };
    if (std::regex_search(line, found, entry)) all.push_back({.kernel = found[1].str()});
    if (all.empty()) continue;
    if (std::regex_search(line, found, spills)) {
      // Functions that were not inlined have lines of their own.
      all.back().stack += number(1);
      all.back().spill_stores += number(2);
      all.back().spill_loads += number(3);
    }
    if (std::regex_search(line, found, registers)) all.back().registers = number(1);
    if (std::regex_search(line, found, shared)) all.back().shared = number(1);
  }
  return all;
}

std::string record_of(const Variant& variant, int arch, const Usage& usage) {
  std::string options;
  for (const std::string& option : variant.options)
    options += (options.empty() ? "" : " ") + option;
  std::ostringstream out;
  out << "{\"text\": \"" << variant.name << "\", \"options\": \"" << options
      << "\", \"arch\": " << arch << ", \"kernel\": \"" << usage.kernel
      << "\", \"registers\": " << usage.registers << ", \"stack\": " << usage.stack
      << ", \"spill_stores\": " << usage.spill_stores << ", \"spill_loads\": " << usage.spill_loads
      << ", \"shared\": " << usage.shared << "}";
  return out.str();
}

class KernelsCompile : public testing::TestWithParam<int> {};

TEST_P(KernelsCompile, WithoutSpills) {
  static const Loaded<NvrtcApi> nvrtc = load_nvrtc(0);
  const std::vector<Variant> all = variants();
  if (!nvrtc.report.usable())
    GTEST_SKIP() << "NVRTC: " << nvrtc.report.problem << "; " << all.size()
                 << " kernel variants are not compiled";
  const int arch = GetParam();
  int count = 0;
  nvrtc.api.get_num_supported_archs(&count);
  std::vector<int> archs(static_cast<size_t>(count));
  nvrtc.api.get_supported_archs(archs.data());
  if (std::find(archs.begin(), archs.end(), arch) == archs.end())
    GTEST_SKIP() << "NVRTC " << nvrtc.report.version << " has no sm_" << arch << "; " << all.size()
                 << " kernel variants are not compiled";
  const char* report = std::getenv("DAIS_KERNEL_REPORT");
  std::ofstream out;
  if (report) out.open(report, std::ios::app);
  for (const Variant& variant : all) {
    if (variant.needs > arch) continue;
    const Outcome outcome = compile(nvrtc.api, variant, arch);
    ASSERT_TRUE(outcome.compiled) << variant.name << " for sm_" << arch << ":\n" << outcome.log;
    const std::vector<Usage> kernels = usage_of(outcome.log);
    EXPECT_FALSE(kernels.empty()) << variant.name << ": ptxas tells nothing:\n" << outcome.log;
    for (const Usage& usage : kernels) {
      out << record_of(variant, arch, usage) << "\n";
      const std::string name = std::string(variant.name) + ":" + usage.kernel;
      const bool may = std::find(kMaySpill.begin(), kMaySpill.end(), name) != kMaySpill.end();
      EXPECT_TRUE(may || usage.spill_stores + usage.spill_loads == 0)
          << name << " spills: " << record_of(variant, arch, usage);
    }
  }
}

// A suite for each, so that CTest runs them side by side: one takes most of a minute.
INSTANTIATE_TEST_SUITE_P(Sm60, KernelsCompile, testing::Values(60));
INSTANTIATE_TEST_SUITE_P(Sm70, KernelsCompile, testing::Values(70));
INSTANTIATE_TEST_SUITE_P(Sm75, KernelsCompile, testing::Values(75));
INSTANTIATE_TEST_SUITE_P(Sm80, KernelsCompile, testing::Values(80));
INSTANTIATE_TEST_SUITE_P(Sm86, KernelsCompile, testing::Values(86));
INSTANTIATE_TEST_SUITE_P(Sm89, KernelsCompile, testing::Values(89));
INSTANTIATE_TEST_SUITE_P(Sm90, KernelsCompile, testing::Values(90));
INSTANTIATE_TEST_SUITE_P(Sm100, KernelsCompile, testing::Values(100));

TEST(KernelVariants, AreListedByEveryText) {
  for (const Text& text : texts()) {
    if (!text.name.ends_with(".cu")) continue;
    EXPECT_NE(text.contents.find("// Compiled with: "), std::string_view::npos) << text.name;
  }
}

}  // namespace
}  // namespace dais::cuda
