#pragma once

#include <functional>
#include <string>

#include "devices/cpu.h"
#include "http/message.h"
#include "jobs/daemon.h"

namespace dais::jobs {

/// Who asks, and what that allows.
struct Caller {
  std::string user;
  bool admin = false;
};

/// The HTTP interface of the scheduler: JSON in and out, errors as {"error": {code, message}}.
/// docs/jobs_api.md describes every path. Safe from many threads.
///
/// A caller over the Unix socket is whom the kernel says; the daemon's own user and root are
/// administrators. A caller over TCP shows `Authorization: Bearer TOKEN`.
class Api {
 public:
  explicit Api(Daemon& daemon) : daemon_(daemon) {}

  http::Response answer(const http::Request& request);

 private:
  Caller caller_of(const http::Request& request);
  http::Response route(const http::Request& request, const Caller& caller);
  http::Response job_route(const http::Request& request, const Caller& caller);
  http::Response submit(const http::Request& request, const Caller& caller);
  http::Response list(const http::Request& request, const Caller& caller);
  http::Response show(int64_t job);
  http::Response log(const http::Request& request, int64_t job);
  http::Response artefacts(int64_t job);
  http::Response artefact(const http::Request& request, int64_t job);
  http::Response act(const std::string& action, int64_t job, const Caller& caller);
  http::Response projects(const http::Request& request, const Caller& caller);
  http::Response status();
  http::Response report(const http::Request& request, const Caller& caller);
  http::Response history(const http::Request& request);
  http::Response metrics(const Caller& caller);
  std::vector<JobView> running_jobs(const Caller& caller);
  void check_member(const std::string& project, const Caller& caller);
  static bool may_see(Controller& controller, const JobView& view, const Caller& caller);
  JobView visible(int64_t job, const Caller& caller);

  Daemon& daemon_;
  devices::CpuMeter cpu_;
};

/// The hash under which a token is stored.
std::string token_hash(const std::string& token);
/// A new one, of 256 random bits.
std::string new_token();

}  // namespace dais::jobs
