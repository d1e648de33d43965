#include <algorithm>
#include <cstring>

#include "data/readers.h"

namespace dais::data {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& where) {
  throw Error(Code::invalid_argument, "not a readable zip archive: " + what, where);
}

/// Little-endian numbers at checked places.
class Reader {
 public:
  Reader(Bytes bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  uint64_t number(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) refuse("it ends early", where_);
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | bytes_[at + i];
    return value;
  }
  Bytes part(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) refuse("it ends early", where_);
    return bytes_.subspan(at, size);
  }
  size_t size() const { return bytes_.size(); }

 private:
  Bytes bytes_;
  const std::string& where_;
};

constexpr uint64_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50,
                   kEntry = 0x02014b50, kLocal = 0x04034b50, kIn64 = 0xffffffff;

struct Directory {
  size_t at = 0;
  uint64_t count = 0;
};

/// The end record lies in the last 64 KiB, behind it at most a comment.
Directory find_directory(const Reader& in, const std::string& where) {
  constexpr size_t kRecord = 22, kComment = 65535;
  if (in.size() < kRecord) refuse("it ends early", where);
  const size_t last = in.size() - kRecord;
  for (size_t back = 0; back <= std::min(last, kComment); ++back) {
    const size_t at = last - back;
    if (in.number(at, 4) != kEnd) continue;
    Directory found{in.number(at + 16, 4), in.number(at + 10, 2)};
    if (at >= 20 && in.number(at - 20, 4) == kLocator64) {
      const size_t end = in.number(at - 12, 8);
      if (in.number(end, 4) != kEnd64) refuse("its 64-bit directory is not where it says", where);
      found = {in.number(end + 48, 8), in.number(end + 32, 8)};
    }
    return found;
  }
  refuse("it has no directory", where);
}

struct Entry {
  std::string name;
  uint64_t method = 0, packed = 0, size = 0, local = 0, flags = 0;
};

/// Numbers of 64 bits stand in an extra field, in this order, where the short ones are full.
void widen(const Reader& in, size_t extra, size_t length, Entry& entry) {
  for (size_t at = extra; at + 4 <= extra + length;) {
    const uint64_t id = in.number(at, 2), size = in.number(at + 2, 2);
    if (id == 1) {
      size_t next = at + 4;
      for (uint64_t* value : {&entry.size, &entry.packed, &entry.local})
        if (*value == kIn64 && next + 8 <= at + 4 + size) {
          *value = in.number(next, 8);
          next += 8;
        }
    }
    at += 4 + size;
  }
}

Blob member_data(const Blob& file, const Reader& in, const Entry& entry, size_t max_bytes,
                 const std::string& where) {
  if (in.number(entry.local, 4) != kLocal)
    refuse("'" + entry.name + "' is not where it says", where);
  const size_t begin =
      entry.local + 30 + in.number(entry.local + 26, 2) + in.number(entry.local + 28, 2);
  const Bytes packed = in.part(begin, entry.packed);
  if ((entry.flags & 1) != 0) refuse("'" + entry.name + "' is encrypted", where);
  if (entry.method == 0) return {packed, file.owner};
  if (entry.method != 8)
    refuse("'" + entry.name + "' is packed by method " + std::to_string(entry.method), where);
  // One byte more than announced shows a member that holds more.
  if (entry.size >= max_bytes)
    throw Error(Code::exhausted,
                "'" + entry.name + "' takes " + std::to_string(entry.size) +
                    " bytes, the limit is " + std::to_string(max_bytes),
                where);
  auto data = inflate(packed, false, entry.size + 1, where + ": " + entry.name);
  if (data.size() != entry.size)
    refuse("'" + entry.name + "' has another size than it says", where);
  return blob_of(std::move(data));
}

}  // namespace

std::vector<ZipMember> parse_zip(const Blob& file, size_t max_bytes, const std::string& where) {
  const Reader in(file.bytes, where);
  Directory directory = find_directory(in, where);
  std::vector<ZipMember> members;
  size_t at = directory.at, total = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (in.number(at, 4) != kEntry) refuse("its directory is broken", where);
    Entry entry;
    entry.flags = in.number(at + 8, 2);
    entry.method = in.number(at + 10, 2);
    entry.packed = in.number(at + 20, 4);
    entry.size = in.number(at + 24, 4);
    entry.local = in.number(at + 42, 4);
    const size_t name = in.number(at + 28, 2), extra = in.number(at + 30, 2),
                 comment = in.number(at + 32, 2);
    const Bytes text = in.part(at + 46, name);
    entry.name.assign(text.begin(), text.end());
    widen(in, at + 46 + name, extra, entry);
    members.push_back({entry.name, member_data(file, in, entry, max_bytes - total, where)});
    // Members may overlap on purpose: all of them together stay below the limit.
    total += entry.method == 0 ? 0 : members.back().data.bytes.size();
    at += 46 + name + extra + comment;
  }
  return members;
}

}  // namespace dais::data
