#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace dais {

/// A named stretch of time that somebody asked to know of.
struct SpanRecord {
  const char* kind = "";      ///< "pass", "prepare", "bind", "chunk"; lives for ever
  std::string name, subject;  ///< what ran, and what it ran for
  double start = 0;           ///< seconds on the steady clock
  double seconds = 0;
  int lane = 0;  ///< place in the team of the thread that it ran on
};

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds since 1970, by the system's clock.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// While one lives, spans of all threads are kept in it. At most one at a time, made and destroyed
/// while nothing that has spans runs.
class SpanLog {
 public:
  SpanLog();
  ~SpanLog();
  SpanLog(const SpanLog&) = delete;
  SpanLog& operator=(const SpanLog&) = delete;

  /// What ended so far, in that order.
  const std::vector<SpanRecord>& records() const { return records_; }

 private:
  friend class Span;
  std::vector<SpanRecord> records_;
};

/// Measures its own life. Costs next to nothing while no log exists. Never throws: a span for which
/// there is no memory is lost.
class Span {
 public:
  explicit Span(const char* kind, std::string_view name = {}, std::string_view subject = {},
                int lane = 0) noexcept;
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  SpanLog* log_;
  const char* kind_;
  std::string_view name_, subject_;
  int lane_;
  double start_ = 0;
};

}  // namespace dais
