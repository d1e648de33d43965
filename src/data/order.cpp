#include "data/order.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dais::data {

Dealer::Dealer(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset), options_(options), samples_(dataset.size()) {
  const auto refuse = [&](const std::string& what, const std::string& remedy) {
    throw Error(Code::invalid_argument, what, "loader of " + dataset.description().format, remedy);
  };
  if (options.batch < 1 || options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    refuse("batch " + std::to_string(options.batch) + ", rank " + std::to_string(options.rank) +
               " of " + std::to_string(options.ranks),
           "Use a batch of at least 1 and ranks from 0");
  if (samples_ > std::numeric_limits<uint32_t>::max())
    refuse(std::to_string(samples_) + " samples are more than a loader deals out",
           "Use a longer stride, or several datasets");
  if (samples_ == 0) refuse("there is no sample", "Check the path and the part of the data");
  if (steps_per_epoch() == 0)
    refuse(std::to_string(samples_) + " samples do not fill one batch of " +
               std::to_string(global_batch()) + (options.ranks > 1 ? " over all ranks" : ""),
           "Use a smaller batch, or keep the last partial batch");
}

int64_t Dealer::steps_per_epoch() const {
  const int64_t whole = samples_ / global_batch();
  return options_.last == LastBatch::drop ? whole : whole + (samples_ % global_batch() != 0);
}

void Dealer::sort_buckets(std::vector<uint32_t>& order, const Place& place) const {
  const auto batch = static_cast<size_t>(place.order_batch);
  const size_t run = batch * static_cast<size_t>(options_.bucket_batches);
  for (size_t begin = 0; begin < order.size(); begin += run) {
    const size_t end = std::min(order.size(), begin + run);
    std::stable_sort(
        order.begin() + static_cast<int64_t>(begin), order.begin() + static_cast<int64_t>(end),
        [&](uint32_t a, uint32_t b) { return dataset_.length(a) < dataset_.length(b); });
  }
  if (!options_.shuffle) return;
  // Whole batches change places; what is left over stays at the end.
  std::vector<size_t> batches(order.size() / batch);
  std::iota(batches.begin(), batches.end(), size_t{0});
  Draws draws(Purpose::buckets, options_.seed, place.epoch, 0);
  shuffle(batches, draws);
  std::vector<uint32_t> mixed;
  mixed.reserve(order.size());
  for (const size_t from : batches)
    mixed.insert(mixed.end(), order.begin() + static_cast<int64_t>(from * batch),
                 order.begin() + static_cast<int64_t>((from + 1) * batch));
  mixed.insert(mixed.end(), order.begin() + static_cast<int64_t>(mixed.size()), order.end());
  order = std::move(mixed);
}

EpochOrder Dealer::order_of(const Place& place) {
  if (order_ && order_place_.epoch == place.epoch && order_place_.order_batch == place.order_batch)
    return order_;
  std::vector<uint32_t> order(static_cast<size_t>(samples_));
  std::iota(order.begin(), order.end(), uint32_t{0});
  if (options_.shuffle) {
    Draws draws(Purpose::order, options_.seed, place.epoch, 0);
    shuffle(order, draws);
  }
  if (options_.bucket_batches > 0) sort_buckets(order, place);
  order_place_ = place;
  order_ = std::make_shared<const std::vector<uint32_t>>(std::move(order));
  return order_;
}

Place Dealer::after(const Place& place, int64_t size) const {
  const int64_t left = samples_ - place.taken - size;
  const bool ends = options_.last == LastBatch::drop ? left < global_batch() : left == 0;
  return ends ? start_of(place.epoch + 1)
              : Place{place.epoch, place.taken + size, place.order_batch};
}

StepPlan Dealer::plan(const Place& from) {
  Place place = from;
  // A place written with smaller batches may leave less than one of ours.
  const int64_t left = samples_ - place.taken;
  if (left <= 0 || (options_.last == LastBatch::drop && left < global_batch()))
    place = start_of(place.epoch + 1);
  StepPlan plan;
  const int64_t size = std::min(global_batch(), samples_ - place.taken);
  plan.epoch = place.epoch;
  plan.step = place.taken / global_batch();
  plan.global_size = size;
  const int64_t begin = place.taken + size * options_.rank / options_.ranks;
  const int64_t end = place.taken + size * (options_.rank + 1) / options_.ranks;
  const EpochOrder order = order_of(place);
  plan.indices.assign(order->begin() + begin, order->begin() + end);
  plan.next = after(place, size);
  plan.last_of_epoch = plan.next.epoch != place.epoch;
  return plan;
}

}  // namespace dais::data
