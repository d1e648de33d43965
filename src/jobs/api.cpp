#include "jobs/api.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "jobs/account.h"
#include "jobs/api_text.h"
#include "jobs/json_text.h"
#include "jobs/openapi.h"

namespace dais::jobs {
namespace {

constexpr size_t most_key_bytes = 256;

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int status_of(Code code) {
  switch (code) {
    case Code::invalid_argument:
    case Code::invalid_model: return 400;
    case Code::unsupported: return 501;
    case Code::not_found: return 404;
    case Code::exhausted: return 507;
    case Code::unavailable: return 503;
    case Code::cancelled: return 409;
    case Code::internal: return 500;
  }
  return 500;
}

http::Response failed(int status, const Error& error) {
  Json json;
  json["error"] = {{"code", code_name(error.code())},
                   {"message", error.problem()},
                   {"where", error.where()},
                   {"remedy", error.remedy()}};
  return {status, "application/json", dump(json), nullptr};
}

[[noreturn]] void forbidden(const std::string& what) {
  throw Error(Code::cancelled, what, "forbidden", "Ask an administrator");
}

std::string hex(const unsigned char* bytes, size_t count) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
  }
  return out;
}

Json job_json(const JobView& view, double now_s) {
  const JobRow& row = view.row;
  Json json;
  json["id"] = row.id;
  json["name"] = view.request.name;
  json["project"] = view.request.project;
  json["user"] = view.request.user;
  json["phase"] = phase_name(row.phase);
  json["held"] = row.held;
  json["priority"] = view.request.priority;
  json["submitted_s"] = row.submit_s;
  json["attempts"] = row.attempts;
  json["failures"] = row.failures;
  const bool active = row.phase == Phase::running || row.phase == Phase::stopping;
  json["ran_s"] = row.attained_s + (active ? std::max(0.0, now_s - row.start_s) : 0);
  json["started_s"] = row.start_s > 0 ? Json(row.start_s) : Json();
  json["ended_s"] = row.end_s > 0 ? Json(row.end_s) : Json();
  json["outcome"] = row.outcome;
  json["tasks"] = view.request.tasks;
  json["min_tasks"] = view.request.min_tasks > 0 ? view.request.min_tasks : view.request.tasks;
  json["tasks_now"] = tasks_in(view.placement);
  json["gpus"] = static_cast<double>(view.request.gpu_milli) / 1000;
  json["gpu_parts"] = Json::array();
  for (const DevicePart& part : view.request.gpu_parts) {
    json["gpu_parts"].push_back(static_cast<double>(part.gpu_milli) / 1000);
  }
  Json devices = Json::array();
  for (const Slot& slot : view.placement) {
    if (slot.device >= 0) devices.push_back(slot.device);
  }
  json["devices"] = devices;
  json["wall"] = view.wall;
  return json;
}

struct LogReader {
  Daemon& daemon;
  int64_t job;
  std::string path;
  std::streamoff at = 0;
  bool follow = false;
  bool ended = false;

  // The log may be started anew when it grew past its limit: read on from its beginning then.
  std::string read_more() {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return {};
    const std::streamoff size = file.tellg();
    if (size < at) at = 0;
    std::string out(static_cast<size_t>(std::min<std::streamoff>(size - at, 64 << 10)), '\0');
    file.seekg(at);
    file.read(out.data(), static_cast<std::streamsize>(out.size()));
    out.resize(static_cast<size_t>(file.gcount()));
    at += static_cast<std::streamoff>(out.size());
    return out;
  }

  bool next(std::string& piece) {
    piece = read_more();
    if (!piece.empty()) return true;
    if (!follow || ended) return false;
    const auto view = daemon.ask([this](Controller& c) { return c.show(job); });
    // One more look after the end: what it wrote last.
    ended = !view || jobs::ended(view->row.phase);
    if (!ended) usleep(100'000);
    return true;
  }
};

}  // namespace

http::Response ok(const Json& json) { return {200, "application/json", dump(json), nullptr}; }

int64_t number(std::string_view text, const std::string& what) {
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) {
    throw Error(Code::invalid_argument, what + " is not a whole number", std::string(text));
  }
  return value;
}

int64_t query_number(const http::Request& request, const std::string& name, int64_t otherwise) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? otherwise : number(found->second, name);
}

