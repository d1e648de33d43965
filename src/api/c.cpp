#include "dais/c.h"

#include "api/compile.h"
#include "api/device.h"
#include "dais/dais.h"

struct dais_session {
  dais::Executable executable;
  dais::InferenceSession session;
  dais::Tensor state;  ///< what dais_get_state showed last
};

namespace {

thread_local std::string last_error;

/// The boundary to C: every exception becomes a message and a failure value.
template <typename Result, typename Body>
Result guarded(Result failure, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    try {
      last_error = error.what();
    } catch (const std::bad_alloc&) {
      last_error.clear();
    }
  }
  return failure;
}

const char* name_at(const std::vector<dais::ValueInfo>& infos, size_t index) {
  return index < infos.size() ? infos[index].name.c_str() : nullptr;
}

dais::Tensor view_of(const dais_tensor& tensor) {
  const auto dtype = dais::dtype_from_onnx(tensor.dtype);
  if (!dtype || *dtype == dais::DType::string)
    throw dais::Error(dais::Code::invalid_argument,
                      "element type " + std::to_string(tensor.dtype) + " cannot be given here");
  if (tensor.rank < 0 || static_cast<size_t>(tensor.rank) > dais::kMaxRank)
    throw dais::Error(dais::Code::invalid_argument,
                      "a tensor has rank " + std::to_string(tensor.rank));
  const dais::Shape shape(std::span(tensor.dims, static_cast<size_t>(tensor.rank)));
  dais::Tensor view = dais::Tensor::view(*dtype, shape, const_cast<void*>(tensor.data));
  if (view.bytes() != tensor.size_bytes)
    throw dais::Error(dais::Code::invalid_argument,
                      "size_bytes is " + std::to_string(tensor.size_bytes) + ", but " +
                          view.describe() + " takes " + std::to_string(view.bytes()));
  return view;
}

dais_tensor shown(const dais::Tensor& held) {
  if (held.dtype() == dais::DType::string)
    throw dais::Error(dais::Code::unsupported, "string tensors cannot be read here");
  return {static_cast<int32_t>(held.dtype()), static_cast<int32_t>(held.rank()),
          held.shape().begin(), held.raw(), held.bytes()};
}

}  // namespace

extern "C" {

const char* dais_last_error(void) { return last_error.c_str(); }

dais_session* dais_session_load(const char* path, const char* optimize, int threads) {
  dais_options options{};
  options.optimize = optimize;
  options.threads = threads;
  return dais_session_open(path, &options);
}

dais_session* dais_session_open(const char* path, const dais_options* options) {
  return guarded<dais_session*>(nullptr, [&] {
    dais::ExecutableOptions made;
    if (options->optimize) made.optimize = dais::optimize_from_name(options->optimize);
    made.threads = options->threads;
    if (options->device) made.device = options->device;
    if (options->matmul_precision)
      made.matmul_precision = dais::matmul_precision_from_name(options->matmul_precision);
    for (size_t i = 0; i < options->state_count; ++i)
      made.states[options->states[i].input] = options->states[i].output;
    dais::Executable executable = dais::Model::load(path).compile(made);
    return new dais_session{executable, executable.session(), {}};
  });
}

const char* dais_session_device(const dais_session* session) {
  return session->executable.device().c_str();
}

const char* dais_session_warning(const dais_session* session, size_t index) {
  const auto& warnings = session->executable.warnings();
  return index < warnings.size() ? warnings[index].c_str() : nullptr;
}

dais_session* dais_session_clone(const dais_session* session) {
  return guarded<dais_session*>(nullptr, [&] {
    return new dais_session{session->executable, session->executable.session(), {}};
  });
}

void dais_session_free(dais_session* session) { delete session; }

size_t dais_input_count(const dais_session* session) { return session->executable.inputs().size(); }
size_t dais_output_count(const dais_session* session) {
  return session->executable.outputs().size();
}
const char* dais_input_name(const dais_session* session, size_t index) {
  return name_at(session->executable.inputs(), index);
}
const char* dais_output_name(const dais_session* session, size_t index) {
  return name_at(session->executable.outputs(), index);
}

int dais_set_input(dais_session* session, const char* name, const dais_tensor* tensor) {
  return guarded(1, [&] {
    session->session.set(name, view_of(*tensor));
    return 0;
  });
}

int dais_run(dais_session* session) {
  return guarded(1, [&] {
    session->session.run();
    return 0;
  });
}

int dais_get_output(const dais_session* session, const char* name, dais_tensor* tensor) {
  return guarded(1, [&] {
    *tensor = shown(session->session.get(name));
    return 0;
  });
}

int dais_bind_state(dais_session* session, const char* input, const dais_tensor* memory) {
  return guarded(1, [&] {
    session->session.bind_state(input, view_of(*memory));
    return 0;
  });
}

int dais_reserve_state(dais_session* session, const char* input, int64_t entries) {
  return guarded(1, [&] {
    session->session.reserve_state(input, entries);
    return 0;
  });
}

int dais_get_state(dais_session* session, const char* input, dais_tensor* tensor) {
  return guarded(1, [&] {
    session->state = session->session.state(input);
    *tensor = shown(session->state);
    return 0;
  });
}

}  // extern "C"
