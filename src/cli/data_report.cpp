#include "cli/data_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/markup.h"
#include "data/image.h"

namespace dais::cli {
namespace {

using nlohmann::json;

std::string class_name(const data::Description& about, size_t number) {
  return number < about.classes.size() ? about.classes[number] : std::to_string(number);
}

std::string sizes_text(const data::Inspection& seen) {
  std::string text;
  for (const auto& range : seen.sizes) {
    char part[64];
    if (range.low == range.high)
      std::snprintf(part, sizeof part, "%.0f", range.low);
    else
      std::snprintf(part, sizeof part, "%.0f…%.0f (mean %.1f)", range.low, range.high, range.mean);
    text += (text.empty() ? "" : " x ") + std::string(part);
  }
  return text;
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k)
      out += k <= bytes.size() - i ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string mean_image_png(const Tensor& mean) {
  data::Image image{mean.shape()[1], mean.shape()[2], static_cast<int>(mean.shape()[0]), {}};
  const int64_t plane = image.height * image.width;
  for (int64_t i = 0; i < plane; ++i)
    for (int64_t c = 0; c < image.channels; ++c)
      image.pixels.push_back(
          static_cast<uint8_t>(std::lround(mean.to_double(c * plane + i) * 255)));
  return data::encode_png(image);
}

/// One bar a class.
std::string histogram_svg(const data::Description& about, const std::vector<int64_t>& counts) {
  constexpr size_t kMostBars = 200;
  const size_t bars = std::min(counts.size(), kMostBars);
  const double most =
      static_cast<double>(std::max<int64_t>(1, *std::max_element(counts.begin(), counts.end())));
  constexpr int kRow = 18, kNames = 160, kBars = 500;
  std::string svg = "<svg width=\"780\" height=\"" + std::to_string(bars * kRow + 4) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n";
  for (size_t i = 0; i < bars; ++i) {
    const int y = static_cast<int>(i) * kRow;
    const int width = static_cast<int>(kBars * static_cast<double>(counts[i]) / most);
    char line[512];
    std::snprintf(
        line, sizeof line,
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text><rect x=\"%d\" y=\"%d\" "
        "width=\"%d\" height=\"14\" fill=\"#4477aa\"/><text x=\"%d\" y=\"%d\">%lld</text>\n",
        kNames - 8, y + 13, escape_markup(class_name(about, i).substr(0, 40)).c_str(), kNames,
        y + 2, width, kNames + width + 6, y + 13, static_cast<long long>(counts[i]));
    svg += line;
  }
  return svg + "</svg>\n";
}

void print_classes(const data::Description& about, const std::vector<int64_t>& counts) {
  if (counts.empty()) return;
  constexpr size_t kMostLines = 50;
  const auto most =
      static_cast<double>(std::max<int64_t>(1, *std::max_element(counts.begin(), counts.end())));
  std::printf("\n%10s  class\n", "count");
  for (size_t i = 0; i < std::min(counts.size(), kMostLines); ++i) {
    const int length = static_cast<int>(40 * static_cast<double>(counts[i]) / most);
    std::printf("%10lld  %-20s %s\n", static_cast<long long>(counts[i]),
                class_name(about, i).c_str(),
                std::string(static_cast<size_t>(length), '#').c_str());
  }
  if (counts.size() > kMostLines)
    std::printf("%10s  and %zu more\n", "", counts.size() - kMostLines);
}

std::string numbers_text(const std::vector<double>& values) {
  std::string text;
  constexpr size_t kShown = 6;
  for (size_t i = 0; i < std::min(values.size(), kShown); ++i) {
    char part[32];
    std::snprintf(part, sizeof part, "%s%.4g", i == 0 ? "" : ", ", values[i]);
    text += part;
  }
  return values.size() > kShown ? text + ", …" : text;
}

}  // namespace

json json_report(const data::Dataset& dataset, const data::Inspection& seen) {
  const data::Description& about = dataset.description();
  json classes = json::array();
  for (size_t i = 0; i < seen.class_counts.size(); ++i)
    classes.push_back({{"name", class_name(about, i)}, {"count", seen.class_counts[i]}});
  json sizes = json::array();
  for (const auto& range : seen.sizes)
    sizes.push_back({{"min", range.low}, {"max", range.high}, {"mean", range.mean}});
  json unreadable = json::array(), duplicates = json::array(), findings = json::array();
  for (const auto& bad : seen.unreadable)
    unreadable.push_back({{"index", bad.index}, {"name", bad.name}, {"reason", bad.reason}});
  for (const auto& group : seen.duplicates) {
    json names = json::array();
    for (const int64_t index : group.indices) names.push_back(dataset.name(index));
    duplicates.push_back({{"names", names}, {"labels_differ", group.labels_differ}});
  }
  for (const auto& finding : seen.findings)
    findings.push_back(
        {{"what", finding.what}, {"count", finding.count}, {"examples", finding.examples}});
  return {{"format", about.format},
          {"found", about.found},
          {"task", data::task_name(about.task)},
          {"input", data::input_kind_name(about.input)},
          {"input_shape", about.input_shape.vector()},
          {"class_count", about.class_count},
          {"samples", seen.samples},
          {"readable", seen.readable},
          {"classes", classes},
          {"sizes", sizes},
          {"mean", seen.mean},
          {"deviation", seen.deviation},
          {"duplicates", duplicates},
          {"unreadable", unreadable},
          {"findings", findings}};
}

void print_report(const data::Dataset& dataset, const data::Inspection& seen) {
  const data::Description& about = dataset.description();
  const auto line = [](const char* name, const std::string& text) {
    if (!text.empty()) std::printf("%-12s %s\n", name, text.c_str());
  };
  line("found", about.found);
  line("task", std::string(data::task_name(about.task)) + " from " +
                   std::string(data::input_kind_name(about.input)) + " inputs");
  line("samples",
       std::to_string(seen.samples) + ", " + std::to_string(seen.readable) + " readable");
  line("sizes", sizes_text(seen));
  line("mean", numbers_text(seen.mean));
  line("deviation", numbers_text(seen.deviation));
  print_classes(about, seen.class_counts);
  if (!seen.findings.empty()) std::printf("\nfindings\n");
  for (const auto& finding : seen.findings) {
    std::printf("%10lld  %s\n", static_cast<long long>(finding.count), finding.what.c_str());
    for (const auto& example : finding.examples) std::printf("%12s%s\n", "", example.c_str());
  }
}

std::string html_report(const data::Dataset& dataset, const data::Inspection& seen) {
  const data::Description& about = dataset.description();
  std::string page =
      "<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>Data</title>\n<style>body{font-"
      "family:sans-serif;margin:2em;max-width:60em}td,th{padding:2px 12px 2px 0;text-align:left}"
      "img{image-rendering:pixelated}</style></head><body>\n<h1>" +
      escape_markup(about.format) + "</h1>\n<p>" + escape_markup(about.found) + "</p>\n<table>\n";
  const auto row = [&](const std::string& name, const std::string& value) {
    if (!value.empty())
      page += "<tr><th>" + name + "</th><td>" + escape_markup(value) + "</td></tr>\n";
  };
  row("Task", std::string(data::task_name(about.task)));
  row("Samples", std::to_string(seen.samples) + ", " + std::to_string(seen.readable) + " readable");
  row("Sizes", sizes_text(seen));
  row("Mean", numbers_text(seen.mean));
  row("Deviation", numbers_text(seen.deviation));
  page += "</table>\n";
  if (seen.mean_image)
    page += "<h2>Mean image</h2>\n<img width=\"" +
            std::to_string(std::max<int64_t>(160, seen.mean_image.shape()[2])) +
            "\" alt=\"mean image\" src=\"data:image/png;base64," +
            base64(mean_image_png(seen.mean_image)) + "\">\n";
  if (!seen.class_counts.empty())
    page += "<h2>Classes</h2>\n" + histogram_svg(about, seen.class_counts);
  if (!seen.findings.empty()) page += "<h2>Findings</h2>\n";
  for (const auto& finding : seen.findings) {
    page +=
        "<p>" + std::to_string(finding.count) + " × " + escape_markup(finding.what) + "</p><ul>\n";
    for (const auto& example : finding.examples)
      page += "<li>" + escape_markup(example) + "</li>\n";
    page += "</ul>\n";
  }
  if (!seen.unreadable.empty()) page += "<h2>Unreadable samples</h2>\n<ul>\n";
  for (const auto& bad : seen.unreadable)
    page += "<li>" + escape_markup(bad.name) + ": " + escape_markup(bad.reason) + "</li>\n";
  if (!seen.unreadable.empty()) page += "</ul>\n";
  return page + "</body></html>\n";
}

}  // namespace dais::cli
