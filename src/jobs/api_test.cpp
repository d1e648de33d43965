// The HTTP interface: what its own description allows and a good deal more, thrown at it by a
// generator; and what members of different projects can see of each other.
#include "jobs/api.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "jobs/openapi.h"

namespace dais::jobs {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class JobsApi : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dais_api_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    Host host;
    host.devices = 2;
    host.cpu_milli = 64'000;
    host.memory_mib = 65'536;
    daemon_ = std::make_unique<Daemon>(Controller::Options{folder_, host, policy_named("default"),
                                                           steady_now_s, 64 << 20, library(), 0});
    api_ = std::make_unique<Api>(*daemon_);
    loop_ = std::thread([this] { daemon_->run(); });
    for (const char* user : {"ann", "bob", "vera", "root"}) {
      const TokenRow row{token_hash(user), user, std::string(user) == "root"};
      daemon_->ask([&row](Controller& controller) { controller.store().put_token(row); });
    }
  }
  void TearDown() override {
    const Json jobs = body(ask("root", "GET", "/v1/jobs", {}, {{"most", "10000"}}))["jobs"];
    for (const Json& job : jobs) {
      ask("root", "POST", "/v1/jobs/" + job["id"].dump() + "/cancel");
    }
    for (int i = 0; i < 500 && open_jobs() > 0; ++i) usleep(10'000);
    daemon_->stop();
    loop_.join();
    fs::remove_all(folder_);
  }

  virtual std::string library() { return {}; }

  // The token of a user is his name here.
  http::Response ask(const std::string& user, const std::string& method, const std::string& path,
                     const std::string& text = {},
                     const std::map<std::string, std::string>& query = {}) {
    http::Request request;
    request.method = method;
    request.path = path;
    request.query = query;
    request.body = text;
    request.headers["authorization"] = "Bearer " + user;
    return api_->answer(request);
  }
  static Json body(const http::Response& response) { return Json::parse(response.body); }
  size_t open_jobs() {
    return body(ask("root", "GET", "/v1/jobs", {}, {{"most", "10000"}}))["jobs"].size();
  }
  void project(const std::string& name, const std::vector<std::string>& members,
               const std::vector<std::string>& viewers) {
    const Json json = {{"name", name}, {"members", members}, {"viewers", viewers}};
    ASSERT_EQ(ask("root", "PUT", "/v1/projects", json.dump()).status, 200);
  }
  std::string submission(const std::string& project, const std::string& user,
                         const std::vector<int64_t>& after = {}) const {
    JobRequest request;
    request.name = "secret";
    request.project = project;
    request.user = user;
    request.command = {"/bin/sleep", "30"};
    request.folder = folder_.string();
    request.after = after;
    request.grace_s = 0.1;
    return Json{{"jobs", Json::array({Json::parse(to_json(request))})}}.dump();
  }

  fs::path folder_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Api> api_;
  std::thread loop_;
};

TEST_F(JobsApi, MembersNeitherSeeNorTouchWhatIsNotTheirs) {
  project("alpha", {"ann"}, {"vera"});
  project("beta", {"bob"}, {});
  const auto submitted = ask("ann", "POST", "/v1/jobs", submission("alpha", "root"));
  ASSERT_EQ(submitted.status, 200) << submitted.body;
  const int64_t id = body(submitted)["ids"][0];
  const std::string job = "/v1/jobs/" + std::to_string(id);
  // A name in the request is not who asks.
  EXPECT_EQ(body(ask("ann", "GET", job))["user"], "ann");
  for (const char* part : {"", "/why", "/log"}) {
    EXPECT_EQ(ask("bob", "GET", job + part).status, 404) << part;
    EXPECT_EQ(ask("vera", "GET", job).status, 200) << part;
  }
  for (const char* act : {"/cancel", "/pause", "/resume", "/requeue", "/nothing"}) {
    EXPECT_EQ(ask("bob", "POST", job + act).status, 404) << act;
    EXPECT_EQ(ask("vera", "POST", job + act).status, 403) << act;
  }
  EXPECT_TRUE(body(ask("bob", "GET", "/v1/jobs", {}, {{"all", "1"}}))["jobs"].empty());
  EXPECT_EQ(ask("bob", "POST", "/v1/jobs", submission("alpha", "ann")).status, 403);
  EXPECT_EQ(ask("vera", "POST", "/v1/jobs", submission("alpha", "ann")).status, 403);
  // Not even whether it exists: a job that is not there gets the same answer.
  const auto hidden = ask("bob", "POST", "/v1/jobs", submission("beta", "bob", {id}));
  const auto absent = ask("bob", "POST", "/v1/jobs", submission("beta", "bob", {id + 1000}));
  EXPECT_EQ(hidden.status, 404);
  EXPECT_EQ(absent.status, 404);
  EXPECT_EQ(ask("bob", "POST", "/v1/tokens", R"({"user": "ann"})").status, 403);
  EXPECT_EQ(ask("bob", "PUT", "/v1/projects", R"({"name": "alpha"})").status, 403);
  EXPECT_EQ(ask("mallory", "GET", job).status, 401);
  EXPECT_EQ(body(ask("ann", "GET", job))["phase"], "running");
}

