#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Result {
  int status = -1;  ///< 128 + signal when it crashed
  std::string out, err;
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Each test works in a folder of its own, where model.onnx is the example model.
class Cli : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(environment("DAIS").empty()) << "run it through CTest";
    std::string pattern = (fs::temp_directory_path() / "dais_e2e_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::copy_file(environment("MODEL"), folder_ / "model.onnx");
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  Result dais(const std::string& arguments) {
    const std::string line = "cd '" + folder_.string() + "' && '" + environment("DAIS") + "' " +
                             arguments + " >stdout 2>stderr </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            contents(folder_ / "stdout"), contents(folder_ / "stderr")};
  }
  /// Wrong usage or input: exit code 2 and one line that holds `part`.
  void refused(const std::string& arguments, const std::string& part) {
    const Result result = dais(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
  }
  json parsed(const std::string& arguments, int status = 0) {
    const Result result = dais(arguments);
    EXPECT_EQ(result.status, status) << arguments << "\n" << result.err;
    const json out = json::parse(result.out, nullptr, false);
    EXPECT_FALSE(out.is_discarded()) << arguments << "\n" << result.out;
    return out;
  }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  fs::path folder_;
};

/// The verbs that --help lists.
std::vector<std::string> verbs_of(const std::string& help) {
  std::vector<std::string> verbs;
  std::istringstream lines(help.substr(std::min(help.size(), help.find("Subcommands:"))));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ") && line.size() > 2 && line[2] != ' ')
      verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
  return verbs;
}

TEST_F(Cli, HelpOfEveryVerbHasAnExample) {
  const Result all = dais("--help");
  EXPECT_EQ(all.status, 0);
  const auto verbs = verbs_of(all.out);
  EXPECT_GE(verbs.size(), 5u) << all.out;
  for (const auto& verb : verbs) {
    const Result help = dais(verb + " --help");
    EXPECT_EQ(help.status, 0) << verb;
    EXPECT_NE(help.out.find("Example: dais " + verb), std::string::npos) << verb;
    EXPECT_NE(help.out.find("--json"), std::string::npos) << verb;
  }
}

TEST_F(Cli, SlipsAreAnsweredWithTheNearestName) {
  refused("explian model.onnx", "Did you mean 'explain'?");
  refused("run model.onnx --input imge=iota:1x1x28x28", "Did you mean 'image'?");
  refused("run model.onnx --input image=unifrom:1x1x28x28", "Did you mean uniform?");
  refused("run model.onnx --optimize ful", "did you mean full?");
  EXPECT_EQ(dais("frobnicate").status, 2);
  EXPECT_EQ(dais("").status, 2);
  EXPECT_EQ(dais("run").status, 2);
  EXPECT_EQ(dais("run model.onnx --thread 1").status, 2);
}

TEST_F(Cli, InputsThatDoNotFitAreNamed) {
  refused("run model.onnx --input image=iota:1x1x28x27", "image");
  refused("run model.onnx --input image=iota:28x28", "image");
  refused("run model.onnx --input image=iota:1x-1x28x28", "image");
  refused("run model.onnx --input image=absent.npy", "absent.npy");
  refused("run model.onnx --input image", "NAME=VALUE");
  write("bad.npy", "\x93NUMPY");
  refused("run model.onnx --input image=bad.npy", "bad.npy");
}

TEST_F(Cli, AnswersInJson) {
  const json run = parsed("run model.onnx --json --output out --input image=const:2x1x28x28:0.5");
  EXPECT_EQ(run.at("outputs").at(0).at("shape"), json({2, 10}));
  EXPECT_NEAR(run.at("outputs").at(0).at("mean").get<double>(), 0.1, 1e-6);
  EXPECT_TRUE(fs::exists(folder_ / "out" / "probability.npy"));
  EXPECT_FALSE(parsed("explain model.onnx --json").at("steps").empty());
  const json bench = parsed("bench model.onnx --json --duration 0.05 --layers --threads 1");
  EXPECT_GE(bench.at("runs").get<int>(), 5);
  const json& layers = bench.at("layers");
  ASSERT_FALSE(layers.empty());
  double share = 0, flops = 0;
  for (const json& layer : layers) {
    share += layer.at("share").get<double>();
    flops += layer.at("flops").get<double>();
    EXPECT_GT(layer.at("bytes").get<double>(), 0) << layer;
    EXPECT_GT(layer.at("bound_fraction").get<double>(), 0) << layer;
  }
  EXPECT_NEAR(share, 1, 1e-6);
  EXPECT_NEAR(bench.at("total").at("flops").get<double>(), flops, 1);
  EXPECT_EQ(flops, parsed("inspect model.onnx --json").at("flops").get<double>());
  EXPECT_EQ(bench.at("reference_share").get<double>(), 0);
  EXPECT_TRUE(bench.at("peaks").at("f32").at("measured").get<bool>());
}

TEST_F(Cli, ProfileIsATrace) {
  EXPECT_EQ(dais("bench model.onnx --duration 0.02 --threads 2 --profile trace.json").status, 0);
  const json trace = json::parse(contents(folder_ / "trace.json"), nullptr, false);
  ASSERT_FALSE(trace.is_discarded());
  std::map<std::string, size_t> kinds;
  size_t lanes = 0;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") ++lanes;
    if (event.at("ph") != "X") continue;
    ++kinds[event.at("cat").get<std::string>()];
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GE(event.at("dur").get<double>(), 0);
    if (event.at("cat") == "step") {
      EXPECT_GT(event.at("args").at("bytes").get<double>(), 0);
    }
  }
  EXPECT_EQ(lanes, 2u);
  for (const char* kind : {"load", "pass", "prepare", "bind", "run", "step"})
    EXPECT_GT(kinds[kind], 0u) << kind;
  refused("bench model.onnx --duration 0.02 --profile absent/trace.json", "absent/trace.json");
}

