#include "train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "train/crc32c.h"

namespace dais::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kPrefix = "update-";
constexpr const char* kState = "state.safetensors";
constexpr const char* kFacts = "facts.json";
constexpr const char* kBest = "best.json";
constexpr const char* kWriting = ".writing";
constexpr const char* kRemoving = ".removing";

/// The whole file as text; `invalid_model` when it is larger than facts ever are.
std::string read_text(const fs::path& path) {
  constexpr size_t kLargest = size_t{64} << 20;
  const auto file = MappedFile::open(path);
  if (file->bytes().size() > kLargest)
    throw Error(Code::invalid_model, "the file is too large", path.string());
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

void write_durably(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  file.commit(true);
}

/// Puts a finished folder in its place, in exchange for one that is there.
void move_into_place(const fs::path& from, const fs::path& to) {
  const bool there = fs::exists(to);
  const unsigned flags = there ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) != 0)
    throw Error(Code::unavailable, "cannot put the checkpoint in place", to.string());
  if (there) fs::remove_all(from);
}

}  // namespace

CheckpointFolder::CheckpointFolder(fs::path folder, int keep)
    : folder_(std::move(folder)), keep_(keep) {
  if (keep_ == kReadOnly) return;
  std::error_code problem;
  fs::create_directories(folder_, problem);
  if (problem)
    throw Error(Code::unavailable, "cannot create the folder: " + problem.message(),
                folder_.string());
  fs::remove_all(folder_ / kWriting, problem);
  fs::remove_all(folder_ / kRemoving, problem);
}

fs::path CheckpointFolder::place(int64_t update) const {
  char name[32];
  std::snprintf(name, sizeof name, "%s%09lld", kPrefix.data(), static_cast<long long>(update));
  return folder_ / name;
}

void CheckpointFolder::write(const Checkpoint& checkpoint) {
  const fs::path unfinished = folder_ / kWriting;
  std::error_code problem;
  fs::remove_all(unfinished, problem);
  try {
    fs::create_directory(unfinished);
    write_safetensors(unfinished / kState, checkpoint.tensors);
    json facts = json::parse(checkpoint.facts);
    facts["update"] = checkpoint.update;
    facts["state_crc32c"] = crc32c(MappedFile::open(unfinished / kState)->bytes());
    write_durably(unfinished / kFacts, facts.dump(2) + "\n");
    move_into_place(unfinished, place(checkpoint.update));
    sync_folder(folder_);
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(unfinished, problem);
    const bool full = error.code() == std::errc::no_space_on_device;
    throw Error(full ? Code::exhausted : Code::unavailable, error.code().message(),
                folder_.string());
  } catch (...) {
    fs::remove_all(unfinished, problem);
    throw;
  }
  drop_old();
}

void CheckpointFolder::set_best(int64_t update, double score) {
  write_durably(folder_ / kBest, json{{"update", update}, {"score", score}}.dump() + "\n");
  drop_old();
}

std::optional<std::pair<int64_t, double>> CheckpointFolder::best() const {
  if (!fs::exists(folder_ / kBest)) return std::nullopt;
  const json text = json::parse(read_text(folder_ / kBest), nullptr, false);
  if (!text.is_object() || !text.contains("update") || !text["update"].is_number_integer() ||
      !text.contains("score") || !text["score"].is_number())
    return std::nullopt;
  return std::pair(text["update"].get<int64_t>(), text["score"].get<double>());
}

std::vector<int64_t> CheckpointFolder::updates() const {
  std::vector<int64_t> out;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder_, problem)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    int64_t update = 0;
    const char *begin = name.data() + kPrefix.size(), *end = name.data() + name.size();
    if (const auto parsed = std::from_chars(begin, end, update); parsed.ptr == end && begin != end)
      out.push_back(update);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Checkpoint CheckpointFolder::read(int64_t update) const {
  const fs::path from = place(update);
  Checkpoint out;
  out.facts = read_text(from / kFacts);
  const json facts = json::parse(out.facts, nullptr, false);
  const auto damaged = [&](const char* problem) {
    return Error(Code::invalid_model, problem, from.string(), "Use an older checkpoint");
  };
  if (!facts.is_object() || !facts.contains("update") || !facts["update"].is_number_integer() ||
      !facts.contains("state_crc32c") || !facts["state_crc32c"].is_number_unsigned())
    throw damaged("the checkpoint's facts.json is damaged");
  out.update = facts["update"].get<int64_t>();
  const auto state = MappedFile::open(from / kState);
  if (crc32c(state->bytes()) != facts["state_crc32c"].get<uint64_t>())
    throw damaged("the checkpoint's tensors are not what was written");
  out.tensors = read_safetensors(from / kState).tensors;
  return out;
}

std::optional<Checkpoint> CheckpointFolder::newest(
    const std::function<void(const Error&)>& report) const {
  auto all = updates();
  for (auto update = all.rbegin(); update != all.rend(); ++update) {
    try {
      return read(*update);
    } catch (const Error& error) {
      if (report) report(error);
    }
  }
  return std::nullopt;
}

/// Under another name first, so that no half-removed folder ever passes for a checkpoint.
void CheckpointFolder::remove(int64_t update) {
  std::error_code problem;
  fs::remove_all(folder_ / kRemoving, problem);
  fs::rename(place(update), folder_ / kRemoving, problem);
  if (!problem) fs::remove_all(folder_ / kRemoving, problem);
}

void CheckpointFolder::drop_old() {
  auto all = updates();
  const auto kept = best();
  const size_t surplus =
      all.size() > static_cast<size_t>(keep_) ? all.size() - static_cast<size_t>(keep_) : 0;
  for (size_t i = 0; i < surplus; ++i)
    if (!kept || all[i] != kept->first) remove(all[i]);
}

}  // namespace dais::train
