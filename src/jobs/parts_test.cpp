// Tasks that ask for parts of several devices: where they go, against a search
// through every way to give a task its devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/error.h"
#include "jobs/decision.h"
#include "jobs/journal_text.h"
#include "jobs/request.h"

namespace dais::jobs {
namespace {

constexpr int hosts = 3, devices = 4;

Shape parts(const std::vector<int64_t>& milli, int tasks = 1) {
  JobRequest request;
  request.gpu_milli = 0;
  request.cpu_milli = request.memory_mib = 0;
  for (const int64_t one : milli) {
    request.gpu_parts.push_back({one, 0});
    request.gpu_milli += one;
  }
  return shape_of(request, tasks);
}

// Whether distinct devices with so much free can serve the parts from `at` on,
// whichever way.
bool some_way(const std::vector<int>& free, const std::vector<int64_t>& wanted, size_t at = 0,
              unsigned used = 0) {
  if (at == wanted.size()) return true;
  for (size_t device = 0; device < free.size(); ++device) {
    if (((used >> device) & 1) || free[device] < wanted[at]) continue;
    if (some_way(free, wanted, at + 1, used | 1U << device)) return true;
  }
  return false;
}

class Books {
 public:
  Books() {
    for (int i = 0; i < hosts; ++i) {
      Host host;
      host.devices = devices;
      host.cpu_milli = host.memory_mib = uncounted;
      capacity.add_host(host);
    }
  }
  bool possible(const std::vector<int64_t>& wanted) const {
    return std::ranges::any_of(free, [&](const auto& host) { return some_way(host, wanted); });
  }
  // Every task has all its parts, on distinct devices of one host, and no
  // device holds too much.
  void take(const Placement& placement, const Shape& shape) {
    std::map<int, std::vector<int64_t>> given;
    std::map<int, std::set<int>> where, on;
    for (const Slot& slot : placement) {
      given[slot.task].push_back(slot.gpu_milli);
      EXPECT_TRUE(where[slot.task].insert(slot.device).second) << "a device twice";
      on[slot.task].insert(static_cast<int>(slot.host));
      free[slot.host][static_cast<size_t>(slot.device)] -= slot.gpu_milli;
      EXPECT_GE(free[slot.host][static_cast<size_t>(slot.device)], 0);
    }
    ASSERT_EQ(given.size(), static_cast<size_t>(shape.tasks));
    for (auto& [task, milli] : given) {
      std::ranges::sort(milli, std::greater<>());
      ASSERT_EQ(milli.size(), static_cast<size_t>(shape.devices()));
      for (int i = 0; i < shape.devices(); ++i) {
        EXPECT_EQ(milli[static_cast<size_t>(i)], shape.part(i));
      }
      EXPECT_EQ(on[task].size(), 1u) << "a task over several hosts";
    }
    capacity.take(placement, shape);
    running.emplace_back(placement, shape);
  }
  void give_back(size_t which) {
    const auto [placement, shape] = running[which];
    running.erase(running.begin() + static_cast<ptrdiff_t>(which));
    for (const Slot& slot : placement) {
      free[slot.host][static_cast<size_t>(slot.device)] += slot.gpu_milli;
    }
    capacity.give_back(placement, shape);
  }

