#include "jobs/json_text.h"

namespace dais::jobs {

nlohmann::ordered_json parse_json(std::string_view text, const std::string& what) {
  using Json = nlohmann::ordered_json;
  constexpr int kDeepest = 32;
  const auto check = [&what](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest)
      throw Error(Code::invalid_argument,
                  "the JSON is nested deeper than " + std::to_string(kDeepest) + " levels", what);
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& problem) {
    throw Error(Code::invalid_argument, std::string("not JSON: ") + problem.what(), what);
  }
}

}  // namespace dais::jobs
