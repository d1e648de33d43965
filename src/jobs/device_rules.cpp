#include "jobs/device_rules.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>

namespace dais::jobs {
namespace {

struct Device {
  int major = 0, minor = 0;
};

std::optional<std::vector<Device>> parsed(const std::vector<std::string>& texts) {
  std::vector<Device> out;
  for (const std::string& text : texts) {
    Device device;
    int end = 0;
    const int found = std::sscanf(text.c_str(), "c %d:%d%n", &device.major, &device.minor, &end);
    if (found != 2 || static_cast<size_t>(end) != text.size()) return std::nullopt;
    out.push_back(device);
  }
  return out;
}

bpf_insn instruction(int code, int target, int source, int offset, int value) {
  bpf_insn out{};
  out.code = static_cast<__u8>(code);
  out.dst_reg = static_cast<__u8>(target & 15);
  out.src_reg = static_cast<__u8>(source & 15);
  out.off = static_cast<__s16>(offset);
  out.imm = value;
  return out;
}

// Gives 0, which denies, for a character device of the list and 1 for all others. The list is not
// empty: the system refuses programs of which a part is never reached.
std::vector<bpf_insn> program_of(const std::vector<Device>& denied) {
  constexpr int load = BPF_LDX | BPF_MEM | BPF_W, unless = BPF_JMP | BPF_JNE | BPF_K;
  constexpr int set = BPF_ALU64 | BPF_MOV | BPF_K, leave = BPF_JMP | BPF_EXIT;
  const int per_device = 3, count = static_cast<int>(denied.size());
  std::vector<bpf_insn> out = {
      instruction(load, BPF_REG_2, BPF_REG_1, offsetof(bpf_cgroup_dev_ctx, access_type), 0),
      instruction(load, BPF_REG_3, BPF_REG_1, offsetof(bpf_cgroup_dev_ctx, major), 0),
      instruction(load, BPF_REG_4, BPF_REG_1, offsetof(bpf_cgroup_dev_ctx, minor), 0),
      // The lower half of the kind of access is the kind of device.
      instruction(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 0xffff),
      instruction(unless, BPF_REG_2, 0, count * per_device, BPF_DEVCG_DEV_CHAR),
  };
  for (int i = 0; i < count; ++i) {
    const int to_denial = (count - 1 - i) * per_device + 2;  // past the rest and the two that allow
    out.push_back(instruction(unless, BPF_REG_3, 0, 2, denied[static_cast<size_t>(i)].major));
    out.push_back(instruction(unless, BPF_REG_4, 0, 1, denied[static_cast<size_t>(i)].minor));
    out.push_back(instruction(BPF_JMP | BPF_JA, 0, 0, to_denial, 0));
  }
  for (const int answer : {1, 0}) {
    out.push_back(instruction(set, BPF_REG_0, 0, 0, answer));
    out.push_back(instruction(leave, 0, 0, 0, 0));
  }
  return out;
}

int call(int command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

int load(const std::vector<bpf_insn>& program) {
  static constexpr char license[] = "";
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = reinterpret_cast<__u64>(program.data());
  attributes.insn_cnt = static_cast<__u32>(program.size());
  attributes.license = reinterpret_cast<__u64>(license);
  return call(BPF_PROG_LOAD, attributes);
}

// Attaches to the group, beside programs that are there, or takes away.
bool attach(const std::filesystem::path& group, const std::vector<Device>& denied, bool keep) {
  const int folder = open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int program = folder < 0 ? -1 : load(program_of(denied));
  bool done = program >= 0;
  if (done) {
    bpf_attr attributes;
    std::memset(&attributes, 0, sizeof attributes);
    attributes.target_fd = static_cast<__u32>(folder);
    attributes.attach_bpf_fd = static_cast<__u32>(program);
    attributes.attach_type = BPF_CGROUP_DEVICE;
    attributes.attach_flags = BPF_F_ALLOW_MULTI;
    done = call(BPF_PROG_ATTACH, attributes) == 0;
    attributes.attach_flags = 0;
    if (done && !keep) done = call(BPF_PROG_DETACH, attributes) == 0;
  }
  if (program >= 0) close(program);
  if (folder >= 0) close(folder);
  return done;
}

}  // namespace

bool deny_devices(const std::filesystem::path& group, const std::vector<std::string>& devices) {
  const auto denied = parsed(devices);
  return denied && (denied->empty() || attach(group, *denied, true));
}

bool can_deny_devices(const std::filesystem::path& group) { return attach(group, {{0, 0}}, false); }

}  // namespace dais::jobs
