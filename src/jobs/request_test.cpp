#include "jobs/request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jobs/controller.h"

namespace dais::jobs {
namespace {

std::string problem_of(const std::string& text) {
  try {
    read_job_file(text, "job.yaml", "/base");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(JobFile, ReadsEveryKey) {
  const auto jobs = read_job_file(
      "name: train\nproject: vision\npriority: 5\ncommand: [python3, train.py]\nfolder: src\n"
      "snapshot: true\nenvironment: {A: 1, B: two}\ntasks: 2\ngpus: 0.5\ncpus: 4\nmemory: 8GiB\n"
      "preemptible: false\ngrace: 1m\nmin_run: 10m\ntime_limit: 1:30:00\nretries: 3\n"
      "backoff: 10s\nafter: [1, 2]\nnotify: [mail, anna]\n",
      "job.yaml", "/base");
  ASSERT_EQ(jobs.size(), 1U);
  const JobRequest& job = jobs[0];
  EXPECT_EQ(job.name, "train");
  EXPECT_EQ(job.project, "vision");
  EXPECT_EQ(job.priority, 5);
  EXPECT_EQ(job.command, (std::vector<std::string>{"python3", "train.py"}));
  EXPECT_EQ(job.folder, "/base/src");
  EXPECT_TRUE(job.snapshot);
  EXPECT_EQ(job.environment, (std::map<std::string, std::string>{{"A", "1"}, {"B", "two"}}));
  EXPECT_EQ(job.tasks, 2);
  EXPECT_EQ(job.gpu_milli, 500);
  EXPECT_EQ(job.cpu_milli, 4000);
  EXPECT_EQ(job.memory_mib, 8192);
  EXPECT_FALSE(job.preemptible);
  EXPECT_EQ(job.grace_s, 60);
  EXPECT_EQ(job.min_run_s, 600);
  EXPECT_EQ(job.time_limit_s, 5400);
  EXPECT_EQ(job.retries, 3);
  EXPECT_EQ(job.backoff_s, 10);
  EXPECT_EQ(job.after, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(job.notify, (std::vector<std::string>{"mail", "anna"}));
  EXPECT_EQ(request_from_json(to_json(job)), job);
}

TEST(JobFile, ListsAllProblemsWithTheirLines) {
  const std::string problem =
      problem_of("comand: [a]\npriority: high\ngpus: 1.5\nmemory: 8 apples\nretries: -1\n");
  for (const char* part :
       {"line 1: unknown key 'comand'; did you mean 'command'?", "line 2: priority",
        "gpus: a part of a GPU", "line 4: memory", "retries:", "command: missing"}) {
    EXPECT_NE(problem.find(part), std::string::npos) << problem;
  }
}

TEST(JobFile, AnArrayAndASweepGiveManyJobs) {
  const auto array = read_job_file("shell: echo {index}\narray: 3\n", "a.yaml", "/w");
  ASSERT_EQ(array.size(), 3U);
  EXPECT_EQ(array[2].command[2], "echo 2");
  EXPECT_EQ(array[2].environment.at("DAIS_ARRAY_SIZE"), "3");
  const auto sweep = read_job_file(
      "name: s\ncommand: [train, --lr, '{lr}', '--depth={depth}']\n"
      "sweep: {lr: [0.1, 0.01], depth: [2, 3]}\n",
      "s.yaml", "/w");
  ASSERT_EQ(sweep.size(), 4U);
  EXPECT_EQ(sweep[1].command, (std::vector<std::string>{"train", "--lr", "0.1", "--depth=3"}));
  EXPECT_EQ(sweep[3].environment.at("DAIS_PARAM_lr"), "0.01");
}

TEST(JobFile, ASearchDrawsFromListsAndRanges) {
  const std::string text =
      "command: [train, '{lr}', '{width}']\n"
      "sweep: {lr: {from: 1e-4, to: 1e-1, log: true}, width: [16, 32], p: {from: -1, to: 1}}\n"
      "search: {samples: 400, seed: 5, first: 10, factor: 4, better: larger}\n";
  const auto jobs = read_job_file(text, "job.yaml", "/tmp");
  ASSERT_EQ(jobs.size(), 400U);
  EXPECT_EQ(jobs, read_job_file(text, "job.yaml", "/tmp"));
  int small = 0, narrow = 0;
  double sum = 0;
  for (const JobRequest& job : jobs) {
    const double lr = std::stod(job.environment.at("DAIS_PARAM_lr"));
    EXPECT_GE(lr, 1e-4);
    EXPECT_LE(lr, 1e-1);
    small += lr < 1e-2;
    narrow += job.command[2] == "16";
    sum += std::stod(job.environment.at("DAIS_PARAM_p"));
  }
  // Two of three decades, one of two, mean 0: within five standard deviations.
  EXPECT_NEAR(small, 267, 47);
  EXPECT_NEAR(narrow, 200, 50);
  EXPECT_NEAR(sum / 400, 0, 0.15);
  EXPECT_EQ(jobs[0].search, (Search{"", 10, 4, true}));
  EXPECT_EQ(request_from_json(to_json(jobs[0])), jobs[0]);
  for (const char* broken :
       {"search: {samples: 3}\n", "sweep: {a: {from: 2, to: 1}}\nsearch: {samples: 3}\n",
        "sweep: {a: {from: 0, to: 1, log: true}}\nsearch: {samples: 3}\n",
        "sweep: {a: []}\nsearch: {samples: 3}\n", "sweep: {a: [1]}\nsearch: {smaples: 3}\n",
        "sweep: {a: [1]}\nsearch: {samples: 0}\n", "sweep: {a: [1]}\nsearch: {better: best}\n",
        "sweep: {a: [1]}\nsearch: {factor: 1}\n"}) {
    EXPECT_THROW(read_job_file(std::string("command: [x]\n") + broken, "job.yaml", "/tmp"), Error)
        << broken;
  }
}

TEST(JobFile, HostileTextIsRefused) {
  EXPECT_NE(problem_of("{[").find("not YAML"), std::string::npos);
  EXPECT_NE(problem_of("- a\n- b\n").find("key: value"), std::string::npos);
  EXPECT_NE(problem_of("shell: x\narray: 1000000000\n").find("array"), std::string::npos);
  EXPECT_NE(problem_of("shell: x\nname: 'a\\nb;rm'\n"), "accepted");
  EXPECT_NE(problem_of("shell: x\nenvironment: {'A=B': 1}\n").find("environment"),
            std::string::npos);
  EXPECT_NE(problem_of(std::string(5 << 20, ' ')).find("larger"), std::string::npos);
}

/// One request of a stranger must not end the scheduler of all: what walks JSON calls itself.
TEST(StoredJob, JsonThatIsNestedDeeplyIsRefused) {
  const size_t depth = size_t{1} << 20;
  for (const std::string& text :
       {std::string(depth, '[') + std::string(depth, ']'),
        "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}",
        std::string(depth, '[')}) {
    EXPECT_THROW(request_from_json(text), Error);
    EXPECT_THROW(project_from_json(text), Error);
  }
}

TEST(StoredJob, NumbersAreTakenAsTheyAreOrNotAtAll) {
  JobRequest job = read_job_file("shell: x\n", "job.yaml", "/tmp")[0];
  const auto with = [&job](const std::string& name, const std::string& number) {
    auto json = nlohmann::ordered_json::parse(to_json(job));
    json[name] = nlohmann::ordered_json::parse(number);
    return json.dump();
  };
  for (const char* name : {"tasks", "gpu_milli", "memory_mib", "priority", "retries", "min_tasks"})
    for (const char* number :
         {"1.9", "1e300", "true", "\"1\"", "99999999999999999999", "null", "[1]"})
      EXPECT_THROW(request_from_json(with(name, number)), Error) << name << " " << number;
  EXPECT_THROW(request_from_json(with("tasks", "4294967297")), Error);
  EXPECT_THROW(request_from_json(with("after", "[1.5]")), Error);
  EXPECT_EQ(request_from_json(with("tasks", "7")).tasks, 7);
}

TEST(Amounts, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_milli("0.25", "gpus"), 250);
  EXPECT_EQ(parse_mib("1.5G", "memory"), 1536);
  EXPECT_EQ(parse_mib("512", "memory"), 512);
  EXPECT_EQ(parse_seconds("2h", "x"), 7200);
  EXPECT_EQ(parse_seconds("1:00", "x"), 60);
  for (const char* bad : {"", "-1", "nan", "1e99", "3x", "1:2:3:4", "inf"}) {
    EXPECT_THROW(parse_seconds(bad, "x"), Error) << bad;
    EXPECT_THROW(parse_mib(bad, "x"), Error) << bad;
    EXPECT_THROW(parse_milli(bad, "x"), Error) << bad;
  }
}

}  // namespace
}  // namespace dais::jobs