std::string token_hash(const std::string& token) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (EVP_Digest(token.data(), token.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error(Code::internal, "SHA-256 is not available");
  }
  return hex(digest.data(), size);
}

std::string new_token() {
  std::array<unsigned char, 32> bytes;
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) {
    throw Error(Code::unavailable, "the system gives no random numbers");
  }
  return "dais_" + hex(bytes.data(), bytes.size());
}

http::Response Api::answer(const http::Request& request) {
  try {
    return route(request, caller_of(request));
  } catch (const Error& error) {
    const int status = error.where() == "forbidden"      ? 403
                       : error.where() == "unauthorized" ? 401
                                                         : status_of(error.code());
    return failed(status, error);
  } catch (const Json::exception& problem) {
    return failed(400, Error(Code::invalid_argument,
                             std::string("not what this path takes: ") + problem.what(),
                             request.path, "/v1/openapi.json describes it"));
  } catch (const std::exception& problem) {
    return failed(500, Error(Code::internal, problem.what()));
  }
}

Caller Api::caller_of(const http::Request& request) {
  if (request.peer_user) {
    return {user_name(*request.peer_user),
            *request.peer_user == 0 || *request.peer_user == geteuid()};
  }
  const auto header = request.headers.find("authorization");
  const std::string prefix = "Bearer ";
  if (header == request.headers.end() || !header->second.starts_with(prefix)) {
    throw Error(Code::cancelled, "a token is needed", "unauthorized",
                "Send `Authorization: Bearer TOKEN`; `dais token USER` makes one");
  }
  const std::string hash = token_hash(header->second.substr(prefix.size()));
  try {
    const TokenRow row =
        daemon_.ask([&hash](Controller& controller) { return controller.store().token(hash); });
    return {row.user, row.admin};
  } catch (const Error&) {
    throw Error(Code::cancelled, "the token is not known", "unauthorized",
                "`dais token USER` makes a new one");
  }
}

void Api::check_member(const std::string& project, const Caller& caller) {
  if (caller.admin) return;
  const ProjectRequest found =
      daemon_.ask([&project](Controller& controller) { return controller.project(project); });
  if (found.members.empty() || std::ranges::count(found.members, caller.user)) return;
  forbidden("user " + caller.user + " is no member of project " + project);
}

bool Api::may_see(Controller& controller, const JobView& view, const Caller& caller) {
  if (caller.admin || view.request.user == caller.user) return true;
  const ProjectRequest& project = controller.project(view.request.project);
  return project.members.empty() || std::ranges::count(project.members, caller.user) > 0 ||
         std::ranges::count(project.viewers, caller.user) > 0;
}

// What one may not see does not exist: its number tells nothing.
JobView Api::visible(int64_t job, const Caller& caller) {
  const auto view = daemon_.ask([&](Controller& controller) {
    auto found = controller.show(job);
    return found && may_see(controller, *found, caller) ? found : std::nullopt;
  });
  if (!view) {
    throw Error(Code::not_found, "no such job", "job " + std::to_string(job),
                "`dais jobs --all` lists them");
  }
  return *view;
}

http::Response Api::route(const http::Request& request, const Caller& caller) {
  if (request.path == "/v1/jobs" && request.method == "POST") return submit(request, caller);
  if (request.path == "/v1/jobs" && request.method == "GET") return list(request, caller);
  if (request.path.starts_with("/v1/jobs/")) return job_route(request, caller);
  if (request.path == "/v1/projects") return projects(request, caller);
  if (request.path == "/v1/status" && request.method == "GET") return status();
  if (request.path == "/v1/openapi.json" && request.method == "GET") {
    return {200, "application/json", std::string(openapi_text()), nullptr};
  }
  if (request.path == "/v1/report" && request.method == "GET") return report(request, caller);
  if (request.path == "/v1/history" && request.method == "GET") return history(request);
  if (request.path == "/metrics" && request.method == "GET") return metrics(caller);
  if (request.path == "/v1/tokens" && request.method == "POST") {
    if (!caller.admin) forbidden("only an administrator makes tokens");
    const Json body = parse_json(request.body, request.method + " " + request.path);
    if (!body.is_object() || !body.contains("user") || !body["user"].is_string()) {
      throw Error(Code::invalid_argument, "give {\"user\": NAME, \"admin\": true or false}");
    }
    const std::string token = new_token();
    const TokenRow row{token_hash(token), body["user"], body.value("admin", false)};
    daemon_.ask([&row](Controller& controller) { controller.store().put_token(row); });
    return ok({{"user", row.user}, {"token", token}});
  }
  throw Error(Code::not_found, "no such path", request.method + " " + request.path,
              "docs/jobs_api.md lists them");
}

