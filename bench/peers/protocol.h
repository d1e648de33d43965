#pragma once

#include <string>

#include "tensor_file.h"

namespace dais::peers {

/// What a runner must offer. One model, one session, calls from one thread; failures are thrown
/// as std::exception and reported to the harness.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string version() const = 0;
  /// Loads and prepares a model; called once.
  virtual void load(const std::string& model, int threads) = 0;
  /// Sets the input named `tensor.name`, replacing an earlier value.
  virtual void set_input(Tensor tensor) = 0;
  /// One inference, the only call that is timed. Outputs stay until `release_outputs`.
  virtual void run() = 0;
  /// Returns what the last run allocated; does nothing when there is nothing to return.
  virtual void release_outputs() = 0;
  /// Writes the last run's outputs as `folder`/output_I.pb, in the order of the model.
  virtual void save_outputs(const std::string& folder) = 0;
};

/// Answers commands on stdin with one JSON object a line on stdout until `quit` or end of input:
///
///   load THREADS MODEL     -> {"ok":true,"version":"...","load_ms":N}
///   input FILE.pb          -> {"ok":true}
///   run COUNT SECONDS      -> {"ok":true,"runs":N,"min_us":N,"median_us":N}
///   save FOLDER            -> {"ok":true}
///   peak                   -> {"ok":true,"peak_mb":N}
///
/// `run` makes at least COUNT runs and goes on until SECONDS have passed. A failed command answers
/// {"ok":false,"error":"..."}.
int answer_commands(Engine& engine);

}  // namespace dais::peers
