#pragma once

#include <string>
#include <vector>

#include "base/ranks.h"

namespace dais::train {

/// Whether this process was started by mpirun, srun or the like together with others.
bool started_as_rank();

/// The ranks of an MPI job. Opens Open MPI's library while running, so that a build needs no MPI.
/// A thread of its own talks to it: the training goes on while sums are under way. Throws
/// `unavailable` when the library is missing or does not start. The destructor leaves the job in
/// order (it waits for the other ranks); a process that ends otherwise takes the job with it.
std::unique_ptr<RankGroup> open_mpi_ranks();

/// Runs `arguments` (the program first) as so many ranks under mpirun; SIGTERM and SIGINT reach
/// each rank as SIGUSR1. Gives the exit code: that of the first rank that failed.
int launch_ranks(int ranks, const std::vector<std::string>& arguments);

/// For the message when a rank hangs: a file in which each rank counts its steps. Named in the
/// environment by launch_ranks.
inline constexpr const char* kProgressVariable = "DAIS_RANKS_PROGRESS";
inline constexpr int64_t kProgressBytes = 16;  ///< of each rank in that file

}  // namespace dais::train