TEST_F(Cli, InspectInJson) {
  const json facts = parsed("inspect model.onnx --json --size N=3");
  EXPECT_EQ(facts.at("inputs").at(0).at("name"), "image");
  EXPECT_EQ(facts.at("outputs").at(0).at("name"), "probability");
  EXPECT_EQ(facts.at("sizes").at("N"), 3);
  EXPECT_GT(facts.at("nodes").get<int>(), 3);
  EXPECT_GT(facts.at("parameters").get<int>(), 1000);
  EXPECT_EQ(facts.at("parameter_bytes").get<double>(), 4 * facts.at("parameters").get<double>());
  EXPECT_GT(facts.at("flops").get<double>(), 1e5);
  EXPECT_GT(facts.at("peak_bytes").get<double>(), facts.at("parameter_bytes").get<double>());
  EXPECT_EQ(facts.at("problem"), "");
  refused("inspect model.onnx --size M=3", "Did you mean 'N'?");
  refused("inspect model.onnx --size N=-3", "NAME=NUMBER");
}

TEST_F(Cli, ConvertedModelsGiveTheSame) {
  const std::string input = " --input image=uniform:2x1x28x28 --seed 5 --optimize off --output ";
  EXPECT_EQ(dais("run model.onnx" + input + "before").status, 0);
  for (const std::string flags : {"", "--opset 13", "--opset 17 --fold", "--external-data"}) {
    const json facts = parsed("convert model.onnx to.onnx --json " + flags);
    EXPECT_GT(facts.at("nodes").get<int>(), 3) << flags;
    EXPECT_EQ(facts.at("bytes").get<size_t>(), fs::file_size(folder_ / "to.onnx")) << flags;
    EXPECT_EQ(fs::exists(folder_ / "to.onnx.data"), flags == "--external-data");
    EXPECT_EQ(parsed("inspect to.onnx --json").at("opsets").at("ai.onnx"), facts.at("opset"));
    EXPECT_EQ(dais("run to.onnx" + input + "after").status, 0) << flags;
    EXPECT_EQ(contents(folder_ / "before" / "probability.npy"),
              contents(folder_ / "after" / "probability.npy"))
        << flags;
  }
  EXPECT_EQ(dais("convert model.onnx to.onnx --opset 12").status, 2);
  refused("convert absent.onnx to.onnx", "absent.onnx");
}

/// Half the bytes of weights, the same interface, and nearly the same answers.
TEST_F(Cli, ConvertedToSixteenBits) {
  const auto before = parsed("inspect model.onnx --json");
  for (const std::string precision : {"fp16", "bf16"}) {
    EXPECT_EQ(dais("convert model.onnx half.onnx --precision " + precision).status, 0);
    const auto facts = parsed("inspect half.onnx --json");
    EXPECT_EQ(facts.at("inputs"), before.at("inputs"));
    EXPECT_EQ(facts.at("outputs"), before.at("outputs"));
    EXPECT_LT(facts.at("parameter_bytes").get<double>(),
              0.6 * before.at("parameter_bytes").get<double>());
    EXPECT_EQ(
        dais("compare model.onnx half.onnx --limit 0.01 --input image=uniform:2x1x28x28").status,
        0);
  }
  refused("convert model.onnx half.onnx --precision fp8", "fp32, bf16 or fp16");
}

