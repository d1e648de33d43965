// Copies beside a run, with a device of the tests whose memory is the host's: what two threads
// touch is left to the thread sanitizer.
#include "runtime/inputs_ahead.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "base/error.h"

namespace dais {
namespace {

class HostMemory : public DeviceMemory {
 public:
  explicit HostMemory(size_t bytes) : bytes_(bytes) {}
  void* address() const override { return const_cast<std::byte*>(bytes_.data()); }
  size_t bytes() const override { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

/// What a device of the tests has left, and whether its copies fail.
struct Limits {
  size_t room = size_t{1} << 20;
  bool fails = false;
};

class HostQueue : public Queue {
 public:
  explicit HostQueue(const Limits& limits) : limits_(limits) {}
  std::shared_ptr<DeviceMemory> allocate(size_t bytes, const std::string&) override {
    if (bytes > limits_.room) throw Error(Code::exhausted, "the device is full");
    return std::make_shared<HostMemory>(bytes);
  }
  void upload(void* to, const void* from, size_t bytes) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (limits_.fails) throw Error(Code::unavailable, "the device is lost");
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
  void run(BoundKernel&, Arguments, int) override {}
  std::unique_ptr<Recording> record(const std::function<void()>&) override { return nullptr; }
  void replay(Recording&) override {}
  std::optional<QueueFault> wait() override { return std::nullopt; }

 private:
  const Limits& limits_;
};

class HostBackend : public Backend {
 public:
  const std::string& name() const override { return name_; }
  const Kernels& kernels() const override { return kernels_; }
  std::unique_ptr<Queue> open_queue() override { return std::make_unique<HostQueue>(limits); }
  size_t free_bytes() const override { return limits.room; }

  Limits limits;

 private:
  const std::string name_ = "host";
  const Kernels kernels_{};
};

class InputsAheadThreads : public testing::Test {
 protected:
  /// What was copied ahead of a tensor; nothing: it was not.
  std::optional<std::vector<float>> delivered(const Tensor& tensor) {
    std::vector<float> out(static_cast<size_t>(tensor.elements()), -1);
    if (!ahead_.deliver(*queue_, out.data(), tensor.raw(), tensor.bytes())) return std::nullopt;
    return out;
  }
  static Tensor batch(float value) {
    Tensor out(DType::f32, Shape{1000});
    for (float& x : out.data<float>()) x = value;
    return out;
  }

  HostBackend backend_;
  std::unique_ptr<Queue> queue_ = backend_.open_queue();
  InputsAhead ahead_{backend_};
};

TEST_F(InputsAheadThreads, EachTensorIsThereOnceWhileTheNextOneIsCopied) {
  Tensor next = batch(0);
  ahead_.start(std::vector<Datum>{next});
  for (int i = 0; i < 20; ++i) {
    const Tensor now = std::exchange(next, batch(static_cast<float>(i + 1)));
    ahead_.start(std::vector<Datum>{next, batch(-2)});
    EXPECT_EQ(delivered(now), std::vector<float>(1000, static_cast<float>(i)));
    EXPECT_EQ(delivered(now), std::nullopt) << "once";
  }
  // At once after its start: the copy that is under way is waited for.
  const Tensor last = batch(99);
  ahead_.start(std::vector<Datum>{last});
  EXPECT_EQ(delivered(last), std::vector<float>(1000, 99));
}

TEST_F(InputsAheadThreads, WhatWasNotStartedOrHasNoRoomIsCopiedByTheRun) {
  EXPECT_EQ(delivered(batch(1)), std::nullopt);
  backend_.limits.room = 10;
  const Tensor large = batch(2);
  ahead_.start(std::vector<Datum>{large});
  EXPECT_EQ(delivered(large), std::nullopt);
}

TEST_F(InputsAheadThreads, FailuresAreThrownWhereTheTensorIsNeeded) {
  backend_.limits.fails = true;
  const Tensor first = batch(1), second = batch(2);
  ahead_.start(std::vector<Datum>{first, second});
  EXPECT_THROW(delivered(first), Error);
  EXPECT_EQ(delivered(second), std::nullopt) << "nothing of it is there";
  backend_.limits.fails = false;
  ahead_.start(std::vector<Datum>{second});
  EXPECT_EQ(delivered(second), std::vector<float>(1000, 2));
}

}  // namespace
}  // namespace dais
