#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "data/arrays.h"
#include "data/readers.h"

namespace dais::data {

namespace fs = std::filesystem;

namespace {

using Fields = std::span<const std::string_view>;

std::optional<double> number_of(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_missing(std::string_view text) {
  const std::string word = lower(trimmed(text));
  return word.empty() || word == "na" || word == "nan" || word == "?" || word == "null";
}

/// The delimiter that splits the first lines into the most columns of equal number.
char find_delimiter(std::string_view text, const std::string& where) {
  const std::string_view head = text.substr(0, size_t{1} << 16);
  char best = ',';
  size_t most = 1;
  for (const char delimiter : {',', '\t', ';', '|', ' '}) {
    size_t rows = 0, columns = 0;
    bool even = true;
    // The last row of the head may be cut off.
    const size_t whole = head.size() < text.size() ? head.rfind('\n') : head.size();
    try {
      parse_csv(head.substr(0, whole), delimiter, where, [&](int64_t, Fields fields) {
        if (rows++ == 0) columns = fields.size();
        even = even && fields.size() == columns;
      });
    } catch (const Error&) {
      continue;
    }
    if (even && columns > most) {
      most = columns;
      best = delimiter;
    }
  }
  return best;
}

/// What a first reading learns of a column.
struct Column {
  std::string name;
  bool numeric = true, whole = true, asked_category = false, used = true;
  int64_t missing = 0, numbers = 0;
  double sum = 0;
  std::set<std::string> categories;  ///< of a column that is not numeric, or asked to be one

  bool category() const { return asked_category || !numeric; }
  int64_t width() const {
    return !used ? 0 : category() ? static_cast<int64_t>(categories.size()) : 1;
  }
};

constexpr size_t kMostCategories = 1000;

class Table {
 public:
  Table(const fs::path& path, const OpenOptions& options)
      : options_(options.table), where_(path.string()), file_(load_file(path, options.max_bytes)) {
    delimiter_ = options_.delimiter ? options_.delimiter : find_delimiter(file_.text(), where_);
    read_head();
    find_label();
    mark_columns();
    survey();
  }

  /// Rows of numbers, and labels.
  ArraySource source(Description& about) {
    decide_label(about);
    int64_t width = 0;
    for (size_t c = 0; c < columns_.size(); ++c)
      if (c != label_) width += columns_[c].width();
    if (width == 0) refuse("no column is left as input", "Keep at least one");
    values_ = Tensor(DType::f32, {rows_, width});
    targets_.reserve(static_cast<size_t>(rows_));
    int64_t row = 0;
    each_row([&](int64_t, Fields fields) { fill(row++, fields); });
    ArraySource out;
    out.inputs = values_;
    out.name = fs::path(where_).filename().string() + ", row";
    if (label_ < columns_.size()) {
      if (regression_) {
        out.targets = Tensor(DType::f32, {rows_, 1});
        std::transform(targets_.begin(), targets_.end(), out.targets.storage<float>(),
                       [](double value) { return static_cast<float>(value); });
      } else {
        std::vector<int64_t> labels(targets_.begin(), targets_.end());
        out.targets = Tensor::ints(labels);
      }
    }
    report(about);
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& remedy) const {
    throw Error(Code::invalid_argument, what, where_, remedy);
  }

  template <typename Row>
  void each_row(const Row& row) const {
    parse_csv(file_.text(), delimiter_, where_, [&](int64_t number, Fields fields) {
      if (number == 0 && header_) return;
      row(number, fields);
    });
  }

  /// A first row of words over a second one with numbers is a header.
  void read_head() {
    std::vector<std::vector<std::string>> rows;
    const std::string_view text = file_.text();
    size_t end = 0;
    for (int line = 0; line < 64 && end != std::string_view::npos; ++line)
      end = text.find('\n', end == 0 ? 0 : end + 1);
    try {
      parse_csv(text.substr(0, end), delimiter_, where_, [&](int64_t, Fields fields) {
        if (rows.size() < 2) rows.emplace_back(fields.begin(), fields.end());
      });
    } catch (const Error&) {
      if (rows.size() < 2) throw;
    }
    if (rows.empty()) refuse("the table is empty", "Give a file with rows");
    header_ = options_.header == 1;
    if (options_.header < 0) {
      const bool words = std::none_of(rows[0].begin(), rows[0].end(),
                                      [](const auto& field) { return number_of(field); });
      const bool numbers =
          rows.size() > 1 && std::any_of(rows[1].begin(), rows[1].end(),
                                         [](const auto& field) { return number_of(field); });
      header_ = words && numbers;
    }
    columns_.resize(rows[0].size());
    for (size_t c = 0; c < columns_.size(); ++c)
      columns_[c].name = header_ ? std::string(trimmed(rows[0][c])) : std::to_string(c);
  }

  size_t column_named(const std::string& name) const {
    for (size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].name == name) return c;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const auto count = static_cast<int64_t>(columns_.size());
    if (error == std::errc() && end == name.data() + name.size() && number >= -count &&
        number < count)
      return static_cast<size_t>(number < 0 ? number + count : number);
    std::vector<std::string> names;
    for (const auto& column : columns_) names.push_back(column.name);
    const std::string guess = nearest(name, names);
    refuse("there is no column '" + name + "'", guess.empty()
                                                    ? "Use a name of the header, or a number from 0"
                                                    : "Did you mean '" + guess + "'?");
  }

  void find_label() {
    if (options_.label == "none") {
      label_ = columns_.size();
      return;
    }
    if (!options_.label.empty()) {
      label_ = column_named(options_.label);
      return;
    }
    label_ = columns_.size() - 1;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string name = lower(columns_[c].name);
      if (name == "label" || name == "class" || name == "target" || name == "y") label_ = c;
    }
  }