  Capacity capacity;
  std::vector<std::pair<Placement, Shape>> running;
  std::vector<std::vector<int>> free =
      std::vector<std::vector<int>>(hosts, std::vector<int>(devices, static_cast<int>(whole_gpu)));
};

TEST(JobsParts, ATaskIsPlacedWhereverSomeWayExists) {
  std::mt19937 random(3);
  Books books;
  int placed = 0, refused = 0;
  for (int step = 0; step < 6000; ++step) {
    if (!books.running.empty() && random() % 5 < 2) {
      books.give_back(random() % books.running.size());
    }
    std::vector<int64_t> wanted(2 + random() % 3);
    for (int64_t& milli : wanted) milli = 100 * static_cast<int64_t>(1 + random() % 10);
    wanted.back() = std::min<int64_t>(wanted.back(), 900);
    const Shape shape = parts(wanted);
    const auto placement = books.capacity.find(shape);
    ASSERT_EQ(placement.has_value(), books.possible(wanted)) << "step " << step;
    EXPECT_EQ(books.capacity.room(shape), placement.has_value());
    (placement ? placed : refused) += 1;
    if (placement) books.take(*placement, shape);
    books.capacity.verify();
  }
  EXPECT_GT(placed, 500);
  EXPECT_GT(refused, 500);
}

TEST(JobsParts, AGangHasEveryTaskWholeOrNone) {
  std::mt19937 random(4);
  Books books;
  int placed = 0;
  for (int step = 0; step < 2000; ++step) {
    while (!books.running.empty() && random() % 3 != 0) {
      books.give_back(random() % books.running.size());
    }
    const int64_t half = 100 * static_cast<int64_t>(1 + random() % 9);
    const Shape shape = parts({whole_gpu, half}, static_cast<int>(1 + random() % 4));
    const auto placement = books.capacity.find(shape);
    if (!placement) continue;
    ++placed;
    books.take(*placement, shape);
    books.capacity.verify();
  }
  EXPECT_GT(placed, 500);
}

// Eight GPUs that MIG divides by seven are more devices than a word has bits.
TEST(JobsParts, AHostMayHaveManyDevices) {
  Capacity capacity;
  Host host;
  host.devices = max_devices;
  host.cpu_milli = host.memory_mib = uncounted;
  capacity.add_host(host);
  capacity.set_device_open(0, 40, false);
  capacity.set_device_open(0, 63, false);
  std::set<int> given;
  const auto take = [&](const Shape& shape) {
    const auto found = capacity.find(shape);
    if (!found) return false;
    for (const Slot& slot : *found) EXPECT_TRUE(given.insert(slot.device).second);
    capacity.take(*found, shape);
    capacity.verify();
    return true;
  };
  Shape wide;
  wide.task = {50 * whole_gpu, 0, 0};
  EXPECT_TRUE(take(wide));
  EXPECT_TRUE(take(parts({1000, 700, 700})));
  Shape half;
  half.task = {600, 0, 0};
  half.tasks = 9;
  EXPECT_TRUE(take(half));
  half.tasks = 1;
  EXPECT_FALSE(take(half));
  EXPECT_EQ(given.size(), 62U);
  EXPECT_FALSE(given.contains(40) || given.contains(63));
  capacity.set_device_open(0, 63, true);
  EXPECT_TRUE(take(half));
  EXPECT_TRUE(given.contains(63));
  EXPECT_THROW(capacity.add_host({.name = "more", .devices = max_devices + 1}), Error);
}

TEST(JobsParts, OnlyWholeDevicesAreAskedForAsEver) {
  EXPECT_FALSE(parts({1000, 1000}).mixed());
  EXPECT_EQ(parts({1000, 1000}).task.gpu_milli, 2000);
  EXPECT_EQ(parts({250, 1000, 500}), parts({1000, 500, 250}));
  EXPECT_EQ(parts({500, 500}).devices(), 2);
}

TEST(JobsParts, PartsThatDoNotMakeUpATaskAreRefused) {
  Snapshot snapshot;
  const ProjectId project = snapshot.add_project({});
  const auto submit = [&](const Shape& shape) {
    auto spec = std::make_shared<JobSpec>();
    spec->project = project;
    spec->shape = shape;
    snapshot.submit(spec);
  };
  submit(parts({500, 500}));
  Shape unsorted = parts({700, 500});
  std::swap(unsorted.parts[0], unsorted.parts[1]);
  Shape wrong_sum = parts({700, 500});
  wrong_sum.task.gpu_milli = 1000;
  Shape too_much = parts({700, 500});
  too_much.parts[0] = 1001;
  too_much.task.gpu_milli = 1501;
  for (const Shape& shape : {unsorted, wrong_sum, too_much}) EXPECT_THROW(submit(shape), Error);
}

// A failure tells only of what needs as much of every device.
TEST(JobsParts, AFailedSearchDoesNotHoldUpWhatNeedsLess) {
  Snapshot snapshot;
  Host host;
  host.devices = 2;
  snapshot.add_host(host);
  const ProjectId project = snapshot.add_project({});
  const auto submit = [&](const Shape& shape) {
    auto spec = std::make_shared<JobSpec>();
    spec->project = project;
    spec->shape = shape;
    return snapshot.submit(spec);
  };
  for (int i = 0; i < 2; ++i) submit(parts({600, 400}));
  apply(snapshot, decide(snapshot, {}));
  ASSERT_EQ(snapshot.waiting().size(), 0u);
  EXPECT_EQ(snapshot.capacity().gpu_free(), 0);
  snapshot.end(1, true);
  const JobId whole = submit({1, {1000, 0, 0}, true, {}});
  const JobId smaller = submit(parts({400, 300, 300}));
  const JobId fits = submit(parts({600, 400}));
  apply(snapshot, decide(snapshot, {}));
  snapshot.verify();
  EXPECT_EQ(snapshot.jobs().at(whole).state, JobState::waiting);
  EXPECT_EQ(snapshot.jobs().at(smaller).state, JobState::waiting);
  EXPECT_EQ(snapshot.jobs().at(fits).state, JobState::running);
}

std::vector<JobRequest> read(const std::string& gpus) {
  return read_job_file("command: [a]\ngpus: " + gpus + "\n", "job.yaml", "/tmp");
}

TEST(JobsParts, AJobFileListsThem) {
  const JobRequest request = read("[0.5, 1, 0.25]")[0];
  ASSERT_EQ(request.gpu_parts.size(), 3u);
  EXPECT_EQ(request.gpu_parts[2].gpu_milli, 250);
  EXPECT_EQ(request.gpu_milli, 1750);
  EXPECT_TRUE(shares_device(request));
  EXPECT_EQ(request_from_json(to_json(request)), request);
  const JobRequest memory = read("[10GiB, 0.5]")[0];
  EXPECT_EQ(memory.gpu_parts[0].gpu_mib, 10'240);
  EXPECT_EQ(request_from_json(to_json(memory)), memory);
  EXPECT_EQ(read("[0.5]")[0].gpu_milli, 500);
  EXPECT_TRUE(read("[0.5]")[0].gpu_parts.empty());
  EXPECT_FALSE(shares_device(read("[1, 1]")[0]));
}

TEST(JobsParts, AJobFileIsToldWhatIsWrongWithThem) {
  const std::string many = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,0.5]";
  for (const std::string& gpus : {std::string("[0.5, 2]"), std::string("[0.5, 0]"),
                                  std::string("[0.5, half]"), std::string("[]"), many}) {
    EXPECT_THROW(read(gpus), Error) << gpus;
  }
  JobRequest request = read("[0.5, 1]")[0];
  request.gpu_milli = 1000;
  EXPECT_FALSE(problems_of(request).empty());
  // The part that is wrong is told, not that the sum then differs.
  request.gpu_parts[1].gpu_milli = 2000;
  EXPECT_EQ(problems_of(request).size(), 1U);
}

TEST(JobsParts, TheJournalKeepsThem) {
  JobSpec spec;
  spec.shape = parts({1000, 500}, 2);
  const auto line = nlohmann::json::parse(submit_line(1, spec));
  EXPECT_EQ(spec_from(line.at("submit")).shape, spec.shape);
}

}  // namespace
}  // namespace dais::jobs
