#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>

#include "base/error.h"
#include "base/markup.h"
#include "cli/scheduler.h"
#include "http/client.h"

namespace dais::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  Scheduler scheduler;
  std::string project, month, html;
};

struct Month {
  std::string name;  // YYYY-MM
  int64_t from_s = 0, to_s = 0;
  int days() const { return static_cast<int>((to_s - from_s) / 86'400); }
};

// In UTC; the present one when no text is given.
Month month_of(const std::string& text) {
  std::tm begin{};
  if (text.empty()) {
    const time_t now = std::time(nullptr);
    gmtime_r(&now, &begin);
  } else if (strptime(text.c_str(), "%Y-%m", &begin) != text.c_str() + text.size()) {
    throw Error(Code::invalid_argument, "not a month: '" + text + "'", "--month", "Use YYYY-MM");
  }
  std::tm first{};
  first.tm_year = begin.tm_year;
  first.tm_mon = begin.tm_mon;
  first.tm_mday = 1;
  std::tm next = first;
  ++next.tm_mon;
  char name[16];
  std::strftime(name, sizeof name, "%Y-%m", &first);
  Month month{name, timegm(&first), 0};
  month.to_s = timegm(&next);
  return month;
}

std::string hours(const Json& value) {
  if (!value.is_number()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value.get<double>());
  return text;
}

constexpr std::pair<const char*, const char*> columns[] = {
    {"gpu_hours", "GPU hours"},   {"kernel_hours", "kernels"}, {"idle_hours", "idle"},
    {"unknown_hours", "unknown"}, {"failed_hours", "failed"},  {"cpu_hours", "CPU hours"},
    {"energy_kwh", "kWh"}};

void print(const Json& report, const Month& month) {
  std::printf("%s (UTC)\n%-16s %9s", month.name.c_str(), "project", "attempts");
  for (const auto& [key, title] : columns) std::printf(" %10s", title);
  std::printf("\n");
  for (const Json& sum : report["projects"]) {
    std::printf("%-16.16s %9lld", sum["project"].get<std::string>().c_str(),
                static_cast<long long>(sum["attempts"].get<int64_t>()));
    for (const auto& [key, title] : columns) std::printf(" %10s", hours(sum[key]).c_str());
    std::printf("\n");
  }
  if (report["projects"].empty()) std::printf("nothing ended in that month\n");
}

// GPU hours of each day, what was idle or failed in it set off.
std::string plot(const Json& days, const Month& month) {
  constexpr int height = 160, step = 24;
  std::vector<double> used(static_cast<size_t>(month.days())), wasted(used.size());
  double most = 1e-9;
  for (const Json& day : days) {
    const auto index = day["day"].get<int64_t>();
    if (index < 0 || index >= month.days()) continue;
    used[static_cast<size_t>(index)] += day["gpu_hours"].get<double>();
    wasted[static_cast<size_t>(index)] +=
        std::max(day["idle_hours"].get<double>(), day["failed_hours"].get<double>());
    most = std::max(most, used[static_cast<size_t>(index)]);
  }
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                    std::to_string(step * month.days()) + "\" height=\"" +
                    std::to_string(height + 20) + "\" font-size=\"10\">\n";
  for (int day = 0; day < month.days(); ++day) {
    const auto bar = [&](double value, const char* colour) {
      const int tall = static_cast<int>(value / most * height);
      svg += "<rect x=\"" + std::to_string(day * step + 2) + "\" y=\"" +
             std::to_string(height - tall) + "\" width=\"" + std::to_string(step - 4) +
             "\" height=\"" + std::to_string(tall) + "\" fill=\"" + colour + "\"/>\n";
    };
    bar(used[static_cast<size_t>(day)], "#4a7ebb");
    bar(wasted[static_cast<size_t>(day)], "#c0504d");
    svg += "<text x=\"" + std::to_string(day * step + 6) + "\" y=\"" + std::to_string(height + 14) +
           "\">" + std::to_string(day + 1) + "</text>\n";
  }
  return svg + "</svg>\n";
}

std::string page(const Json& report, const Month& month) {
  std::string html = "<!doctype html><meta charset=\"utf-8\"><title>" + month.name +
                     "</title><style>body{font-family:sans-serif}td,th{padding:2px 10px;"
                     "text-align:right}</style><h1>GPU hours in " +
                     month.name + "</h1>\n<table><tr><th>project<th>attempts";
  for (const auto& [key, title] : columns) html += std::string("<th>") + title;
  for (const Json& sum : report["projects"]) {
    html += "\n<tr><td>" + escape_markup(sum["project"].get<std::string>()) + "<td>" +
            sum["attempts"].dump();
    for (const auto& [key, title] : columns) html += "<td>" + hours(sum[key]);
  }
  return html + "</table>\n<p>By day of the month (blue: held, red: idle or failed)</p>\n" +
         plot(report["days"], month);
}

void report(const Arguments& arguments) {
  const Month month = month_of(arguments.month);
  const Json answer = arguments.scheduler.call(
      "GET", "/v1/report?project=" + http::percent_encode(arguments.project) +
                 "&from=" + std::to_string(month.from_s) + "&to=" + std::to_string(month.to_s));
  if (!arguments.html.empty()) {
    std::ofstream file(arguments.html, std::ios::binary);
    file << page(answer, month);
    if (!file.flush()) {
      throw Error(Code::unavailable, "cannot write the report", arguments.html,
                  "Check the folder, its rights and the free space");
    }
  }
  if (arguments.scheduler.json) {
    std::printf("%s\n", answer.dump().c_str());
  } else {
    print(answer, month);
  }
}

}  // namespace

void add_report(Program& program) {
  auto* command = program.app.add_subcommand(
      "report", "GPU hours of a month by project: used, idle, unknown, and lost to failures");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--project", arguments->project,
                      "One project; all otherwise (administrators)");
  command->add_option("--month", arguments->month, "YYYY-MM in UTC; the present one otherwise");
  command->add_option("--html", arguments->html, "Also write a page with a plot to this file");
  arguments->scheduler.add_options(*command);
  command->footer("Example: dais report --project vision --month 2026-11 --html november.html");
  command->callback([arguments] { report(*arguments); });
}

}  // namespace dais::cli
