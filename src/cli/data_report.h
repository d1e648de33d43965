#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "data/inspection.h"

namespace dais::cli {

/// Everything an inspection found; unreadable samples are all listed.
nlohmann::json json_report(const data::Dataset& dataset, const data::Inspection& seen);
void print_report(const data::Dataset& dataset, const data::Inspection& seen);
/// One page with the mean image and the classes as a picture.
std::string html_report(const data::Dataset& dataset, const data::Inspection& seen);

}  // namespace dais::cli
