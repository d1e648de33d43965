// loader_bench [SIZE [SAMPLES]]: packs JPEGs of SIZE x SIZE into shards in a temporary folder, then
// prints samples a second on one core for each kind of augmentation, and what decoding beside a
// step of computation costs with and without worker threads.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/threads.h"
#include "data/image.h"
#include "data/loader.h"
#include "data/shards.h"

namespace {

// A program of its own, which the library never sees.
using namespace dais;        // NOLINT(google-build-using-namespace)
using namespace dais::data;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Smooth colours with noise: as large as JPEGs of photographs.
Image picture(int64_t size, int64_t number) {
  Image image{size, size, 3, {}};
  Draws draws(Purpose::sample, 1, 0, number);
  const double phase = draws.uniform(0, 6);
  for (int64_t y = 0; y < size; ++y)
    for (int64_t x = 0; x < size; ++x)
      for (int k = 0; k < 3; ++k) {
        const double at = static_cast<double>(x + y * (k + 1)) * 6 / static_cast<double>(size);
        const double value = 128 + 80 * std::sin(at + phase) + 12 * draws.uniform(-1, 1);
        image.pixels.push_back(static_cast<uint8_t>(value));
      }
  return image;
}

void write_pictures(const fs::path& folder, int64_t size, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const fs::path place = folder / ("class" + std::to_string(i % 10));
    fs::create_directories(place);
    write_file(place / (std::to_string(i) + ".jpg"), encode_jpeg(picture(size, i), 90));
  }
}

struct Kind {
  const char* name;
  Augment augment;
};

std::vector<Kind> kinds(int64_t size) {
  std::vector<Kind> out{{"decode only", {}},
                        {"flip, crop", {}},
                        {"+ colour", {}},
                        {"+ rotate, scale", {}},
                        {"+ noise", {}}};
  for (size_t i = 1; i < out.size(); ++i) {
    Augment& augment = out[i].augment;
    augment.flip_horizontal = true;
    augment.pad = size / 8;
    if (i >= 2) augment.hue_sd = augment.saturation_sd = augment.value_sd = 0.05;
    if (i >= 2) augment.brightness = augment.contrast = 0.2;
    if (i >= 3) augment.rotate_deg = 10;
    if (i >= 3) augment.scale_sd = 0.1;
    if (i >= 4) augment.noise_sd = 2;
  }
  return out;
}

void time_kinds(const DatasetPtr& dataset, int64_t size) {
  set_team_size(1);
  for (const Kind& kind : kinds(size)) {
    LoaderOptions options;
    options.batch = 64;
    options.workers = 0;
    options.augment = kind.augment;
    Loader loader(dataset, options);
    for (int i = 0; i < 8; ++i) loader.next();
    const auto start = Clock::now();
    int64_t samples = 0;
    while (seconds_since(start) < 1.5) samples += loader.next().size();
    const double rate = static_cast<double>(samples) / seconds_since(start);
    std::printf("%-18s %9.0f samples/s on one core, %6.1f us a sample\n", kind.name, rate,
                1e6 / rate);
  }
}

/// Computation on the whole pool, `regions` times about `us` microseconds.
void step(int regions, double us) {
  for (int region = 0; region < regions; ++region)
    parallel_for(team_size(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const auto rounds = static_cast<int64_t>(us * 250);
        double value = 1;
        for (int64_t i = 0; i < rounds; ++i) value = value * 0.999999 + 1e-7;
        if (value == 42) std::abort();
      }
    });
}

void time_steps(const DatasetPtr& dataset, int64_t size) {
  set_team_size(usable_cores());
  const auto run = [&](int workers, bool load) {
    LoaderOptions options;
    options.batch = 64;
    options.workers = workers;
    options.augment = kinds(size)[1].augment;
    Loader loader(dataset, options);
    loader.next();
    constexpr int kSteps = 24;
    const auto start = Clock::now();
    for (int i = 0; i < kSteps; ++i) {
      if (load) loader.next();
      step(200, 200);
    }
    return seconds_since(start) / kSteps * 1e3;
  };
  run(0, false);
  const double alone = run(0, false);
  std::printf("\nstep of 200 regions on %d threads, batch 64 (flip, crop):\n", team_size());
  std::printf("%-34s %8.2f ms\n", "no loading", alone);
  for (const int workers : {0, 1, 2}) {
    const double ms = run(workers, true);
    const std::string name =
        workers == 0 ? "on the pool between steps" : std::to_string(workers) + " worker threads";
    std::printf("%-34s %8.2f ms  %+6.1f %%\n", name.c_str(), ms, (ms / alone - 1) * 100);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t size = argc > 1 ? std::atoll(argv[1]) : 32;
  const int64_t count = argc > 2 ? std::atoll(argv[2]) : 2000;
  std::string pattern = (fs::temp_directory_path() / "loader_bench_XXXXXX").string();
  if (size < 8 || count < 64 || mkdtemp(pattern.data()) == nullptr) return 2;
  const fs::path folder = pattern;
  write_pictures(folder / "files", size, count);
  build_shards(*open_dataset(folder / "files"), folder / "shards", {});
  for (const char* kind : {"files", "shards"}) {
    const auto dataset = open_dataset(folder / kind);
    std::printf("%s: %lld JPEGs of %lldx%lld, %.0f bytes each\n", kind,
                static_cast<long long>(count), static_cast<long long>(size),
                static_cast<long long>(size), static_cast<double>(dataset->raw(0).bytes.size()));
    time_kinds(dataset, size);
  }
  time_steps(open_dataset(folder / "shards"), size);
  fs::remove_all(folder);
  return 0;
}
