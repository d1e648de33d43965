#include "data/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace dais::data {

namespace fs = std::filesystem;

Blob blob_of(std::vector<uint8_t> bytes) {
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  return {Bytes(*owner), owner};
}

std::vector<uint8_t> inflate(Bytes compressed, bool gzip, size_t max_bytes,
                             const std::string& where) {
  z_stream stream{};
  constexpr int kWindowBits = 15, kGzip = 16;
  if (inflateInit2(&stream, gzip ? kWindowBits + kGzip : -kWindowBits) != Z_OK)
    throw Error(Code::exhausted, "no memory to decompress", where);
  const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream, inflateEnd);
  std::vector<uint8_t> out;
  constexpr size_t kPiece = size_t{1} << 18;
  size_t done = 0;
  const uint8_t* next = compressed.data();
  size_t left = compressed.size();
  for (;;) {
    if (stream.avail_in == 0 && left > 0) {
      stream.avail_in = static_cast<uInt>(std::min<size_t>(left, size_t{1} << 30));
      stream.next_in = const_cast<Bytef*>(next);
      next += stream.avail_in;
      left -= stream.avail_in;
    }
    // Memory follows the data that really comes, so that a header cannot ask for it.
    if (done == out.size()) out.resize(std::min(max_bytes, std::max(kPiece, done * 2)));
    if (done == out.size())
      throw Error(Code::exhausted,
                  "decompresses to more than " + std::to_string(max_bytes) + " bytes", where);
    stream.next_out = out.data() + done;
    stream.avail_out = static_cast<uInt>(std::min<size_t>(out.size() - done, size_t{1} << 30));
    const auto room = stream.avail_out;
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    if (status == Z_STREAM_END) {
      // Several gzip members in one file are one stream.
      if (!gzip || (stream.avail_in == 0 && left == 0)) break;
      if (inflateReset(&stream) != Z_OK) break;
      continue;
    }
    if (status != Z_OK || (stream.avail_in == 0 && left == 0 && room != 0 && stream.avail_out != 0))
      throw Error(Code::invalid_argument, "the compressed data is broken or ends early", where);
  }
  out.resize(done);
  return out;
}

Blob load_file(const fs::path& path, size_t max_bytes) {
  const auto file = MappedFile::open(path);
  const Bytes bytes = file->bytes();
  if (bytes.size() < 18 || bytes[0] != 0x1f || bytes[1] != 0x8b) return {bytes, file};
  return blob_of(inflate(bytes, true, max_bytes, path.string()));
}

std::vector<uint8_t> read_file(const fs::path& path) {
  const auto fail = [&](const char* action) {
    throw Error(errno == ENOENT ? Code::not_found : Code::unavailable,
                std::string("cannot ") + action + " the file: " + std::strerror(errno),
                path.string());
  };
  struct Closing {
    int number;
    ~Closing() {
      if (number >= 0) ::close(number);
    }
  } const file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) fail("open");
  struct stat status {};
  if (::fstat(file.number, &status) != 0) fail("look at");
  if (!S_ISREG(status.st_mode)) throw Error(Code::not_found, "not a regular file", path.string());
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.number, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read");
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

Listing list_files(const fs::path& folder, const std::function<bool(std::string_view)>& wanted) {
  Listing listing;
  std::error_code problem;
  constexpr int kDeepest = 32;
  const std::string base = folder.string();
  fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink,
                                      problem);
  if (problem) throw Error(Code::not_found, "cannot list the folder: " + problem.message(), base);
  for (; at != fs::recursive_directory_iterator(); at.increment(problem)) {
    if (problem) throw Error(Code::unavailable, "cannot list: " + problem.message(), base);
    const std::string path = at->path().string();
    const std::string relative = path.substr(base.size() + (base.ends_with('/') ? 0 : 1));
    const bool hidden = relative[relative.rfind('/') + 1] == '.';
    std::error_code ignored;
    const bool directory = at->is_directory(ignored);
    bool skipped = hidden || (directory && at.depth() >= kDeepest);
    if (!skipped && at->is_symlink(ignored)) {
      try {
        confined_path(folder, relative);
      } catch (const Error&) {
        listing.leaving.push_back(relative);
        skipped = true;
      }
    }
    if (skipped && directory) at.disable_recursion_pending();
    if (!skipped && !directory && wanted(relative)) listing.files.push_back(relative);
  }
  std::sort(listing.files.begin(), listing.files.end());
  return listing;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return out;
}

std::string extension_of(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? "" : lower(name.substr(dot + 1));
}

bool is_image_name(std::string_view name) {
  constexpr std::array<std::string_view, 9> known = {"jpg", "jpeg", "png", "webp", "bmp",
                                                     "ppm", "pgm",  "pnm", "pbm"};
  return std::find(known.begin(), known.end(), extension_of(name)) != known.end();
}

bool is_audio_name(std::string_view name) {
  constexpr std::array<std::string_view, 4> known = {"wav", "flac", "ogg", "oga"};
  return std::find(known.begin(), known.end(), extension_of(name)) != known.end();
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::vector<std::string> read_names(const fs::path& path) {
  const Blob file = load_file(path, size_t{64} << 20);
  std::vector<std::string> names;
  for (const auto line : lines_of(file.text()))
    if (const auto name = trimmed(line); !name.empty()) names.emplace_back(name);
  return names;
}

void add_finding(Description& description, std::string what, std::vector<std::string> examples) {
  if (examples.empty()) return;
  const auto count = static_cast<int64_t>(examples.size());
  constexpr size_t kShown = 5;
  if (examples.size() > kShown) examples.resize(kShown);
  description.findings.push_back({std::move(what), count, std::move(examples)});
}

void find_empty_classes(Description& description, const std::vector<int64_t>& labels) {
  std::vector<bool> used(static_cast<size_t>(description.class_count));
  for (const int64_t label : labels)
    if (label >= 0 && label < description.class_count) used[static_cast<size_t>(label)] = true;
  std::vector<std::string> empty;
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      empty.push_back(i < description.classes.size() ? description.classes[i] : std::to_string(i));
  add_finding(description, "class without samples", std::move(empty));
}

}  // namespace dais::data