  void mark_columns() {
    for (const auto& name : options_.categorical)
      columns_[column_named(name)].asked_category = true;
    for (const auto& name : options_.ignored) columns_[column_named(name)].used = false;
  }

  void survey() {
    std::vector<std::string> uneven;
    each_row([&](int64_t number, Fields fields) {
      if (fields.size() != columns_.size()) {
        uneven.push_back("row " + std::to_string(number) + " has " + std::to_string(fields.size()) +
                         " columns");
        return;
      }
      ++rows_;
      for (size_t c = 0; c < fields.size(); ++c) look_at(columns_[c], fields[c], c == label_);
    });
    if (!uneven.empty())
      refuse("rows of other lengths than the first (" + std::to_string(columns_.size()) +
                 " columns): " + std::to_string(uneven.size()) + ", such as " + uneven[0],
             "Check the delimiter and the quotes");
    if (rows_ == 0) refuse("there is no row", "Give a file with rows");
    for (const Column& column : columns_)
      if (column.used && column.category() && column.categories.size() > kMostCategories)
        refuse("column '" + column.name + "' has more than " + std::to_string(kMostCategories) +
                   " different texts",
               "Leave it out if it is no category");
  }

  static void look_at(Column& column, std::string_view field, bool label) {
    if (is_missing(field)) {
      ++column.missing;
      return;
    }
    const auto number = number_of(field);
    if (number) {
      ++column.numbers;
      column.sum += *number;
      column.whole = column.whole && *number == std::floor(*number);
    } else {
      column.numeric = false;
    }
    // Texts of numbers are kept as well, until it is clear that the column holds nothing else.
    if (column.categories.size() <= kMostCategories || (label && !column.numeric))
      column.categories.emplace(trimmed(field));
  }

  void decide_label(Description& about) {
    if (label_ >= columns_.size()) return;
    const Column& column = columns_[label_];
    if (column.missing > 0)
      refuse(std::to_string(column.missing) + " rows have no label in column '" + column.name + "'",
             "Remove or complete them");
    regression_ = options_.regression == 1;
    if (options_.regression < 0)
      regression_ = column.numeric && (!column.whole || column.categories.size() > kMostCategories);
    if (regression_ && !column.numeric)
      refuse("column '" + column.name + "' holds texts, no numbers to predict",
             "Use another label");
    if (regression_) return;
    // Numbers sort by value, not by their digits.
    std::vector<std::string> names(column.categories.begin(), column.categories.end());
    if (column.numeric)
      std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
        return number_of(a).value_or(0) < number_of(b).value_or(0);
      });
    about.classes = names;
    about.class_count = static_cast<int64_t>(names.size());
    for (size_t i = 0; i < names.size(); ++i) classes_[names[i]] = static_cast<int64_t>(i);
  }

  int64_t class_of(std::string_view field) const {
    const auto found = classes_.find(std::string(trimmed(field)));
    if (found == classes_.end())
      refuse("the labels mix numbers and texts, such as '" + std::string(trimmed(field)) + "'",
             "Give --header, or mend the column");
    return found->second;
  }

  void fill(int64_t row, Fields fields) {
    float* to = values_.storage<float>() + row * values_.shape()[1];
    for (size_t c = 0; c < fields.size(); ++c) {
      const Column& column = columns_[c];
      if (c == label_) {
        targets_.push_back(regression_ ? number_of(fields[c]).value_or(0)
                                       : static_cast<double>(class_of(fields[c])));
      } else if (column.width() == 0) {
        continue;
      } else if (column.category()) {
        std::fill_n(to, column.width(), 0.0F);
        const auto found = column.categories.find(std::string(trimmed(fields[c])));
        if (found != column.categories.end())
          to[std::distance(column.categories.begin(), found)] = 1;
        to += column.width();
      } else {
        // A missing number becomes the column's mean.
        const double mean =
            column.numbers > 0 ? column.sum / static_cast<double>(column.numbers) : 0;
        *to++ = static_cast<float>(number_of(fields[c]).value_or(mean));
      }
    }
  }

  void report(Description& about) const {
    std::vector<std::string> missing;
    int64_t count = 0;
    for (const Column& column : columns_)
      if (column.missing > 0) {
        count += column.missing;
        missing.push_back("column '" + column.name + "': " + std::to_string(column.missing));
      }
    add_finding(about, "missing value", std::move(missing));
    if (count > 0) about.findings.back().count = count;
    about.found = std::to_string(columns_.size()) + " columns apart by " +
                  (delimiter_ == '\t' ? "tabs" : "'" + std::string(1, delimiter_) + "'") +
                  (header_ ? ", with a header" : ", without a header") +
                  (label_ < columns_.size() ? ", label '" + columns_[label_].name + "'" : "");
  }

  TableOptions options_;
  std::string where_;
  Blob file_;
  char delimiter_ = ',';
  bool header_ = false, regression_ = false;
  std::vector<Column> columns_;
  size_t label_ = 0;
  int64_t rows_ = 0;
  std::map<std::string, int64_t> classes_;
  Tensor values_;
  std::vector<double> targets_;
};

}  // namespace

DatasetPtr open_csv(const fs::path& path, const OpenOptions& options) {
  Description about;
  about.format = "csv";
  Table table(path, options);
  ArraySource source = table.source(about);
  return array_dataset(std::move(source), std::move(about), options.image);
}

}  // namespace dais::data
