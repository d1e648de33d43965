#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/markup.h"
#include "jobs/placement_text.h"
#include "jobs/simulator.h"

namespace dais::jobs {
namespace {

using Json = nlohmann::ordered_json;

std::string duration(double seconds) { return duration_text(seconds, 1); }

template <typename... Values>
void print(std::string& out, const char* format, Values... values) {
  std::array<char, 512> line;
  const int length = std::snprintf(line.data(), line.size(), format, values...);
  out.append(line.data(), std::min<size_t>(static_cast<size_t>(length), line.size() - 1));
}

// Samples averaged into at most `most` columns.
std::vector<SimulationSample> condensed(const std::vector<SimulationSample>& samples, size_t most) {
  const size_t step = std::max<size_t>(1, (samples.size() + most - 1) / most);
  std::vector<SimulationSample> out;
  for (size_t begin = 0; begin < samples.size(); begin += step) {
    const size_t end = std::min(samples.size(), begin + step);
    SimulationSample column = samples[begin];
    for (size_t i = begin + 1; i < end; ++i) {
      column.waiting_jobs += samples[i].waiting_jobs;
      for (size_t project = 0; project < column.running_gpus.size(); ++project) {
        column.running_gpus[project] += samples[i].running_gpus[project];
      }
    }
    const auto count = static_cast<int>(end - begin);
    column.waiting_jobs /= count;
    for (int& gpus : column.running_gpus) gpus /= count;
    out.push_back(std::move(column));
  }
  return out;
}

constexpr int width = 960, left = 70, top = 30, gpu_height = 300, queue_height = 120, gap = 50;

struct Frame {
  double begin_s, span_s;
  double x(double at_s) const { return left + width * (at_s - begin_s) / span_s; }
};

// One band per project, stacked: along the top of the band and back along its bottom.
void draw_bands(std::string& svg, const std::vector<SimulationSample>& samples, const Frame& frame,
                const std::vector<ProjectOutcome>& projects, int gpus) {
  std::vector<double> base(samples.size(), 0);
  auto y = [gpus](double used) { return top + gpu_height * (1 - used / gpus); };
  for (size_t project = 0; project < projects.size(); ++project) {
    const int hue = static_cast<int>(project * 137 % 360);
    print(svg, "<path fill=\"hsl(%d,55%%,%d%%)\" d=\"M", hue, project % 2 ? 62 : 50);
    for (size_t i = 0; i < samples.size(); ++i) {
      print(svg, " %.1f,%.1f", frame.x(samples[i].at_s),
            y(base[i] + samples[i].running_gpus[project]));
    }
    for (size_t i = samples.size(); i-- > 0;) {
      print(svg, " %.1f,%.1f", frame.x(samples[i].at_s), y(base[i]));
      base[i] += samples[i].running_gpus[project];
    }
    svg += "Z\"><title>" + escape_markup(projects[project].name) + "</title></path>\n";
  }
}

void draw_queue(std::string& svg, const std::vector<SimulationSample>& samples,
                const Frame& frame) {
  int64_t most = 1;
  for (const auto& sample : samples) most = std::max(most, sample.waiting_jobs);
  const int bottom = top + gpu_height + gap + queue_height;
  svg += "<polyline fill=\"none\" stroke=\"#333\" points=\"";
  for (const auto& sample : samples) {
    const double height =
        queue_height * static_cast<double>(sample.waiting_jobs) / static_cast<double>(most);
    print(svg, " %.1f,%.1f", frame.x(sample.at_s), bottom - height);
  }
  svg += "\"/>\n";
  print(svg, "<text x=\"%d\" y=\"%d\">waiting jobs, at most %lld</text>\n", left,
        bottom - queue_height - 8, static_cast<long long>(most));
}

}  // namespace

std::string report_json(const SimulationReport& report) {
  Json json;
  json["jobs"] = report.jobs;
  json["skipped"] = report.skipped;
  json["mean_completion_s"] = report.mean_completion_s;
  json["median_completion_s"] = report.median_completion_s;
  json["p99_completion_s"] = report.p99_completion_s;
  json["mean_queue_s"] = report.mean_queue_s;
  json["median_queue_s"] = report.median_queue_s;
  json["p99_queue_s"] = report.p99_queue_s;
  json["median_slowdown"] = report.median_slowdown;
  json["p99_slowdown"] = report.p99_slowdown;
  json["makespan_s"] = report.makespan_s;
  json["utilisation"] = report.utilisation;
  json["resume_share"] = report.resume_share;
  json["jain_index"] = report.jain_index;
  json["preemptions"] = report.preemptions;
  json["decisions"] = report.decisions;
  json["decision_mean_us"] = report.decision_mean_us;
  json["decision_p99_us"] = report.decision_p99_us;
  json["projects"] = Json::array();
  for (const ProjectOutcome& project : report.projects) {
    json["projects"].push_back({{"name", project.name},
                                {"jobs", project.jobs},
                                {"mean_completion_s", project.mean_completion_s},
                                {"efficiency", project.efficiency}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string report_text(const SimulationReport& report) {
  std::string text;
  auto row = [&text](const char* name, const std::string& value) {
    print(text, "%-22s %s\n", name, value.c_str());
  };
  auto times = [](double mean, double median, double p99) {
    return "mean " + duration(mean) + ", median " + duration(median) + ", p99 " + duration(p99);
  };
  row("jobs", std::to_string(report.jobs) + " (" + std::to_string(report.skipped) +
                  " larger than the machine left out)");
  row("completion time",
      times(report.mean_completion_s, report.median_completion_s, report.p99_completion_s));
  row("queue time", times(report.mean_queue_s, report.median_queue_s, report.p99_queue_s));
  row("makespan", duration(report.makespan_s));
  print(text, "%-22s %.2f median, %.1f p99\n", "slowdown", report.median_slowdown,
        report.p99_slowdown);
  print(text, "%-22s %.1f %% (%.2f %% of it resumes)\n", "utilisation", 100 * report.utilisation,
        100 * report.resume_share);
  print(text, "%-22s %.3f over %zu projects\n", "Jain index", report.jain_index,
        report.projects.size());
  row("preemptions", std::to_string(report.preemptions));
  print(text, "%-22s %lld, %.0f us mean, %.0f us p99\n", "decisions",
        static_cast<long long>(report.decisions), report.decision_mean_us, report.decision_p99_us);
  return text;
}

std::string timeline_svg(const SimulationReport& report, int gpus) {
  const auto samples = condensed(report.timeline, width);
  const int height = top + gpu_height + gap + queue_height + 40;
  std::string svg;
  print(svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n",
        left + width + 20, height);
  print(svg, "<text x=\"%d\" y=\"%d\">GPUs in use by project, of %d</text>\n", left, top - 10,
        gpus);
  print(svg, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#eee\"/>\n", left, top,
        width, gpu_height);
  if (!samples.empty()) {
    const double begin_s = samples.front().at_s;
    const Frame frame{begin_s, std::max(1.0, samples.back().at_s - begin_s)};
    draw_bands(svg, samples, frame, report.projects, gpus);
    draw_queue(svg, samples, frame);
    print(svg, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", left + width, height - 14,
          duration(frame.span_s).c_str());
  }
  svg += "</svg>\n";
  return svg;
}

}  // namespace dais::jobs
