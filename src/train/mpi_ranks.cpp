#include "train/mpi_ranks.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace dais::train {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The part of Open MPI's binary interface (major version 4) that is used here.
struct Mpi {
  static constexpr const char* kFile = "libmpi.so.40";
  static constexpr int kSuccess = 0, kThreadFunneled = 1;
  int (*init)(int*, char***, int, int*) = nullptr;
  int (*finalize)() = nullptr;
  int (*rank)(void*, int*) = nullptr;
  int (*size)(void*, int*) = nullptr;
  int (*start_all_reduce)(const void*, void*, int, void*, void*, void*, void**) = nullptr;
  int (*test)(void**, int*, void*) = nullptr;
  void *world = nullptr, *f32 = nullptr, *sum = nullptr;
  /// What MPI_IN_PLACE is there.
  static const void* in_place() { return reinterpret_cast<const void*>(1); }

  Mpi() {
    void* library = dlopen(kFile, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
      throw Error(Code::unavailable, std::string(kFile) + " cannot be opened", "",
                  "Install the packages libopenmpi3 and openmpi-bin");
    const auto find = [&](auto& place, const char* name) {
      place = reinterpret_cast<std::remove_reference_t<decltype(place)>>(dlsym(library, name));
      if (!place)
        throw Error(Code::unavailable, std::string(kFile) + " has no " + name, "",
                    "Use Open MPI 4");
    };
    find(init, "MPI_Init_thread");
    find(finalize, "MPI_Finalize");
    find(rank, "MPI_Comm_rank");
    find(size, "MPI_Comm_size");
    find(start_all_reduce, "MPI_Iallreduce");
    find(test, "MPI_Test");
    find(world, "ompi_mpi_comm_world");
    find(f32, "ompi_mpi_float");
    find(sum, "ompi_mpi_op_sum");
  }
};

/// How many sums each rank has begun and when it last gave a sign of life, in a file that all ranks
/// map.
class ProgressBoard {
 public:
  ProgressBoard(int rank, int ranks) : rank_(rank), ranks_(ranks) {
    const char* path = std::getenv(kProgressVariable);
    const int file = path ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    const size_t bytes = static_cast<size_t>(ranks) * sizeof(Entry);
    if (::lseek(file, 0, SEEK_END) >= static_cast<off_t>(bytes)) {
      void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (mapped != MAP_FAILED) entries_ = static_cast<Entry*>(mapped);
    }
    ::close(file);
    beat();
  }
  ~ProgressBoard() {
    if (entries_) ::munmap(entries_, static_cast<size_t>(ranks_) * sizeof(Entry));
  }
  ProgressBoard(const ProgressBoard&) = delete;

  void step() {
    if (entries_) entries_[rank_].begun.fetch_add(1);
  }
  void beat() {
    if (entries_) entries_[rank_].seen_ms.store(now_ms());
  }
  /// "rank 1, rank 3": those that have begun fewer sums than this one, or lie still altogether.
  std::string behind() const {
    std::string out;
    if (!entries_) return out;
    const int64_t mine = entries_[rank_].begun.load(), still = now_ms() - kStillMs;
    for (int rank = 0; rank < ranks_; ++rank)
      if (entries_[rank].begun.load() < mine || entries_[rank].seen_ms.load() < still)
        out += (out.empty() ? "rank " : ", rank ") + std::to_string(rank);
    return out;
  }

 private:
  struct Entry {
    std::atomic<int64_t> begun, seen_ms;
  };
  static_assert(std::atomic<int64_t>::is_always_lock_free);
  static_assert(sizeof(Entry) == kProgressBytes);
  static constexpr int64_t kStillMs = 3000;

  /// The same clock in all processes of a machine.
  static int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
        .count();
  }

  int rank_, ranks_;
  Entry* entries_ = nullptr;
};

