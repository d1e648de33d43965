// The command line with two devices more: `--device stand-in` drives the emulated device through
// the driver of the tests, which checks how it is used. Complaints, and what is left at the end,
// are written to the error stream and end the program with 3. `--device stand-in-libraries` also
// has the libraries of the tests in place of cuBLASLt.
//
// DAIS_STAND_IN names what goes wrong, so that this program is tested too: "leak" (memory that
// nobody frees).
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/device.h"
#include "backends/cuda/backend.h"
#include "cli/command.h"
#include "stand_in.h"

namespace {

using dais::cuda::StandIn;

constexpr int kComplaints = 3;

std::shared_ptr<dais::Backend> open(bool libraries, dais::MatmulPrecision precision) {
  StandIn& driver = StandIn::instance();
  driver.use_blas(libraries);
  driver.use_dnn(libraries);
  return std::make_shared<dais::cuda::CudaBackend>(dais::cuda::Device::open(driver.tables(), 0),
                                                   precision);
}

void leak() {
  const char* wanted = std::getenv("DAIS_STAND_IN");
  if (!wanted || std::strcmp(wanted, "leak") != 0) return;
  dais::cuda::DevicePointer memory = 0;
  dais::cuda::DriverPool pool = nullptr;
  const dais::cuda::PoolProps props;
  const auto& driver = StandIn::instance().tables().driver.api;
  driver.mem_pool_create(&pool, &props);
  driver.mem_alloc_from_pool_async(&memory, 64, pool, nullptr);
  driver.mem_pool_destroy(pool);
}

}  // namespace

int main(int argc, char** argv) {
  for (const bool libraries : {false, true})
    dais::offer_device(
        libraries ? "stand-in-libraries" : "stand-in",
        [libraries](dais::MatmulPrecision precision) { return open(libraries, precision); });
  const int status = dais::cli::run_program(argc, argv);
  leak();
  size_t found = 0;
  for (const auto& lines : {StandIn::instance().take_complaints(), StandIn::instance().leftovers()})
    for (const std::string& line : lines) {
      std::fprintf(stderr, "stand-in: %s\n", line.c_str());
      ++found;
    }
  return found > 0 ? kComplaints : status;
}
