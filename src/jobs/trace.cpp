#include "jobs/trace.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <string_view>

#include "base/error.h"

namespace dais::jobs {
namespace {

constexpr size_t longest_line = 4096;
constexpr int most_gpus = 1'000'000;

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

struct Columns {
  int submit = -1, duration = -1, gpus = -1, project = -1;
};

Columns read_header(std::string_view line, const std::string& path) {
  Columns columns;
  const auto names = split(line);
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    if (names[i] == "submit_time") columns.submit = i;
    if (names[i] == "duration") columns.duration = i;
    if (names[i] == "num_gpus") columns.gpus = i;
    if (names[i] == "vc" || names[i] == "project") columns.project = i;
  }
  if (columns.submit < 0 || columns.duration < 0 || columns.gpus < 0) {
    throw Error(Code::invalid_argument, "the header does not name the columns of a trace", path,
                "Name submit_time, duration and num_gpus; vc or project is optional");
  }
  return columns;
}

double number(const std::vector<std::string_view>& fields, int column, const std::string& where) {
  double value = 0;
  if (column < static_cast<int>(fields.size())) {
    const std::string_view text = fields[column];
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec == std::errc() && result.ptr == text.data() + text.size() &&
        std::isfinite(value) && std::abs(value) < 1e12) {
      return value;
    }
  }
  throw Error(Code::invalid_argument, "column " + std::to_string(column + 1) + " is not a number",
              where, "Remove the line or mend the number");
}

}  // namespace

std::vector<TraceJob> read_trace(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw Error(Code::not_found, "cannot open the trace", path, "Check the path");
  std::vector<TraceJob> jobs;
  std::string buffer(longest_line, '\0');
  Columns columns;
  for (int line_number = 1; gzgets(file.get(), buffer.data(), longest_line); ++line_number) {
    std::string_view line(buffer.c_str());
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    if (line_number == 1) {
      columns = read_header(line, path);
      continue;
    }
    if (line.empty()) continue;
    const std::string where = path + ":" + std::to_string(line_number);
    const auto fields = split(line);
    TraceJob job;
    job.submit_s = number(fields, columns.submit, where);
    job.duration_s = std::max(1.0, number(fields, columns.duration, where));
    const double gpus = number(fields, columns.gpus, where);
    if (gpus < 1) continue;
    if (gpus > most_gpus) {
      throw Error(Code::invalid_argument, "a job of more than a million GPUs", where);
    }
    job.gpus = static_cast<int>(gpus);
    const bool named = columns.project >= 0 && columns.project < static_cast<int>(fields.size());
    job.project = named ? std::string(fields[columns.project]) : "all";
    jobs.push_back(std::move(job));
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submit_s < b.submit_s; });
  return jobs;
}

}  // namespace dais::jobs