http::Response Api::job_route(const http::Request& request, const Caller& caller) {
  std::string rest = request.path.substr(std::string("/v1/jobs/").size());
  const size_t slash = rest.find('/');
  const std::string action = slash == std::string::npos ? "" : rest.substr(slash + 1);
  const int64_t job = number(rest.substr(0, slash), "the job");
  const JobView view = visible(job, caller);
  if (request.method == "GET" && action.empty()) return show(job);
  if (request.method == "GET" && action == "log") return log(request, job);
  if (request.method == "GET" && action == "artefacts") return artefacts(job);
  if (request.method == "GET" && action == "artefact") return artefact(request, job);
  if (request.method == "GET" && action == "why") {
    const auto text = daemon_.ask([job](Controller& controller) { return controller.why(job); });
    return ok({{"id", job}, {"why", text}});
  }
  if (request.method != "POST") {
    throw Error(Code::not_found, "no such path", request.method + " " + request.path);
  }
  if (!caller.admin && view.request.user != caller.user) {
    forbidden("the job belongs to " + view.request.user);
  }
  return act(action, job, caller);
}

http::Response Api::act(const std::string& action, int64_t job, const Caller& caller) {
  using Act = void (Controller::*)(int64_t, const std::string&);
  static const std::map<std::string, Act> acts = {{"cancel", &Controller::cancel},
                                                  {"pause", &Controller::pause},
                                                  {"resume", &Controller::resume},
                                                  {"requeue", &Controller::requeue}};
  const auto found = acts.find(action);
  if (found == acts.end()) {
    throw Error(Code::not_found, "no such action", action, "cancel, pause, resume or requeue");
  }
  daemon_.ask([&](Controller& controller) { (controller.*found->second)(job, caller.user); });
  return show(job);
}

http::Response Api::submit(const http::Request& request, const Caller& caller) {
  const Json body = parse_json(request.body, request.method + " " + request.path);
  if (!body.is_object() || !body.contains("jobs") || !body["jobs"].is_array()) {
    throw Error(Code::invalid_argument, "the body is not {\"jobs\": [JOB, …]}", "POST /v1/jobs");
  }
  const std::string key = body.value("key", "");
  if (key.size() > most_key_bytes) {
    throw Error(Code::invalid_argument, "the key is longer than 256 bytes", "POST /v1/jobs");
  }
  std::vector<Controller::Submission> submissions;
  for (const Json& one : body["jobs"]) {
    JobRequest job = request_from_json(one.dump());
    if (job.user.empty() || !caller.admin) job.user = caller.user;
    check_member(job.project, caller);
    for (const int64_t other : job.after) visible(other, caller);
    const std::string index = std::to_string(submissions.size());
    // Nobody is given what somebody else submitted by the same key.
    submissions.push_back(
        {key.empty() ? "" : caller.user + "/" + key + "#" + index, std::move(job)});
  }
  if (submissions.empty()) throw Error(Code::invalid_argument, "no job is given");
  return ok({{"ids", daemon_.submit(std::move(submissions))}});
}

