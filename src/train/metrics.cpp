#include "train/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"

namespace dais::train {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : kNone;
}

std::vector<int64_t> characters_of(const std::string& text) {
  std::vector<int64_t> out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // UTF-8: bytes that continue a character belong to the one before.
    if ((byte & 0xC0) == 0x80 && !out.empty())
      out.back() = out.back() << 8 | byte;
    else
      out.push_back(byte);
  }
  return out;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : text + " ") {
    if (c != ' ' && c != '\t' && c != '\n')
      word += c;
    else if (!word.empty())
      out.push_back(std::exchange(word, {}));
  }
  return out;
}

}  // namespace

Confusion::Confusion(int64_t classes)
    : classes_(classes), counts_(static_cast<size_t>(classes * classes)) {}

void Confusion::add(int64_t truth, int64_t predicted, int64_t count) {
  DAIS_CHECK(truth >= 0 && truth < classes_ && predicted >= 0 && predicted < classes_);
  counts_[static_cast<size_t>(truth * classes_ + predicted)] += count;
}

int64_t Confusion::at(int64_t truth, int64_t predicted) const {
  return counts_[static_cast<size_t>(truth * classes_ + predicted)];
}

int64_t Confusion::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{});
}

int64_t Confusion::row(int64_t label) const {
  int64_t sum = 0;
  for (int64_t i = 0; i < classes_; ++i) sum += at(label, i);
  return sum;
}

int64_t Confusion::column(int64_t label) const {
  int64_t sum = 0;
  for (int64_t i = 0; i < classes_; ++i) sum += at(i, label);
  return sum;
}

double Confusion::accuracy() const {
  int64_t right = 0;
  for (int64_t i = 0; i < classes_; ++i) right += at(i, i);
  const int64_t all = total();
  return all > 0 ? static_cast<double>(right) / static_cast<double>(all) : 0;
}

double Confusion::precision(int64_t label) const { return ratio(at(label, label), column(label)); }
double Confusion::recall(int64_t label) const { return ratio(at(label, label), row(label)); }
double Confusion::iou(int64_t label) const {
  return ratio(at(label, label), row(label) + column(label) - at(label, label));
}

double Confusion::mean_iou() const {
  Mean mean;
  for (int64_t i = 0; i < classes_; ++i)
    if (const double value = iou(i); !std::isnan(value)) mean.add(value);
  return mean.value();
}

ClassScores::ClassScores(int64_t classes, int64_t k)
    : confusion_(classes), k_(std::min(k, classes)) {}

void ClassScores::add(std::span<const float> scores, int64_t truth) {
  const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
  confusion_.add(truth, best);
  const float own = scores[static_cast<size_t>(truth)];
  int64_t ahead = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    ahead += scores[i] > own || (scores[i] == own && static_cast<int64_t>(i) < truth);
  within_ += ahead < k_ && !std::isnan(own);
}

double ClassScores::top_k() const {
  const int64_t all = confusion_.total();
  return all > 0 ? static_cast<double>(within_) / static_cast<double>(all) : 0;
}

double box_iou(const Box& a, const Box& b) {
  const auto area = [](const Box& x) {
    return static_cast<double>(std::max(0.0f, x[2] - x[0])) *
           static_cast<double>(std::max(0.0f, x[3] - x[1]));
  };
  const Box both{std::max(a[0], b[0]), std::max(a[1], b[1]), std::min(a[2], b[2]),
                 std::min(a[3], b[3])};
  const double shared = area(both), either = area(a) + area(b) - shared;
  return either > 0 ? shared / either : 0;
}

void DetectionScores::add_image(std::vector<Detection> found, std::vector<BoxTruth> truth) {
  images_.push_back({std::move(found), std::move(truth)});
}

double DetectionScores::average_precision(int64_t label, double iou) const {
  struct Candidate {
    size_t image;
    const Detection* found;
  };
  std::vector<Candidate> candidates;
  int64_t boxes = 0;
  for (size_t i = 0; i < images_.size(); ++i) {
    for (const Detection& found : images_[i].found)
      if (found.label == label) candidates.push_back({i, &found});
    for (const BoxTruth& truth : images_[i].truth) boxes += truth.label == label && !truth.ignored;
  }
  if (boxes == 0) return kNone;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.found->score > b.found->score; });
  std::set<const BoxTruth*> taken;
  std::vector<double> precision, recall;
  int64_t right = 0, wrong = 0;
  for (const Candidate& candidate : candidates) {
    const BoxTruth* best = nullptr;
    double best_iou = iou;
    for (const BoxTruth& truth : images_[candidate.image].truth) {
      if (truth.label != label || taken.contains(&truth)) continue;
      const double overlap = box_iou(truth.box, candidate.found->box);
      // A box that counts is preferred to one that is ignored.
      const bool better = overlap > best_iou || (!best && overlap >= iou) ||
                          (best && best->ignored && !truth.ignored && overlap >= iou);
      if (!better || (best && !best->ignored && truth.ignored)) continue;
      best = &truth;
      best_iou = overlap;
    }
    if (best && best->ignored) continue;
    if (best) taken.insert(best);
    ++(best ? right : wrong);
    precision.push_back(static_cast<double>(right) / static_cast<double>(right + wrong));
    recall.push_back(static_cast<double>(right) / static_cast<double>(boxes));
  }
  for (size_t i = precision.size(); i-- > 1;)
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double area = 0, before = 0;
  for (size_t i = 0; i < precision.size(); ++i) {
    area += (recall[i] - before) * precision[i];
    before = recall[i];
  }
  return area;
}

double DetectionScores::mean_average_precision(double iou) const {
  std::set<int64_t> labels;
  for (const Image& image : images_)
    for (const BoxTruth& truth : image.truth)
      if (!truth.ignored) labels.insert(truth.label);
  Mean mean;
  for (const int64_t label : labels) mean.add(average_precision(label, iou));
  return mean.value();
}

int64_t edit_distance(std::span<const int64_t> a, std::span<const int64_t> b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

void TranscriptScores::add(const std::string& reference, const std::string& heard) {
  std::map<std::string, int64_t> numbers;
  const auto numbered = [&](const std::string& text) {
    std::vector<int64_t> out;
    for (const auto& word : words_of(text))
      out.push_back(numbers.emplace(word, std::ssize(numbers)).first->second);
    return out;
  };
  const auto words = numbered(reference), heard_words = numbered(heard);
  word_edits_ += edit_distance(words, heard_words);
  words_ += std::ssize(words);
  const auto characters = characters_of(reference);
  character_edits_ += edit_distance(characters, characters_of(heard));
  characters_ += std::ssize(characters);
}

double TranscriptScores::word_error_rate() const {
  return words_ > 0 ? static_cast<double>(word_edits_) / static_cast<double>(words_) : 0;
}
double TranscriptScores::character_error_rate() const {
  return characters_ > 0 ? static_cast<double>(character_edits_) / static_cast<double>(characters_)
                         : 0;
}

void Mean::add(double value, double weight) {
  sum_ += value * weight;
  weight_ += weight;
}

}  // namespace dais::train