class MpiRanks : public RankGroup {
 public:
  MpiRanks() : thread_([this] { talk(); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return size_ > 0 || failed_; });
    if (failed_) {
      lock.unlock();
      thread_.join();
      throw Error(Code::unavailable, "MPI does not start", "", "Start the ranks with mpirun");
    }
    board_ = std::make_unique<ProgressBoard>(rank_, size_);
  }
  ~MpiRanks() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void start_sum(std::span<float> elements) override {
    board_->step();
    {
      const std::lock_guard lock(mutex_);
      DAIS_CHECK(elements.size() <= size_t{std::numeric_limits<int>::max()});
      jobs_[elements.data()] = {elements, next_++};
    }
    changed_.notify_all();
  }

  void finish(const float* elements) override {
    std::unique_lock lock(mutex_);
    const auto start = Clock::now();
    auto told = start;
    const auto limit = rank_ == 0 ? kPatience : kPatienceWithRank0;
    const auto done = [&] { return jobs_.at(elements).done; };
    while (!finished_.wait_for(lock, 500ms, done)) {
      const auto now = Clock::now();
      if (now - told < limit) continue;
      told = now;
      const std::string behind = board_->behind();
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start).count();
      if (!behind.empty())
        std::fprintf(stderr, "dais: rank %d has been waiting for %s for %lld s\n", rank_,
                     behind.c_str(), static_cast<long long>(seconds));
    }
    jobs_.erase(elements);
  }

 private:
  /// Rank 0 alone validates and writes checkpoints, so that others wait for it with reason.
  static constexpr auto kPatience = 4s, kPatienceWithRank0 = 60s;
  static constexpr auto kBeat = 500ms;
  /// Between two looks at sums under way: short against a step, long against a look.
  static constexpr auto kPause = 30us;

  struct Job {
    std::span<float> elements;
    int64_t order = 0;
    bool done = false;
    void* request = nullptr;  ///< nullptr: not begun; only the talking thread looks at it
  };

  /// All calls of MPI are made here.
  void talk() {
    if (!begin()) return;
    std::vector<Job*> open;
    std::unique_lock lock(mutex_);
    while (true) {
      if (board_) board_->beat();
      if (!changed_.wait_for(lock, kBeat, [&] { return closing_ || find_open(open); })) continue;
      if (closing_) break;
      lock.unlock();
      start_all(open);
      const bool any = test_all(open);
      if (!any) std::this_thread::sleep_for(kPause);
      lock.lock();
      for (Job* job : open) job->done = true;
      if (any) finished_.notify_all();
    }
    mpi_->finalize();
  }

  bool begin() {
    int given = 0, rank = 0, size = 0;
    bool good = false;
    try {
      mpi_ = std::make_unique<Mpi>();
      good = mpi_->init(nullptr, nullptr, Mpi::kThreadFunneled, &given) == Mpi::kSuccess &&
             mpi_->rank(mpi_->world, &rank) == Mpi::kSuccess &&
             mpi_->size(mpi_->world, &size) == Mpi::kSuccess;
    } catch (const Error& error) {
      std::fprintf(stderr, "dais: %s\n", error.what());
    }
    {
      const std::lock_guard lock(mutex_);
      rank_ = rank;
      size_ = good ? size : 0;
      failed_ = !good;
    }
    changed_.notify_all();
    return good;
  }

  /// The jobs that are not done, in the order in which they were asked for, which is the same on
  /// all ranks. They stay where they are until they are done.
  bool find_open(std::vector<Job*>& open) {
    open.clear();
    for (auto& [data, job] : jobs_)
      if (!job.done) open.push_back(&job);
    std::sort(open.begin(), open.end(),
              [](const Job* a, const Job* b) { return a->order < b->order; });
    return !open.empty();
  }

  void start_all(const std::vector<Job*>& open) {
    for (Job* job : open)
      if (!job->request)
        check(mpi_->start_all_reduce(Mpi::in_place(), job->elements.data(),
                                     static_cast<int>(job->elements.size()), mpi_->f32, mpi_->sum,
                                     mpi_->world, &job->request));
  }

  /// Leaves those that have ended just now.
  bool test_all(std::vector<Job*>& open) {
    std::erase_if(open, [&](Job* job) {
      int ready = 0;
      check(mpi_->test(&job->request, &ready, nullptr));
      return ready == 0;
    });
    return !open.empty();
  }

  /// MPI ends the job itself on errors unless told otherwise.
  static void check(int code) { DAIS_CHECK(code == Mpi::kSuccess); }

  std::unique_ptr<Mpi> mpi_;
  int rank_ = 0, size_ = 0;
  bool failed_ = false, closing_ = false;
  std::unique_ptr<ProgressBoard> board_;
  std::mutex mutex_;
  std::condition_variable changed_, finished_;
  std::map<const float*, Job> jobs_;
  int64_t next_ = 0;
  std::thread thread_;
};

}  // namespace

bool started_as_rank() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

std::unique_ptr<RankGroup> open_mpi_ranks() { return std::make_unique<MpiRanks>(); }

}  // namespace dais::train
