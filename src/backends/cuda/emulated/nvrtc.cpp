#include <algorithm>
#include <utility>

#include "backends/cuda/emulated/compile.h"
#include "backends/cuda/emulated/driver_state.h"
#include "base/error.h"

// NVRTC's entry points. An image is a shared library of this machine; as PTX it is the same.
namespace dais::cuda::emulated {
namespace {

struct ProgramObject {
  CompileJob job;
  Compiled compiled;
};

ProgramObject* object(NvrtcProgram program) { return reinterpret_cast<ProgramObject*>(program); }

NvrtcResult create(NvrtcProgram* program, const char* source, const char* name, int header_count,
                   const char* const* headers, const char* const* header_names) {
  if (!program || !source || header_count < 0) return NvrtcResult::invalid_input;
  auto made = std::make_unique<ProgramObject>();
  made->job.program = {name && *name ? name : "default_program", source};
  for (int i = 0; i < header_count; ++i) made->job.headers.push_back({header_names[i], headers[i]});
  DeviceState::instance().learn(made.get());
  *program = reinterpret_cast<NvrtcProgram>(made.release());
  return NvrtcResult::success;
}

NvrtcResult compile_program(NvrtcProgram program, int option_count, const char* const* options) {
  if (!DeviceState::instance().knows(program)) return NvrtcResult::invalid_program;
  ProgramObject& made = *object(program);
  made.job.options.assign(options, options + option_count);
  made.job.checked = checked();
  try {
    made.compiled = compile(made.job);
  } catch (const Error& error) {
    made.compiled = {.image = {}, .log = error.what()};
    return NvrtcResult::internal_error;
  }
  if (made.compiled.bad_option) return NvrtcResult::invalid_option;
  return made.compiled.image.empty() ? NvrtcResult::compilation : NvrtcResult::success;
}

NvrtcResult size_of(NvrtcProgram program, size_t* bytes, std::string Compiled::*text, size_t more) {
  if (!DeviceState::instance().knows(program)) return NvrtcResult::invalid_program;
  *bytes = (object(program)->compiled.*text).size() + more;
  return NvrtcResult::success;
}

NvrtcResult copy_of(NvrtcProgram program, char* to, std::string Compiled::*text, size_t more) {
  if (!DeviceState::instance().knows(program)) return NvrtcResult::invalid_program;
  const std::string& from = object(program)->compiled.*text;
  std::copy_n(from.c_str(), from.size() + more, to);  // the end's zero too where `more` is 1
  return NvrtcResult::success;
}

NvrtcResult image_size(NvrtcProgram program, size_t* bytes) {
  return size_of(program, bytes, &Compiled::image, 0);
}
NvrtcResult image(NvrtcProgram program, char* to) {
  return copy_of(program, to, &Compiled::image, 0);
}

const char* error_string(NvrtcResult result) {
  switch (result) {
    case NvrtcResult::success: return "NVRTC_SUCCESS";
    case NvrtcResult::invalid_input: return "NVRTC_ERROR_INVALID_INPUT";
    case NvrtcResult::invalid_program: return "NVRTC_ERROR_INVALID_PROGRAM";
    case NvrtcResult::invalid_option: return "NVRTC_ERROR_INVALID_OPTION";
    case NvrtcResult::compilation: return "NVRTC_ERROR_COMPILATION";
    default: return "NVRTC_ERROR_INTERNAL_ERROR";
  }
}

}  // namespace

const NvrtcApi& nvrtc_api() {
  static const NvrtcApi table = {
      .get_error_string = error_string,
      .version =
          [](int* major, int* minor) {
            *major = 13;
            *minor = 0;
            return NvrtcResult::success;
          },
      .get_num_supported_archs =
          [](int* count) {
            *count = 1;
            return NvrtcResult::success;
          },
      .get_supported_archs =
          [](int* archs) {
            archs[0] = 80;
            return NvrtcResult::success;
          },
      .create_program = create,
      .destroy_program =
          [](NvrtcProgram* program) {
            if (!program || !DeviceState::instance().forget(*program))
              return NvrtcResult::invalid_program;
            delete object(std::exchange(*program, nullptr));
            return NvrtcResult::success;
          },
      .compile_program = compile_program,
      .get_cubin_size = image_size,
      .get_cubin = image,
      .get_ptx_size = image_size,
      .get_ptx = image,
      .get_program_log_size =
          [](NvrtcProgram program, size_t* bytes) {
            return size_of(program, bytes, &Compiled::log, 1);
          },
      .get_program_log = [](NvrtcProgram program,
                            char* to) { return copy_of(program, to, &Compiled::log, 1); },
  };
  return table;
}

}  // namespace dais::cuda::emulated
