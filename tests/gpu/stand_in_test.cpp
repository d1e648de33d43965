// Tests of the stand-in driver itself: each planted fault is found.
#include "stand_in.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dais::cuda {
namespace {

class StandInDriver : public testing::Test {
 protected:
  void SetUp() override {
    StandIn::instance().reset();
    driver_ = &StandIn::instance().tables().driver.api;
    ASSERT_EQ(driver_->device_primary_ctx_retain(&context_, 0), DriverResult::success);
    driver_->ctx_set_current(context_);
    PoolProps props;
    driver_->mem_pool_create(&pool_, &props);
    driver_->stream_create(&stream_, 0);
    driver_->stream_create(&other_, 0);
  }
  void TearDown() override {
    driver_->stream_destroy(stream_);
    driver_->stream_destroy(other_);
    driver_->mem_pool_destroy(pool_);
    driver_->device_primary_ctx_release(0);
  }
  DevicePointer allocate(size_t bytes) {
    DevicePointer memory = 0;
    EXPECT_EQ(driver_->mem_alloc_from_pool_async(&memory, bytes, pool_, stream_),
              DriverResult::success);
    return memory;
  }
  void expect_complaint(const std::string& part) {
    const auto complaints = StandIn::instance().take_complaints();
    ASSERT_FALSE(complaints.empty()) << "nothing was found; expected: " << part;
    EXPECT_NE(complaints[0].find(part), std::string::npos) << complaints[0];
  }

  const DriverApi* driver_ = nullptr;
  DriverContext context_ = nullptr;
  DriverPool pool_ = nullptr;
  DriverStream stream_ = nullptr, other_ = nullptr;
  char bytes_[64] = {};
};

TEST_F(StandInDriver, CleanUseHasNoComplaint) {
  const DevicePointer memory = allocate(64);
  driver_->memcpy_htod_async(memory, "abc", 4, stream_);
  driver_->memcpy_dtoh_async(bytes_, memory, 4, stream_);
  EXPECT_STREQ(bytes_, "") << "a copy has ended before anybody waited";
  driver_->stream_synchronize(stream_);
  EXPECT_STREQ(bytes_, "abc");
  driver_->mem_free_async(memory, stream_);
  driver_->stream_synchronize(stream_);
  EXPECT_TRUE(StandIn::instance().take_complaints().empty());
}

TEST_F(StandInDriver, FindsUseAfterFree) {
  const DevicePointer memory = allocate(64);
  driver_->mem_free_async(memory, stream_);
  EXPECT_EQ(driver_->memcpy_htod_async(memory, "abc", 4, stream_), DriverResult::invalid_value);
  expect_complaint("after it was freed");
}

TEST_F(StandInDriver, FindsDoubleFree) {
  const DevicePointer memory = allocate(64);
  driver_->mem_free_async(memory, stream_);
  driver_->mem_free_async(memory, stream_);
  expect_complaint("freed twice");
}

TEST_F(StandInDriver, FindsCopiesThatAreTooLong) {
  const DevicePointer memory = allocate(16);
  EXPECT_EQ(driver_->memcpy_htod_async(memory, bytes_, 64, stream_), DriverResult::invalid_value);
  expect_complaint("beyond the end");
  driver_->mem_free_async(memory, stream_);
}

TEST_F(StandInDriver, FindsCopiesOfTheWrongDirection) {
  const DevicePointer memory = allocate(64);
  driver_->memcpy_htod_async(memory, reinterpret_cast<const void*>(memory), 4, stream_);
  expect_complaint("reads device memory as the host's");
  driver_->memcpy_dtoh_async(bytes_, reinterpret_cast<DevicePointer>(bytes_), 4, stream_);
  expect_complaint("outside device memory");
  driver_->mem_free_async(memory, stream_);
}

TEST_F(StandInDriver, FindsLeaks) {
  const DevicePointer memory = allocate(64);
  const auto left = StandIn::instance().leftovers();
  EXPECT_NE(std::find(left.begin(), left.end(), "64 bytes of device memory"), left.end());
  driver_->mem_free_async(memory, stream_);
}

TEST_F(StandInDriver, FindsAMissingWaitBetweenStreams) {
  const DevicePointer memory = allocate(64);
  driver_->memcpy_htod_async(memory, "abc", 4, stream_);
  driver_->memcpy_dtoh_async(bytes_, memory, 4, other_);
  driver_->stream_synchronize(other_);
  EXPECT_STRNE(bytes_, "abc") << "nothing orders the copies";
  // The copy that comes too late in this order is the one that finds the other.
  driver_->stream_synchronize(stream_);
  expect_complaint("not ordered");
  driver_->mem_free_async(memory, stream_);
}

TEST_F(StandInDriver, EventsOrderStreams) {
  const DevicePointer memory = allocate(64);
  DriverEvent event = nullptr;
  driver_->event_create(&event, 0);
  driver_->memcpy_htod_async(memory, "abc", 4, stream_);
  driver_->event_record(event, stream_);
  driver_->stream_wait_event(other_, event, 0);
  driver_->memcpy_dtoh_async(bytes_, memory, 4, other_);
  driver_->stream_synchronize(other_);
  EXPECT_STREQ(bytes_, "abc");
  EXPECT_TRUE(StandIn::instance().take_complaints().empty());
  driver_->event_destroy(event);
  driver_->mem_free_async(memory, stream_);
}

TEST_F(StandInDriver, FailsTheCallThatIsAskedFor) {
  StandIn::instance().fail(Call::allocate, 1, DriverResult::out_of_memory);
  const DevicePointer first = allocate(64);
  DevicePointer second = 0;
  EXPECT_EQ(driver_->mem_alloc_from_pool_async(&second, 64, pool_, stream_),
            DriverResult::out_of_memory);
  const DevicePointer third = allocate(64);
  driver_->mem_free_async(first, stream_);
  driver_->mem_free_async(third, stream_);
}

}  // namespace
}  // namespace dais::cuda
