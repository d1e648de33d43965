#include "backends/cuda/program.h"

#include <algorithm>

#include "backends/cuda/check.h"
#include "backends/cuda/device.h"
#include "backends/cuda/image_cache.h"
#include "backends/cuda/text.h"
#include "base/error.h"
#include "base/span.h"

namespace dais::cuda {
namespace {

void check_nvrtc(const NvrtcApi& nvrtc, NvrtcResult result, const std::string& action) {
  if (result == NvrtcResult::success) return;
  throw Error(result == NvrtcResult::out_of_memory ? Code::exhausted : Code::internal,
              "NVRTC, " + action + ": " + nvrtc.get_error_string(result));
}

/// Own code for architectures that the compiler knows; for later ones the newest portable form,
/// which the driver translates.
struct Architecture {
  std::string option;
  bool portable = false;
};

Architecture architecture(const NvrtcApi& nvrtc, int arch) {
  int count = 0;
  check_nvrtc(nvrtc, nvrtc.get_num_supported_archs(&count), "listing architectures");
  std::vector<int> known(static_cast<size_t>(count));
  check_nvrtc(nvrtc, nvrtc.get_supported_archs(known.data()), "listing architectures");
  if (std::find(known.begin(), known.end(), arch) != known.end())
    return {"--gpu-architecture=sm_" + std::to_string(arch), false};
  std::erase_if(known, [&](int other) { return other > arch; });
  if (known.empty())
    throw Error(Code::unavailable,
                "this NVRTC compiles for no device as old as compute capability " +
                    std::to_string(arch / 10) + "." + std::to_string(arch % 10),
                "GPU", "Install NVRTC of CUDA 12");
  const int newest = *std::max_element(known.begin(), known.end());
  return {"--gpu-architecture=compute_" + std::to_string(newest), true};
}

/// A program of NVRTC, destroyed with this.
class Compilation {
 public:
  Compilation(const NvrtcApi& nvrtc, const ProgramText& text) : nvrtc_(nvrtc) {
    std::vector<const char*> contents, names;
    for (const Text& header : device_headers()) {
      contents.push_back(header.contents.data());
      names.push_back(header.name.data());
    }
    check_nvrtc(nvrtc,
                nvrtc.create_program(&program_, text.text.c_str(), text.name.c_str(),
                                     static_cast<int>(names.size()), contents.data(), names.data()),
                "taking the program");
  }
  ~Compilation() { nvrtc_.destroy_program(&program_); }
  Compilation(const Compilation&) = delete;

  std::string compile(const std::vector<std::string>& options, bool portable) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    const NvrtcResult result =
        nvrtc_.compile_program(program_, static_cast<int>(pointers.size()), pointers.data());
    if (result != NvrtcResult::success) {
      const std::string what = "a kernel does not compile: ";
      throw Error(Code::internal, what + nvrtc_.get_error_string(result) + "\n" + log());
    }
    size_t bytes = 0;
    const auto size = portable ? nvrtc_.get_ptx_size : nvrtc_.get_cubin_size;
    check_nvrtc(nvrtc_, size(program_, &bytes), "giving the result's size");
    std::string image(bytes, '\0');
    const auto get = portable ? nvrtc_.get_ptx : nvrtc_.get_cubin;
    check_nvrtc(nvrtc_, get(program_, image.data()), "giving the result");
    return image;
  }

 private:
  std::string log() const {
    size_t bytes = 0;
    if (nvrtc_.get_program_log_size(program_, &bytes) != NvrtcResult::success || bytes == 0)
      return {};
    std::string out(bytes, '\0');
    nvrtc_.get_program_log(program_, out.data());
    out.resize(out.find('\0') == std::string::npos ? out.size() : out.find('\0'));
    return out;
  }

  const NvrtcApi& nvrtc_;
  NvrtcProgram program_ = nullptr;
};

}  // namespace

std::string ProgramText::key() const {
  std::string out = name;
  for (const std::string& option : options) out += '\n' + option;
  return out + '\n' + text;
}

std::string compiled_image(const Tables& tables, int arch, const ProgramText& text) {
  const NvrtcApi& nvrtc = tables.nvrtc.api;
  const Architecture target = architecture(nvrtc, arch);
  std::vector<std::string> options{target.option, "--std=c++17"};
  options.insert(options.end(), text.options.begin(), text.options.end());
  std::string key = tables.nvrtc.report.version + '\n' + target.option + '\n' + text.key();
  for (const Text& header : device_headers()) key.append(header.contents);
  // The emulated compiler keeps its own results.
  if (tables.hardware)
    if (auto kept = cached_image(key)) return *kept;
  const Span span("compile", text.name);
  std::string image = Compilation(nvrtc, text).compile(options, target.portable);
  if (tables.hardware) keep_image(key, image);
  return image;
}

Program::Program(std::shared_ptr<Device> device, const ProgramText& text, const std::string& image)
    : device_(std::move(device)), name_(text.name) {
  const DriverApi& driver = device_->driver();
  check(driver, driver.module_load_data(&module_, image.data()), "loading " + name_);
}

Program::~Program() {
  try {
    device_->enter();
  } catch (const Error&) {
    return;  // with its context the module is gone
  }
  device_->driver().module_unload(module_);
}

Function Program::function(const char* name, int shared_bytes) const {
  const DriverApi& driver = device_->driver();
  device_->enter();
  Function out;
  check(driver, driver.module_get_function(&out.handle, module_, name),
        "finding kernel " + std::string(name) + " in " + name_);
  constexpr int kGivenToAll = 48 * 1024;
  if (shared_bytes > device_->info().max_shared_bytes)
    throw Error(Code::unsupported, name_ + " needs " + std::to_string(shared_bytes) +
                                       " bytes of shared memory, and the device has " +
                                       std::to_string(device_->info().max_shared_bytes));
  if (shared_bytes > kGivenToAll)
    check(driver,
          driver.func_set_attribute(out.handle, FunctionAttribute::max_dynamic_shared_size_bytes,
                                    shared_bytes),
          "asking for shared memory");
  check(driver,
        driver.func_get_attribute(&out.max_threads, FunctionAttribute::max_threads_per_block,
                                  out.handle),
        "asking a kernel for its limits");
  return out;
}

}  // namespace dais::cuda