/// A page holds what the caller may see, however many newer jobs of others there are.
TEST_F(JobsApi, JobsOfOthersDoNotFillThePages) {
  project("alpha", {"ann"}, {});
  project("beta", {"bob"}, {});
  const auto mine = ask("bob", "POST", "/v1/jobs", submission("beta", "bob"));
  ASSERT_EQ(mine.status, 200) << mine.body;
  for (int i = 0; i < 120; ++i)
    ASSERT_EQ(ask("ann", "POST", "/v1/jobs", submission("alpha", "ann")).status, 200);
  const auto page = body(ask("bob", "GET", "/v1/jobs", {}, {{"all", "1"}, {"most", "1"}}))["jobs"];
  ASSERT_EQ(page.size(), 1U);
  EXPECT_EQ(page[0]["id"], body(mine)["ids"][0]);
  EXPECT_EQ(body(ask("ann", "GET", "/v1/jobs", {}, {{"all", "1"}, {"most", "7"}}))["jobs"].size(),
            7U);
}

TEST_F(JobsApi, ArtefactsAreHandedOutToWhoMaySeeTheJob) {
  project("alpha", {"ann"}, {"vera"});
  JobRequest request;
  request.name = "keeps";
  request.project = "alpha";
  request.user = "ann";
  request.command = {"/bin/sh", "-c", "mkdir -p out && printf 'one\\000two' > out/bytes && exit 3"};
  request.folder = (folder_ / "work").string();
  request.artefacts = {"out"};
  fs::create_directories(request.folder);
  const Json jobs = {{"jobs", Json::array({Json::parse(to_json(request))})}};
  const std::string job =
      "/v1/jobs/" + body(ask("ann", "POST", "/v1/jobs", jobs.dump()))["ids"][0].dump();
  Json kept = Json::object();
  for (int i = 0; i < 2000 && kept.value("state", "") != "kept"; ++i) {
    usleep(10'000);
    kept = body(ask("vera", "GET", job + "/artefacts"))["artefacts"];
  }
  // Of a job that failed as well.
  ASSERT_EQ(kept["state"], "kept") << kept;
  EXPECT_EQ(kept["files"], Json::parse(R"([{"path": "out/bytes", "bytes": 7}])"));
  EXPECT_EQ(body(ask("ann", "GET", job))["artefacts"], kept);
  const auto fetch = [&](const std::string& user, const std::string& path) {
    return ask(user, "GET", job + "/artefact", {}, {{"path", path}});
  };
  http::Response file = fetch("vera", "out/bytes");
  ASSERT_EQ(file.status, 200);
  std::string bytes, piece;
  while (file.stream(piece)) bytes += piece;
  EXPECT_EQ(bytes, std::string("one\0two", 7));
  EXPECT_EQ(fetch("bob", "out/bytes").status, 404);
  EXPECT_EQ(ask("bob", "GET", job + "/artefacts").status, 404);
  for (const char* path : {"../list.json", "/etc/passwd", "out", "out/../out/bytes", ""}) {
    EXPECT_EQ(fetch("ann", path).status, 404) << path;
  }
  EXPECT_EQ(ask("ann", "GET", job + "/artefact").status, 400);
}

// Devices by the stand-in, whose names say that they are no hardware.
class JobsApiMeasured : public JobsApi {
 protected:
  std::string library() override {
    values_ = fs::temp_directory_path() / ("dais_api_nvml_" + std::to_string(getpid()));
    std::ofstream(values_) << "0 utilisation 80\n0 memory_total 1000\n0 memory_used 300\n"
                              "0 power 2000\n1 utilisation 0\n";
    setenv("DAIS_FAKE_NVML", values_.c_str(), 1);
    return (fs::read_symlink("/proc/self/exe").parent_path() / "dais_fake_nvml.so").string();
  }
  void TearDown() override {
    JobsApi::TearDown();
    unsetenv("DAIS_FAKE_NVML");
    fs::remove(values_);
  }
  template <typename Condition>
  bool within_seconds(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      usleep(10'000);
    }
    return false;
  }

  fs::path values_;
};

TEST_F(JobsApiMeasured, WhatTheDevicesTellReachesStatusPrometheusAlertsAndReport) {
  ASSERT_TRUE(within_seconds(
      [this] { return body(ask("root", "GET", "/v1/status"))["devices"].size() == 2; }));
  const Json device = body(ask("root", "GET", "/v1/status"))["devices"][0];
  EXPECT_NE(device["name"].get<std::string>().find("not hardware"), std::string::npos);
  EXPECT_EQ(device["utilisation"], 0.8);
  EXPECT_TRUE(device["temperature_c"].is_null());
  const std::string text = ask("root", "GET", "/metrics").body;
  for (const char* line : {"dais_gpu_utilisation{gpu=\"0\",UUID=\"FAKE-0\"} 0.8",
                           "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"FAKE-0\"} 80\n",
                           "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"FAKE-0\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_EQ(text.find("DCGM_FI_DEV_GPU_TEMP{"), std::string::npos);
  EXPECT_EQ(text.find("DCGM_FI_DEV_POWER_USAGE{gpu=\"1\""), std::string::npos);
  // Two whole GPUs, of which one idles.
  JobRequest request;
  request.name = "idle";
  request.command = {"/bin/sleep", "30"};
  request.folder = folder_.string();
  request.gpu_milli = 2000;
  request.grace_s = 0.1;
  const Json jobs = {{"jobs", Json::array({Json::parse(to_json(request))})}};
  const int64_t id = body(ask("root", "POST", "/v1/jobs", jobs.dump()))["ids"][0];
  ASSERT_TRUE(within_seconds([&] {
    return daemon_->ask([id](Controller& c) { return c.meter().use(id).value_or(Use()); }).held_s >
           1;
  }));
  const Use use = daemon_->ask([id](Controller& c) { return *c.meter().use(id); });
  EXPECT_NEAR(use.kernel_s / use.held_s, 0.4, 1e-6);
  EXPECT_EQ(use.memory_bytes, 300);
  ask("root", "POST", "/v1/jobs/" + std::to_string(id) + "/cancel");
  ASSERT_TRUE(within_seconds([this] { return open_jobs() == 0; }));
  const Json report = body(ask("root", "GET", "/v1/report"));
  ASSERT_EQ(report["projects"].size(), 1U);
  EXPECT_GT(report["projects"][0]["kernel_hours"], 0.0);
  EXPECT_NEAR(report["projects"][0]["gpu_hours"].get<double>(),
              report["projects"][0]["kernel_hours"].get<double>() +
                  report["projects"][0]["idle_hours"].get<double>() +
                  report["projects"][0]["unknown_hours"].get<double>(),
              1e-9);
  EXPECT_EQ(ask("bob", "GET", "/v1/report").status, 403);
}

TEST_F(JobsApiMeasured, MemoryOfAGpuIsAPartOfTheSmallestThatTellsItsSize) {
  std::ofstream(values_) << "0 memory_total 8589934592\n0 memory_used 0\n"
                            "1 memory_total 4294967296\n1 memory_used 0\n";
  ASSERT_TRUE(within_seconds([this] {
    const Json devices = body(ask("root", "GET", "/v1/status"))["devices"];
    return devices.size() == 2 && devices[1]["memory_total_bytes"] == 4294967296;
  }));
  Json json = Json::parse(submission("default", "root"));
  json["jobs"][0]["gpu_milli"] = 0;
  json["jobs"][0]["gpu_mib"] = 1025;
  const http::Response answer = ask("root", "POST", "/v1/jobs", json.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string job = "/v1/jobs/" + body(answer)["ids"][0].dump();
  EXPECT_EQ(body(ask("root", "GET", job))["request"]["gpu_milli"], 251);
  EXPECT_EQ(body(ask("root", "GET", job))["wall"], "none");
  json["jobs"][0]["gpu_mib"] = 4097;
  EXPECT_EQ(ask("root", "POST", "/v1/jobs", json.dump()).status, 400);
}

TEST_F(JobsApiMeasured, AGpuWhoseMemoryStaysInUseIsInQuarantineAndSaysSo) {
  ASSERT_TRUE(within_seconds(
      [this] { return body(ask("root", "GET", "/v1/status"))["devices"].size() == 2; }));
  std::ofstream(values_) << "0 utilisation 0\n1 utilisation 0\n1 memory_total 9000000000\n"
                            "1 memory_used 2000000000\n1 process 4711 1073741824 0\n";
  const auto status = [this] { return body(ask("root", "GET", "/v1/status")); };
  ASSERT_TRUE(within_seconds([&] { return !status()["alerts"].empty(); }));
  EXPECT_NE(status()["alerts"][0].get<std::string>().find("GPU 1 is in quarantine"),
            std::string::npos);
  EXPECT_EQ(status()["devices"][0]["quarantined"], false);
  EXPECT_EQ(status()["devices"][1]["quarantined"], true);
  // A job that needs them all waits, and is told for what.
  JobRequest request;
  request.name = "all";
  request.command = {"/bin/true"};
  request.folder = folder_.string();
  request.gpu_milli = status()["gpus"].get<int64_t>() * 1000 + 1000;
  const Json jobs = {{"jobs", Json::array({Json::parse(to_json(request))})}};
  const std::string job =
      "/v1/jobs/" + body(ask("root", "POST", "/v1/jobs", jobs.dump()))["ids"][0].dump();
  EXPECT_NE(body(ask("root", "GET", job + "/why"))["why"].get<std::string>().find("quarantine"),
            std::string::npos);
  std::ofstream(values_) << "0 utilisation 0\n1 utilisation 0\n1 memory_total 9000000000\n"
                            "1 memory_used 1000000\n";
  EXPECT_TRUE(
      within_seconds([&] { return body(ask("root", "GET", job))["phase"] == "completed"; }));
}

TEST_F(JobsApi, AmountsThatAreNoneAreRefusedNotCountedOn) {
  Json json = Json::parse(submission("default", "root"));
  json["jobs"][0]["gpu_milli"] = -1;
  json["jobs"][0]["tasks"] = 10;
  EXPECT_EQ(ask("root", "POST", "/v1/jobs", json.dump()).status, 400);
}

// Makes values of a schema; now and then it breaks a rule.
class Generator {
 public:
  Generator(const Json& api, uint64_t seed) : api_(api), random_(seed) {}

  int roll(int sides) { return static_cast<int>(random_() % static_cast<uint64_t>(sides)); }

  Json value(const Json& schema, int depth = 0) {
    if (schema.contains("$ref")) return value(resolved(schema), depth);
    if (roll(30) == 0) return odd();
    const std::string type = schema.value("type", "string");
    if (type == "object") return object(schema, depth);
    if (type == "boolean") return roll(2) == 0;
    if (type == "integer") return integer(schema);
    if (type == "number") return static_cast<double>(integer(schema)) + roll(1000) / 1000.0;
    if (type == "string") return text();
    Json list = Json::array();
    for (int i = roll(3) + schema.value("minItems", 0); i > 0; --i) {
      list.push_back(value(schema.at("items"), depth + 1));
    }
    return list;
  }

  std::string text() {
    static const std::vector<std::string> words = {"default",
                                                   "a",
                                                   "/bin/true",
                                                   "/tmp",
                                                   "../../etc/passwd",
                                                   "'; DROP TABLE job; --",
                                                   "$(id)",
                                                   "`id`",
                                                   "{lr}",
                                                   "%s%n",
                                                   std::string("a\0b", 3),
                                                   "\xff\xfe",
                                                   "ä€𝄞",
                                                   "",
                                                   "root",
                                                   "-1",
                                                   "NaN",
                                                   std::string(3000, 'x'),
                                                   "a\nb\r\nc: d",
                                                   "."};
    return words[static_cast<size_t>(roll(static_cast<int>(words.size())))];
  }

  const Json& resolved(const Json& schema) const {
    const std::string path = schema.at("$ref").get<std::string>().substr(1);
    return api_.at(Json::json_pointer(path));
  }

 private:
  Json integer(const Json& schema) {
    const int64_t low = schema.value("minimum", int64_t{-5});
    const int64_t high = schema.value("maximum", low + 20);
    switch (roll(8)) {
      case 0: return low - 1;
      case 1: return high;
      case 2: return std::numeric_limits<int64_t>::max();
      default:
        return low + static_cast<int64_t>(
                         random_() % static_cast<uint64_t>(std::min<int64_t>(high - low, 9) + 1));
    }
  }

  Json odd() {
    switch (roll(7)) {
      case 0: return nullptr;
      case 1: return 1e308;
      case 2: return std::numeric_limits<uint64_t>::max();
      case 3: return Json::array({Json::array({Json::object()})});
      case 4: return Json{{"a", {{"b", nullptr}}}};
      case 5: return true;
      default: return text();
    }
  }

  Json object(const Json& schema, int depth) {
    Json out = Json::object();
    if (schema.contains("additionalProperties") && depth < 6) {
      for (int i = roll(3); i > 0; --i) {
        out[text()] = value(schema.at("additionalProperties"), depth + 1);
      }
    }
    if (!schema.contains("properties")) return out;
    const Json required = schema.value("required", Json::array());
    for (const auto& [name, part] : schema.at("properties").items()) {
      const bool needed = std::ranges::count(required, Json(name)) > 0;
      if (roll(needed ? 60 : 2) == 0) continue;
      out[name] = value(part, depth + 1);
    }
    if (roll(20) == 0) out[text()] = odd();
    return out;
  }

  const Json& api_;
  std::mt19937_64 random_;
};

// DAIS_API_REQUESTS asks for more than the everyday run sends.
int wanted_requests() {
  const char* asked = std::getenv("DAIS_API_REQUESTS");
  return asked ? std::max(1, std::atoi(asked)) : 600;
}

class Fuzz {
 public:
  explicit Fuzz(uint64_t seed) : api_(Json::parse(openapi_text())), make_(api_, seed) {
    for (const auto& [path, methods] : api_.at("paths").items()) {
      for (const auto& [method, operation] : methods.items()) {
        operations_.push_back({path, method, operation});
      }
    }
  }

  struct Request {
    std::string method, path, body;
    std::map<std::string, std::string> query;
  };
  Request next() {
    const auto& [path, method, operation] =
        operations_[static_cast<size_t>(make_.roll(static_cast<int>(operations_.size())))];
    Request request;
    for (const char c : method) request.method += static_cast<char>(c - 'a' + 'A');
    request.path = path;
    for (const Json& given : operation.value("parameters", Json::array())) {
      const Json& parameter = given.contains("$ref") ? make_.resolved(given) : given;
      const Json value = make_.value(parameter.at("schema"));
      const std::string text = value.is_string()    ? value.get<std::string>()
                               : make_.roll(9) == 0 ? make_.text()
                                                    : dump(value);
      if (parameter.at("in") == "path") {
        request.path.replace(request.path.find("{id}"), 4, text);
      } else if (parameter.at("name") != "follow" && make_.roll(2) == 0) {
        request.query[parameter.at("name")] = text;
      }
    }
    if (operation.contains("requestBody")) {
      request.body = dump(make_.value(
          operation.at("requestBody").at("content").at("application/json").at("schema")));
      if (make_.roll(25) == 0) request.body.resize(request.body.size() / 2);
      if (make_.roll(40) == 0) request.body = std::string(20'000, '[');
    }
    return request;
  }
  int roll(int sides) { return make_.roll(sides); }

 private:
  struct Operation {
    std::string path, method;
    Json operation;
  };
  static std::string dump(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::ignore);
  }

  Json api_;
  Generator make_;
  std::vector<Operation> operations_;
};

TEST_F(JobsApi, SurvivesWhatItsDescriptionAllowsAndMore) {
  Fuzz fuzz(13);
  std::map<int, int> seen;
  for (int i = 0; i < wanted_requests(); ++i) {
    const Fuzz::Request request = fuzz.next();
    const char* user = fuzz.roll(4) == 0 ? "bob" : "root";
    const http::Response response =
        ask(user, request.method, request.path, request.body, request.query);
    ++seen[response.status];
    ASSERT_TRUE(response.status < 500 || response.status == 507)
        << request.method << " " << request.path << "\n"
        << request.body << "\n"
        << response.body;
    if (response.status == 200) continue;
    const Json error = Json::parse(response.body, nullptr, false);
    ASSERT_TRUE(error.is_object() && error.contains("error")) << response.body;
    for (const char* key : {"code", "message", "where", "remedy"}) {
      ASSERT_TRUE(error["error"].contains(key)) << response.body;
    }
  }
  EXPECT_GT(seen[200], 0);
  EXPECT_GT(seen[400], 0);
  EXPECT_EQ(ask("root", "GET", "/v1/status").status, 200);
}

TEST_F(JobsApi, EveryPathOfTheDescriptionExists) {
  const Json api = Json::parse(openapi_text());
  EXPECT_EQ(body(ask("bob", "GET", "/v1/openapi.json")), api);
  for (const auto& [path, methods] : api.at("paths").items()) {
    for (const auto& [method, operation] : methods.items()) {
      std::string upper = method;
      std::ranges::transform(upper, upper.begin(), [](char c) { return std::toupper(c); });
      std::string target = path;
      if (const size_t at = target.find("{id}"); at != std::string::npos)
        target.replace(at, 4, "7");
      const http::Response response = ask("root", upper, target, "{}");
      EXPECT_EQ(response.body.find("no such path"), std::string::npos) << upper << " " << path;
    }
  }
}

}  // namespace
}  // namespace dais::jobs
