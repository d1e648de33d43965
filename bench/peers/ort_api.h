#pragma once

// The few entries of ONNX Runtime's C API that the runner needs. Its packages for other languages
// carry the shared library without the C header, but the table of function pointers is part of
// the stable ABI: entries are only ever appended, so each keeps its place for good. All of these
// belong to the first version of the table, which ends at entry 101.

#include <cstddef>
#include <cstdint>
#include <string>

namespace dais::peers::ort {

struct Status;
struct Env;
struct Session;
struct SessionOptions;
struct RunOptions;
struct Value;
struct MemoryInfo;
struct ShapeInfo;
struct Allocator;

enum LogLevel : int { log_error = 3 };
enum OptimizationLevel : int { optimize_none = 0, optimize_all = 99 };
enum AllocatorType : int { device_allocator = 0 };
enum MemoryType : int { default_memory = 0 };

template <size_t Slot, class Signature>
struct Entry;
template <size_t Slot, class Result, class... Args>
struct Entry<Slot, Result(Args...)> {
  static Result call(const void* const* table, Args... args) {
    return reinterpret_cast<Result (*)(Args...)>(const_cast<void*>(table[Slot]))(args...);
  }
};

using GetErrorMessage = Entry<2, const char*(const Status*)>;
using CreateEnv = Entry<3, Status*(LogLevel, const char*, Env**)>;
using CreateSession = Entry<7, Status*(const Env*, const char*, const SessionOptions*, Session**)>;
using Run = Entry<9, Status*(Session*, const RunOptions*, const char* const*, const Value* const*,
                             size_t, const char* const*, size_t, Value**)>;
using CreateSessionOptions = Entry<10, Status*(SessionOptions**)>;
using SetGraphOptimizationLevel = Entry<23, Status*(SessionOptions*, OptimizationLevel)>;
using SetIntraOpThreads = Entry<24, Status*(SessionOptions*, int)>;
using SetInterOpThreads = Entry<25, Status*(SessionOptions*, int)>;
using SessionOutputCount = Entry<31, Status*(const Session*, size_t*)>;
using SessionOutputName = Entry<37, Status*(const Session*, size_t, Allocator*, char**)>;
using CreateTensorWithData =
    Entry<49, Status*(const MemoryInfo*, void*, size_t, const int64_t*, size_t, int, Value**)>;
using TensorData = Entry<51, Status*(Value*, void**)>;
using ElementType = Entry<60, Status*(const ShapeInfo*, int*)>;
using DimensionCount = Entry<61, Status*(const ShapeInfo*, size_t*)>;
using Dimensions = Entry<62, Status*(const ShapeInfo*, int64_t*, size_t)>;
using TensorTypeAndShape = Entry<65, Status*(const Value*, ShapeInfo**)>;
using CreateCpuMemoryInfo = Entry<69, Status*(AllocatorType, MemoryType, MemoryInfo**)>;
using DefaultAllocator = Entry<78, Status*(Allocator**)>;
using ReleaseEnv = Entry<92, void(Env*)>;
using ReleaseStatus = Entry<93, void(Status*)>;
using ReleaseMemoryInfo = Entry<94, void(MemoryInfo*)>;
using ReleaseSession = Entry<95, void(Session*)>;
using ReleaseValue = Entry<96, void(Value*)>;
using ReleaseShapeInfo = Entry<99, void(ShapeInfo*)>;
using ReleaseSessionOptions = Entry<100, void(SessionOptions*)>;

/// What `OrtGetApiBase` returns.
struct ApiBase {
  const void* const* (*get_api)(uint32_t version);
  const char* (*version_string)();
};

}  // namespace dais::peers::ort
