// The part of the HTTP interface that hands out what jobs keep.
#include <unistd.h>

#include "base/error.h"
#include "jobs/api.h"
#include "jobs/api_text.h"
#include "jobs/descriptor.h"

namespace dais::jobs {
namespace {

constexpr size_t piece_bytes = 256 << 10;

const char* state_name(const Artefacts& artefacts, const JobView& view) {
  switch (artefacts.state) {
    case Artefacts::State::kept: return "kept";
    case Artefacts::State::keeping:
      if (ended(view.row.phase)) return "keeping";
      break;
    case Artefacts::State::absent: break;
  }
  return ended(view.row.phase) ? "none" : "later";
}

}  // namespace

Json artefacts_json(const ArtefactKeeper& keeper, const JobView& view) {
  if (view.request.artefacts.empty()) return {};
  const Artefacts all = keeper.read(view.row.id);
  Json json = {{"state", state_name(all, view)}};
  json["files"] = Json::array();
  for (const KeptFile& file : all.files) {
    json["files"].push_back({{"path", file.path}, {"bytes", file.bytes}});
  }
  json["left_out"] = Json::array();
  for (const LeftOut& one : all.left_out) {
    json["left_out"].push_back({{"path", one.path}, {"why", one.why}});
  }
  return json;
}

http::Response Api::artefacts(int64_t job) {
  Json json = daemon_.ask([job](Controller& controller) {
    const auto view = controller.show(job);
    return view ? artefacts_json(controller.artefacts(), *view) : Json();
  });
  return ok({{"id", job}, {"artefacts", std::move(json)}});
}

http::Response Api::artefact(const http::Request& request, int64_t job) {
  const auto path = request.query.find("path");
  if (path == request.query.end()) {
    throw Error(Code::invalid_argument, "which file is missing", "path",
                "Give one of /v1/jobs/" + std::to_string(job) + "/artefacts");
  }
  const auto file = std::make_shared<Descriptor>(daemon_.ask(
      [&](Controller& controller) { return controller.artefacts().open(job, path->second); }));
  return {200, "application/octet-stream", "", [file](std::string& piece) {
            piece.resize(piece_bytes);
            const ssize_t got = read(file->get(), piece.data(), piece.size());
            piece.resize(got > 0 ? static_cast<size_t>(got) : 0);
            return got > 0;
          }};
}

}  // namespace dais::jobs