http::Response Api::list(const http::Request& request, const Caller& caller) {
  const bool all = query_number(request, "all", 0) != 0;
  const int64_t before = query_number(request, "before", std::numeric_limits<int64_t>::max());
  const auto most =
      static_cast<int>(std::clamp<int64_t>(query_number(request, "most", 100), 1, 10'000));
  const auto views = daemon_.ask([&](Controller& controller) {
    return controller.list(all, before, most,
                           [&](const JobView& view) { return may_see(controller, view, caller); });
  });
  Json jobs = Json::array();
  for (const JobView& view : views) jobs.push_back(job_json(view, steady_now_s()));
  return ok({{"jobs", jobs}});
}

http::Response Api::show(int64_t job) {
  struct All {
    std::optional<JobView> view;
    std::string why;
    std::vector<EventRow> events;
    std::optional<Controller::Spent> spent;
    Json artefacts;
  };
  const All all = daemon_.ask([job](Controller& controller) {
    All found{controller.show(job), controller.why(job), controller.store().events_of(job),
              controller.spent(job), Json()};
    if (found.view) found.artefacts = artefacts_json(controller.artefacts(), *found.view);
    return found;
  });
  if (!all.view) throw Error(Code::not_found, "no such job", "job " + std::to_string(job));
  Json json = job_json(*all.view, steady_now_s());
  json["why"] = all.why;
  json["used"] = all.spent ? spent_json(*all.spent) : Json();
  json["artefacts"] = all.artefacts;
  json["request"] = Json::parse(to_json(all.view->request));
  json["events"] = Json::array();
  for (const EventRow& event : all.events) {
    json["events"].push_back(
        {{"at_s", event.at_s}, {"kind", event.kind}, {"detail", event.detail}});
  }
  return ok(json);
}

http::Response Api::log(const http::Request& request, int64_t job) {
  const auto view = daemon_.ask([job](Controller& controller) { return controller.show(job); });
  const int64_t attempt = query_number(request, "attempt", view->row.attempts);
  const int64_t task = query_number(request, "task", 0);
  if (attempt < 1 || attempt > view->row.attempts || task < 0 || task >= view->request.tasks) {
    throw Error(Code::not_found, "no such attempt or task", "job " + std::to_string(job),
                "It had " + std::to_string(view->row.attempts) + " attempts of " +
                    std::to_string(view->request.tasks) + " tasks");
  }
  const std::string path = daemon_.ask([&](Controller& controller) {
    return controller.executor().log({job, attempt}, static_cast<int>(task)).string();
  });
  const auto reader = std::make_shared<LogReader>(LogReader{daemon_, job, path});
  reader->follow = query_number(request, "follow", 0) != 0;
  return {200, "text/plain", "", [reader](std::string& piece) { return reader->next(piece); }};
}

http::Response Api::projects(const http::Request& request, const Caller& caller) {
  if (request.method == "PUT") {
    if (!caller.admin) forbidden("only an administrator sets projects");
    const ProjectRequest project = project_from_json(request.body);
    daemon_.ask([&project](Controller& controller) { controller.put_project(project); });
  } else if (request.method != "GET") {
    throw Error(Code::not_found, "no such path", request.method + " " + request.path);
  }
  Json json = Json::array();
  for (const ProjectRequest& project :
       daemon_.ask([](Controller& controller) { return controller.projects(); })) {
    json.push_back(Json::parse(to_json(project)));
  }
  return ok({{"projects", json}});
}

http::Response Api::status() {
  Json json = daemon_.ask([](Controller& controller) {
    const Snapshot& snapshot = controller.snapshot();
    const Capacity& capacity = snapshot.capacity();
    Resources free{capacity.gpu_free(), 0, 0};
    for (HostId id = 0; id < capacity.hosts(); ++id) {
      free.cpu_milli += capacity.host(id).cpu_free;
      free.memory_mib += capacity.host(id).memory_free;
    }
    Json out;
    out["host"] = capacity.host(0).host->name;
    out["hosts"] = capacity.hosts();
    out["gpus"] = capacity.total().gpu_milli / whole_gpu;
    out["gpus_free"] = static_cast<double>(free.gpu_milli) / 1000;
    out["cpus"] = static_cast<double>(capacity.total().cpu_milli) / 1000;
    out["cpus_free"] = static_cast<double>(free.cpu_milli) / 1000;
    out["memory_mib"] = capacity.total().memory_mib;
    out["memory_free_mib"] = free.memory_mib;
    out["jobs_waiting"] = snapshot.waiting().size();
    out["jobs_running"] = snapshot.jobs().size() - snapshot.waiting().size();
    out["walls"] = controller.executor().walls();
    out["walls_missing"] = controller.executor().walls_missing();
    out["disk_full"] = controller.store().degraded();
    out["devices"] = devices_json(controller);
    const devices::Watch::Reading reading = controller.devices();
    out["devices_missing"] = reading.missing;
    out["alerts"] = controller.alerts();
    return out;
  });
  // With Slurm the machines that work are others.
  if (json["hosts"] == 1) json["cpu"] = cpu_json(cpu_.sample());
  return ok(json);
}

}  // namespace dais::jobs
