#include "backends/cuda/emulated/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "backends/cuda/emulated/block.h"
#include "backends/cuda/emulated/process.h"
#include "base/error.h"

namespace dais::cuda::emulated {
namespace {

/// One loaded library's segments.
struct Segments {
  const void* inside;
  const unsigned char* base = nullptr;
  Region data = {};
  size_t shared_bytes = 0;
  const unsigned char* shared = nullptr;
};

int look_at(dl_phdr_info* info, size_t, void* context) {
  auto& wanted = *static_cast<Segments*>(context);
  const auto* base = reinterpret_cast<const unsigned char*>(info->dlpi_addr);
  const unsigned char *first = nullptr, *last = nullptr;
  size_t shared_bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_TLS) shared_bytes = header.p_memsz;
    if (header.p_type != PT_LOAD) continue;
    const unsigned char* from = base + header.p_vaddr;
    if (!first || from < first) first = from;
    if (!last || from + header.p_memsz > last) last = from + header.p_memsz;
  }
  const auto* inside = static_cast<const unsigned char*>(wanted.inside);
  if (!first || inside < first || inside >= last) return 0;
  wanted.base = base;
  wanted.data = {first, static_cast<size_t>(last - first)};
  wanted.shared_bytes = shared_bytes;
  wanted.shared = static_cast<const unsigned char*>(info->dlpi_tls_data);
  return 1;
}

[[noreturn]] void refuse(const std::string& reason) {
  throw Error(Code::invalid_argument, "the image is no module of the emulated device: " + reason,
              {}, "Compile it with this version of dais");
}

}  // namespace

size_t image_bytes(const void* image) {
  ElfW(Ehdr) header;
  std::memcpy(&header, image, SELFMAG);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  std::memcpy(&header, image, sizeof header);
  const size_t bytes = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  return bytes <= (size_t{1} << 30) ? bytes : 0;
}

std::shared_ptr<const Module> Module::load(std::string_view image) {
  std::shared_ptr<Module> module(new Module);
  // A file of its own for each module: two of the same text have variables of their own.
  module->file_ = memfd_create("dais_module", MFD_CLOEXEC);
  if (module->file_ < 0) throw Error(Code::exhausted, "no memory for a module's image");
  for (size_t done = 0; done < image.size();) {
    const ssize_t wrote = write(module->file_, image.data() + done, image.size() - done);
    if (wrote <= 0) throw Error(Code::exhausted, "no memory for a module's image");
    done += static_cast<size_t>(wrote);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(module->file_);
  module->handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module->handle_) refuse(dlerror());
  module->info_ = static_cast<const ModuleInfo*>(dlsym(module->handle_, "dais_module"));
  if (!module->info_ || module->info_->version != kAbiVersion) refuse("it is of another version");
  module->info_->attach(&Block::hooks());
  Segments segments{.inside = module->info_};
  dl_iterate_phdr(look_at, &segments);
  module->base_ = segments.base;
  module->data_ = segments.data;
  module->shared_bytes_ = segments.shared_bytes;
  return module;
}

Module::~Module() {
  if (handle_) dlclose(handle_);
  if (file_ >= 0) close(file_);
}

const KernelInfo* Module::kernel(const std::string& name) const {
  return static_cast<const KernelInfo*>(dlsym(handle_, ("dais_kernel_" + name).c_str()));
}

Region Module::shared() const {
  info_->shared();
  Segments segments{.inside = info_};
  dl_iterate_phdr(look_at, &segments);
  return {segments.shared, segments.shared_bytes};
}

Module::Line Module::line_of(const void* site) const {
  if (!site) return {};
  // The call returns to `site`: the call itself is before it.
  const auto offset = static_cast<const unsigned char*>(site) - base_ - 1;
  char address[32];
  std::snprintf(address, sizeof address, "0x%zx", static_cast<size_t>(offset));
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
  const std::string output = run_process({"addr2line", "-i", "-e", path, address}).output;
  for (size_t from = 0; from < output.size();) {
    const size_t end = std::min(output.find('\n', from), output.size());
    std::string entry = output.substr(from, end - from);
    from = end + 1;
    entry = entry.substr(0, entry.find(" ("));
    const size_t colon = entry.rfind(':'), slash = entry.rfind('/', colon);
    if (colon == std::string::npos || entry.starts_with("??")) continue;
    std::string file = entry.substr(slash + 1, colon - slash - 1);
    if (file.starts_with("emulated_")) continue;
    return {file, std::atoi(entry.c_str() + colon + 1)};
  }
  return {};
}

}  // namespace dais::cuda::emulated
