#include "data/audio.h"

#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>
#include <numeric>

namespace dais::data {
namespace {

constexpr int64_t kLowestRate = 100, kHighestRate = 1'000'000, kMostChannels = 64;

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(Code::invalid_argument, "unreadable sound: " + reason);
}

/// A file in memory with a reading position, as the library's callbacks want it.
struct Memory {
  Bytes bytes;
  sf_count_t at = 0;

  sf_count_t size() const { return static_cast<sf_count_t>(bytes.size()); }
};

sf_count_t length_of(void* data) { return static_cast<Memory*>(data)->size(); }

sf_count_t seek(sf_count_t offset, int whence, void* data) {
  auto* memory = static_cast<Memory*>(data);
  sf_count_t base = 0;
  if (whence == SEEK_CUR) base = memory->at;
  if (whence == SEEK_END) base = memory->size();
  sf_count_t place = 0;
  if (__builtin_add_overflow(base, offset, &place)) return -1;
  memory->at = std::clamp<sf_count_t>(place, 0, memory->size());
  return memory->at;
}

sf_count_t read_some(void* to, sf_count_t count, void* data) {
  auto* memory = static_cast<Memory*>(data);
  count = std::clamp<sf_count_t>(count, 0, memory->size() - memory->at);
  if (count > 0) std::memcpy(to, memory->bytes.data() + memory->at, static_cast<size_t>(count));
  memory->at += count;
  return count;
}

sf_count_t write_nothing(const void*, sf_count_t, void*) { return 0; }
sf_count_t tell(void* data) { return static_cast<Memory*>(data)->at; }

using File = std::unique_ptr<SNDFILE, int (*)(SNDFILE*)>;

File open_sound(Memory& memory, SF_INFO& info) {
  SF_VIRTUAL_IO io{length_of, seek, read_some, write_nothing, tell};
  return {sf_open_virtual(&io, SFM_READ, &info, &memory), sf_close};
}

bool sane(const SF_INFO& info) {
  return info.samplerate >= kLowestRate && info.samplerate <= kHighestRate && info.channels >= 1 &&
         info.channels <= kMostChannels && info.frames >= 0;
}

}  // namespace

std::optional<SoundHeader> read_sound_header(Bytes file) {
  Memory memory{file};
  SF_INFO info{};
  const File sound = open_sound(memory, info);
  if (!sound || !sane(info)) return std::nullopt;
  return SoundHeader{info.samplerate, info.frames, info.channels};
}

Sound decode_sound(Bytes file, double max_seconds) {
  Memory memory{file};
  SF_INFO info{};
  const File opened = open_sound(memory, info);
  if (!opened) refuse(sf_strerror(nullptr));
  if (!sane(info))
    refuse(std::to_string(info.channels) + " channels at " + std::to_string(info.samplerate) +
           " Hz");
  Sound sound;
  sound.rate = info.samplerate;
  const auto limit = static_cast<size_t>(max_seconds * static_cast<double>(info.samplerate));
  constexpr sf_count_t kPiece = 1 << 14;
  std::vector<float> piece(static_cast<size_t>(kPiece * info.channels));
  // The header's count is not trusted: memory follows the samples that come.
  for (;;) {
    const sf_count_t count = sf_readf_float(opened.get(), piece.data(), kPiece);
    if (count <= 0) break;
    if (sound.samples.size() + static_cast<size_t>(count) > limit)
      refuse("it is longer than " + std::to_string(static_cast<int64_t>(max_seconds)) + " s");
    for (sf_count_t i = 0; i < count; ++i) {
      const float* frame = piece.data() + i * info.channels;
      const float sum = std::accumulate(frame, frame + info.channels, 0.0F);
      sound.samples.push_back(sum / static_cast<float>(info.channels));
    }
  }
  if (sf_error(opened.get()) != SF_ERR_NO_ERROR) refuse(sf_strerror(opened.get()));
  if (info.frames > 0 && static_cast<sf_count_t>(sound.samples.size()) < info.frames)
    refuse("it ends early");
  return sound;
}

Sound resample(const Sound& sound, int64_t rate) {
  if (rate == sound.rate) return sound;
  const int64_t shared = std::gcd(rate, sound.rate);
  const int64_t from = sound.rate / shared, to = rate / shared;
  constexpr double kCrossings = 6, kRolloff = 0.99;
  const double cutoff = static_cast<double>(std::min(from, to)) * kRolloff;
  const double reach = kCrossings * static_cast<double>(from) / cutoff;  // in source samples
  const auto count = static_cast<int64_t>(sound.samples.size());
  Sound out;
  out.rate = rate;
  out.samples.resize(static_cast<size_t>((count * to + from - 1) / from));
  for (size_t n = 0; n < out.samples.size(); ++n) {
    const double middle =
        static_cast<double>(n) * static_cast<double>(from) / static_cast<double>(to);
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(middle - reach)));
    const auto last = std::min(count - 1, static_cast<int64_t>(std::floor(middle + reach)));
    double sum = 0;
    for (int64_t k = first; k <= last; ++k) {
      const double t = (static_cast<double>(k) - middle) * cutoff / static_cast<double>(from);
      const double window = std::cos(t * std::numbers::pi / kCrossings / 2);
      const double angle = t * std::numbers::pi;
      const double sinc = angle == 0 ? 1 : std::sin(angle) / angle;
      sum += sound.samples[static_cast<size_t>(k)] * sinc * window * window;
    }
    out.samples[n] = static_cast<float>(sum * cutoff / static_cast<double>(from));
  }
  return out;
}

}  // namespace dais::data