TEST_F(Cli, VerifySaysWhetherTheCheckHeld) {
  const fs::path set = folder_ / "cases" / "test_fashion" / "test_data_set_0";
  fs::create_directories(set);
  fs::copy_file(folder_ / "model.onnx", set.parent_path() / "model.onnx");
  // TensorProto {dims: [0, 1, 28, 28], data_type: 1} and {dims: [0, 10], data_type: 1}.
  std::ofstream(set / "input_0.pb", std::ios::binary)
      << std::string("\x08\x00\x08\x01\x08\x1c\x08\x1c\x10\x01", 10);
  std::ofstream(set / "output_0.pb", std::ios::binary)
      << std::string("\x08\x00\x08\x0a\x10\x01", 6);
  EXPECT_EQ(dais("verify cases").status, 0) << contents(folder_ / "stderr");
  std::ofstream(set / "output_0.pb", std::ios::binary)
      << std::string("\x08\x00\x08\x0b\x10\x01", 6);
  const Result wrong = dais("verify cases --json");
  EXPECT_EQ(wrong.status, 1);
  std::istringstream lines(wrong.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_FALSE(json::parse(line, nullptr, false).is_discarded()) << line;
  write("allowed.txt", "test_fashion  # its answer on file is wrong\n");
  EXPECT_EQ(dais("verify cases --skip allowed.txt").status, 0);
  refused("verify absent", "absent");
}

/// The example model on an image of zeros, with its own answer, changed, as the one on file.
class CliVerify : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    set_ = folder_ / "cases" / "test_one" / "test_data_set_0";
    fs::create_directories(set_);
    fs::copy_file(folder_ / "model.onnx", set_.parent_path() / "model.onnx");
    // TensorProto {dims: [1, 1, 28, 28], data_type: 1, raw_data: 3136 bytes}.
    std::ofstream(set_ / "input_0.pb", std::ios::binary)
        << std::string("\x08\x01\x08\x01\x08\x1c\x08\x1c\x10\x01\x4a\xc0\x18", 13)
        << std::string(3136, '\0');
  }
  void put_answer(const std::vector<float>& values) {
    std::ofstream file(set_ / "output_0.pb", std::ios::binary);
    file << std::string("\x08\x01\x08\x0a\x10\x01\x4a\x28", 8);
    file.write(reinterpret_cast<const char*>(values.data()), 40);
  }
  json verified(const std::string& flags, int status) {
    const Result result = dais("verify cases --json " + flags);
    EXPECT_EQ(result.status, status) << flags << "\n" << result.out << result.err;
    return json::parse(result.out.substr(0, result.out.find('\n')), nullptr, false);
  }
  fs::path set_;
};

TEST_F(CliVerify, ResultsAreMeasuredByTheExactAnswer) {
  put_answer(std::vector<float>(10, 0.5F));
  const json line = verified("--measure", 1);
  EXPECT_LT(line.at("measured").at(0).at("rms").get<double>(), 1e-5);
  EXPECT_GT(line.at("measured").at(0).at("rms_on_file").get<double>(), 0.1);
  // Ours is the nearer one by far; half as near as itself is not enough.
  EXPECT_EQ(verified("--exact 1", 0).at("status"), "passed");
  EXPECT_EQ(verified("--exact 1e-9", 1).at("status"), "failed");
}

TEST_F(CliVerify, ToleranceMayScaleWithTheLargestValue) {
  put_answer(std::vector<float>(10, 0.5F));
  EXPECT_EQ(verified("--of-largest 0.01", 1).at("status"), "failed");
  EXPECT_EQ(verified("--of-largest 2", 0).at("status"), "passed");
}

TEST_F(CliVerify, StepsAreForQuantisedModelsOnly) {
  put_answer(std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  verified("--steps 255 --top1", 1);
}

TEST_F(Cli, HostileFilesAreRefusedInOneLine) {
  const std::string good = contents(folder_ / "model.onnx");
  refused("run absent.onnx", "absent.onnx");
  write("bad.onnx", "");
  refused("run bad.onnx", "bad.onnx");
  write("bad.onnx", "not a model at all");
  refused("explain bad.onnx", "bad.onnx");
  for (const size_t size : {1u, 50u, 1000u}) {
    write("bad.onnx", good.substr(0, good.size() - size));
    refused("run bad.onnx", "bad.onnx");
  }
  // A field that claims 2^62 bytes.
  write("bad.onnx", "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x3f");
  refused("run bad.onnx", "bad.onnx");
  for (size_t at = 0; at < good.size(); at += good.size() / 40) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x55);
    write("bad.onnx", flipped);
    const Result result = dais("run bad.onnx --threads 1");
    EXPECT_TRUE(result.status == 0 || result.status == 2) << "byte " << at << ": " << result.status;
  }
}

TEST_F(Cli, SameSeedSameBytes) {
  for (const char* out : {"a", "b"})
    EXPECT_EQ(dais("run model.onnx --seed 3 --threads 1 --output " + std::string(out)).status, 0);
  EXPECT_EQ(contents(folder_ / "a" / "probability.npy"),
            contents(folder_ / "b" / "probability.npy"));
}

}  // namespace
