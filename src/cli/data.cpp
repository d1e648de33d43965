#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "cli/data_report.h"
#include "cli/source_flags.h"
#include "data/files.h"
#include "data/shards.h"

namespace dais::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct Options {
  SourceFlags flags;
  std::string path, output, html, encoding = "keep";
  int quality = 90;
  double val = 0, test = 0;
  uint64_t seed = 0, shard_mb = 256;
  bool json = false, no_duplicates = false;
};

/// "done of all" on one line of the terminal that is written over.
std::function<void(int64_t, int64_t)> progress(const char* what) {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [what](int64_t done, int64_t all) {
    std::fprintf(stderr, "\r%s %lld of %lld", what, static_cast<long long>(done),
                 static_cast<long long>(all));
    if (done == all) std::fprintf(stderr, "\r\033[K");
  };
}

void print_json(const json& value) {
  std::printf("%s\n", value.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

void build(const Options& options) {
  const auto dataset = data::open_dataset(options.path, options.flags.options());
  constexpr const char* kNames[] = {"keep", "png", "jpg", "pixels"};
  data::BuildOptions how;
  const auto* name = std::find(std::begin(kNames), std::end(kNames), options.encoding);
  if (name == std::end(kNames))
    throw Error(Code::invalid_argument, "there is no encoding '" + options.encoding + "'",
                "--encoding", "Use keep, png, jpg or pixels");
  how.encoding = static_cast<data::Encoding>(name - std::begin(kNames));
  how.resized = !options.flags.size.empty();
  how.quality = options.quality;
  how.shard_bytes = options.shard_mb << 20;
  how.progress = progress("building");
  const data::BuildResult result = data::build_shards(*dataset, options.output, how);
  if (options.json) {
    print_json({{"samples", result.samples},
                {"shards", result.shards},
                {"bytes", result.bytes},
                {"unreadable", result.unreadable.count},
                {"examples", result.unreadable.examples}});
    return;
  }
  std::printf("%lld samples in %lld shards, %.1f MB, in %s\n",
              static_cast<long long>(result.samples), static_cast<long long>(result.shards),
              static_cast<double>(result.bytes) / 1e6, options.output.c_str());
  if (result.unreadable.count == 0) return;
  std::printf("%lld samples were unreadable and are left out:\n",
              static_cast<long long>(result.unreadable.count));
  for (const auto& example : result.unreadable.examples) std::printf("  %s\n", example.c_str());
}

void inspect(const Options& options) {
  const auto dataset = data::open_dataset(options.path, options.flags.options());
  data::InspectionOptions how;
  how.duplicates = !options.no_duplicates;
  how.progress = progress("looking at");
  data::Inspection seen = data::inspect(*dataset, how);
  const fs::path index = fs::path(options.path) / data::kShardIndex;
  if (fs::exists(index)) {
    const auto wrong = data::verify_shards(options.path);
    if (!wrong.empty())
      seen.findings.push_back(
          {"shard whose checksum is wrong",
           static_cast<int64_t>(wrong.size()),
           {wrong.begin(), wrong.begin() + std::min<int64_t>(5, std::ssize(wrong))}});
  }
  if (!options.html.empty()) write_file(options.html, html_report(*dataset, seen));
  if (options.json)
    print_json(json_report(*dataset, seen));
  else
    print_report(*dataset, seen);
}

/// Subset files: which samples of the data belong to a part.
void split(const Options& options) {
  const data::OpenOptions open = options.flags.options();
  const auto dataset = data::open_dataset(options.path, open);
  const double fractions[] = {options.val, options.test};
  const auto parts = data::stratified_parts(*dataset, fractions, options.seed);
  std::error_code problem;
  fs::create_directories(options.output, problem);
  if (problem)
    throw Error(Code::unavailable, "cannot make the folder: " + problem.message(), options.output);
  const fs::path source =
      fs::weakly_canonical(options.path).lexically_relative(fs::weakly_canonical(options.output));
  json written = json::object();
  constexpr const char* kNames[] = {"train", "val", "test"};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    const fs::path file = fs::path(options.output) / (std::string(kNames[i]) + ".json");
    const json content{{"dais_subset", 1},      {"source", source.string()},
                       {"format", open.format}, {"part", open.part},
                       {"seed", options.seed},  {"samples", dataset->size()},
                       {"indices", parts[i]}};
    write_file(file, content.dump() + "\n");
    written[kNames[i]] = {{"file", file.string()}, {"samples", parts[i].size()}};
  }
  if (options.json) return print_json(written);
  for (const auto& [name, part] : written.items())
    std::printf("%-5s %8lld samples  %s\n", name.c_str(),
                static_cast<long long>(part["samples"].get<int64_t>()),
                part["file"].get<std::string>().c_str());
}

CLI::App* add(CLI::App& parent, const char* name, const char* about,
              const std::shared_ptr<Options>& options) {
  auto* command = parent.add_subcommand(name, about);
  command->add_option("path", options->path, "Folder or file of the data")->required();
  options->flags.add(*command);
  command->add_flag("--json", options->json, "One JSON object instead of a table");
  return command;
}

}  // namespace

void add_data(Program& program) {
  auto* data = program.app.add_subcommand("data", "Look at data, split it, pack it into shards");
  data->footer("Example: dais data inspect photos --json");
  data->require_subcommand(1);

  const auto looked = std::make_shared<Options>();
  auto* look =
      add(*data, "inspect", "Counts, classes, mean image, duplicates, unreadable files", looked);
  look->add_option("--html", looked->html, "Also write a report with a picture to this file");
  look->add_flag("--no-duplicates", looked->no_duplicates, "Do not compare contents");
  std::string formats;
  for (const auto& name : data::open_formats()) formats += (formats.empty() ? "" : " ") + name;
  look->footer("Formats: " + formats + "\nExample: dais data inspect photos --size 64x64");
  look->callback([looked] { inspect(*looked); });

  const auto built = std::make_shared<Options>();
  auto* pack = add(*data, "build", "Write tar shards that load fast, with checksums", built);
  pack->add_option("-o,--output", built->output, "Folder of the shards")->required();
  pack->add_option("--encoding", built->encoding, "Of images: keep, png, jpg or pixels");
  pack->add_option("--quality", built->quality, "Of jpg, 1 to 100")->check(CLI::Range(1, 100));
  pack->add_option("--shard-mb", built->shard_mb, "Size of a shard")->check(CLI::Range(1, 8000));
  pack->footer("Example: dais data build photos --size 64x64 -o photos-64");
  pack->callback([built] { build(*built); });

  const auto parted = std::make_shared<Options>();
  auto* part = add(*data, "split", "Draw parts in which every class has its share", parted);
  part->add_option("-o,--output", parted->output, "Folder of train.json, val.json and test.json")
      ->required();
  part->add_option("--val", parted->val, "Share of the validation part")
      ->check(CLI::Range(0.0, 1.0));
  part->add_option("--test", parted->test, "Share of the test part")->check(CLI::Range(0.0, 1.0));
  part->add_option("--seed", parted->seed, "Other seeds draw other parts");
  part->footer("Example: dais data split photos --val 0.1 --test 0.1 -o parts");
  part->callback([parted] { split(*parted); });
}

}  // namespace dais::cli
