#pragma once

#include <string>

#include "jobs/model.h"

namespace dais::jobs {

/// What this machine has for jobs: the CPUs and memory that this process may use, and the NVIDIA
/// devices of the system. What cannot be read counts as none.
Host this_machine();

/// Where a daemon of this user keeps its data unless told: $DAIS_HOME, /var/lib/dais for root, else
/// ~/.dais.
std::string default_data_folder();
/// The socket of the daemon that keeps its data there.
std::string socket_path(const std::string& data_folder);

}  // namespace dais::jobs
