#include "backends/cuda/image_cache.h"

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace dais::cuda {
namespace {

constexpr char kMagic[8] = {'d', 'a', 'i', 's', 'g', 'p', 'u', '1'};

struct Header {
  char magic[8];
  uint64_t key_bytes, image_bytes, image_hash;
};

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash ^ (hash >> 29);
}

std::filesystem::path folder() {
  if (const char* named = std::getenv("DAIS_CACHE")) return std::filesystem::path(named) / "cuda";
  if (const char* base = std::getenv("XDG_CACHE_HOME"))
    return std::filesystem::path(base) / "dais" / "cuda";
  if (const char* home = std::getenv("HOME"))
    return std::filesystem::path(home) / ".cache" / "dais" / "cuda";
  return {};
}

std::filesystem::path file_of(const std::string& key) {
  const auto place = folder();
  if (place.empty()) return {};
  char name[40];
  std::snprintf(name, sizeof name, "%016llx.bin", static_cast<unsigned long long>(hash_of(key)));
  return place / name;
}

}  // namespace

std::optional<std::string> cached_image(const std::string& key) noexcept try {
  const auto path = file_of(key);
  if (path.empty() || !std::filesystem::exists(path)) return std::nullopt;
  const auto file = MappedFile::open(path);
  const Bytes bytes = file->bytes();
  Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return std::nullopt;
  const size_t left = bytes.size() - sizeof header;
  if (header.key_bytes != key.size() || header.key_bytes > left ||
      header.image_bytes != left - header.key_bytes)
    return std::nullopt;
  const char* text = reinterpret_cast<const char*>(bytes.data()) + sizeof header;
  if (std::memcmp(text, key.data(), key.size()) != 0) return std::nullopt;
  std::string image(text + key.size(), header.image_bytes);
  if (hash_of(image) != header.image_hash) return std::nullopt;
  return image;
} catch (const std::exception&) {
  return std::nullopt;
}

void keep_image(const std::string& key, const std::string& image) noexcept try {
  const auto path = file_of(key);
  if (path.empty()) return;
  std::filesystem::create_directories(path.parent_path());
  Header header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.key_bytes = key.size();
  header.image_bytes = image.size();
  header.image_hash = hash_of(image);
  AtomicFile file(path);
  file.write({reinterpret_cast<const uint8_t*>(&header), sizeof header});
  file.write({reinterpret_cast<const uint8_t*>(key.data()), key.size()});
  file.write({reinterpret_cast<const uint8_t*>(image.data()), image.size()});
  file.commit();
} catch (const std::exception&) {
  // The next process compiles once more.
}

}  // namespace dais::cuda
