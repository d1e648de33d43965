#include "backends/cuda/emulated/compile.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "backends/cuda/emulated/process.h"
#include "backends/cuda/text.h"
#include "base/error.h"
#include "base/file.h"

namespace dais::cuda::emulated {
namespace {

namespace fs = std::filesystem;

/// Behind the program's text. Not the compiler's own choice, which would bring its sanitizer.
constexpr const char* kLinkOptions[] = {"-nodefaultlibs", "-lc", "-lm", "-lgcc"};

std::string compiler() {
  const char* named = std::getenv("DAIS_CXX");
  return named && *named ? named : "g++";
}

fs::path cache_folder() {
  if (const char* folder = std::getenv("DAIS_CACHE")) return fs::path(folder) / "emulated";
  if (const char* folder = std::getenv("XDG_CACHE_HOME")) return fs::path(folder) / "dais/emulated";
  if (const char* home = std::getenv("HOME")) return fs::path(home) / ".cache/dais/emulated";
  return fs::temp_directory_path() / "dais-emulated";
}

/// What the compiler is: its version, asked for once.
const std::string& compiler_version() {
  static const std::string version = run_process({compiler(), "--version"}).output;
  return version;
}

/// FNV-1a over pieces that are told apart by their lengths.
class Digest {
 public:
  void add(std::string_view piece) {
    for (size_t length = piece.size(), i = 0; i < 8; ++i, length >>= 8) byte(length & 0xff);
    for (char c : piece) byte(static_cast<unsigned char>(c));
  }
  std::string text() const {
    std::ostringstream out;
    out << std::hex << low_ << '-' << high_;
    return out.str();
  }

 private:
  void byte(uint64_t value) {
    low_ = (low_ ^ value) * 0x100000001b3;
    high_ = (high_ ^ (value + 0x9e)) * 0x9e3779b97f4a7c15 + (high_ >> 29);
  }
  uint64_t low_ = 0xcbf29ce484222325, high_ = 0x6a09e667f3bcc909;
};

/// Options of NVRTC that mean something to g++, and those that may be passed over.
/// False: NVRTC knows no such option.
bool translate_options(const std::vector<std::string>& options, std::vector<std::string>& out) {
  std::string arch = "800";
  const std::vector<std::string> ignored = {"--use_fast_math",
                                            "-use_fast_math",
                                            "--fmad",
                                            "-fmad",
                                            "--ftz",
                                            "-ftz",
                                            "--prec-div",
                                            "--prec-sqrt",
                                            "-lineinfo",
                                            "--generate-line-info",
                                            "-default-device",
                                            "--device-as-default-execution-space",
                                            "--restrict",
                                            "--maxrregcount",
                                            "--ptxas-options",
                                            "-Xptxas",
                                            "-w",
                                            "--disable-warnings",
                                            "--extra-device-vectorization",
                                            "--device-debug",
                                            "-G",
                                            "--relocatable-device-code",
                                            "-rdc",
                                            "--minimal"};
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& option = options[i];
    const std::string name = option.substr(0, option.find('='));
    const std::string value = name.size() < option.size() ? option.substr(name.size() + 1) : "";
    if (option.starts_with("-D") || option.starts_with("-U") || option.starts_with("-I")) {
      out.push_back(option);
      if (option.size() == 2 && i + 1 < options.size()) out.back() += options[++i];
    } else if (name == "--define-macro" || name == "--include-path") {
      out.push_back((name == "--define-macro" ? "-D" : "-I") + value);
    } else if (name == "--std" || name == "-std") {
      out.push_back("-std=" + value);
    } else if (name == "--gpu-architecture" || name == "-arch") {
      arch.clear();
      for (char c : value)
        if (c >= '0' && c <= '9') arch += c;
      arch += "0";
    } else if (std::find(ignored.begin(), ignored.end(), name) == ignored.end()) {
      return false;
    } else if ((name == "-Xptxas" || name == "--ptxas-options") && value.empty()) {
      ++i;
    }
  }
  out.push_back("-D__CUDA_ARCH__=" + arch);
  return true;
}

std::vector<std::string> command(const CompileJob& job, const std::vector<std::string>& options) {
  std::vector<std::string> line = {compiler(), "-x", "c++", "-std=c++17"};
  line.insert(line.end(), options.begin(), options.end());
  for (const char* option :
       {"-g1", "-fPIC", "-shared", "-w", "-nostdinc++", "-fno-exceptions", "-fno-rtti",
        "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-fvisibility=hidden",
        "-ftls-model=global-dynamic", "-fdiagnostics-color=never"})
    line.emplace_back(option);
  if (job.checked) {
    // Nothing that copies code: the lanes of a warp must pass the same instructions.
    for (const char* option :
         {"-O1", "-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0",
          "-fno-thread-jumps", "-fno-tree-dominator-opts", "-DDAIS_CHECKED"})
      line.emplace_back(option);
  } else {
    line.emplace_back("-O2");
  }
  return line;
}

/// "k.cu:3:7: error: text" becomes "k.cu(3): error: text".
std::string as_nvrtc_writes(const std::string& log, const std::string& folder) {
  std::istringstream lines(log);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    for (size_t at; (at = line.find(folder)) != std::string::npos;) line.erase(at, folder.size());
    const size_t file = line.find(':');
    const size_t number = file == std::string::npos ? file : line.find(':', file + 1);
    const size_t column = number == std::string::npos ? number : line.find(": ", number + 1);
    if (column != std::string::npos &&
        (line.compare(column, 8, ": error:") == 0 || line.compare(column, 8, ": fatal ") == 0))
      line = line.substr(0, file) + "(" + line.substr(file + 1, number - file - 1) + ")" +
             line.substr(column);
    out += line + "\n";
  }
  return out;
}

/// A folder of its own, removed with its contents.
class Workplace {
 public:
  Workplace() {
    std::string name = (fs::temp_directory_path() / "dais-kernel-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw Error(Code::unavailable, "no folder for compiling a kernel can be made in " +
                                         fs::temp_directory_path().string());
    path_ = name;
  }
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path write(const std::string& name, std::string_view contents) const {
    const fs::path path = confined_path(path_, name);
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string digest(const CompileJob& job, const std::vector<std::string>& line) {
  Digest digest;
  digest.add(compiler_version());
  for (const std::string& word : line) digest.add(word);
  digest.add(job.program.name);
  digest.add(translate(job.program.contents));
  for (const char* option : kLinkOptions) digest.add(option);
  for (const SourceFile& header : job.headers) {
    digest.add(header.name);
    digest.add(header.contents);
  }
  for (const Text& text : texts())
    if (text.name.starts_with("emulated_")) digest.add(text.contents);
  return digest.text();
}

void keep(const fs::path& kept, const std::string& image) {
  try {
    fs::create_directories(kept.parent_path());
    write_file(kept, image);
  } catch (const std::exception&) {
    // Without a place to keep it, it is compiled again next time.
  }
}

}  // namespace

Compiled compile(const CompileJob& job) {
  std::vector<std::string> options;
  if (!translate_options(job.options, options))
    return {.image = {}, .log = "an option is unknown", .bad_option = true};
  std::vector<std::string> line = command(job, options);
  const fs::path kept = cache_folder() / (digest(job, line) + ".so");
  if (std::string image = read_file(kept); !image.empty()) return {image, {}, false};

  const Workplace place;
  const std::string folder = place.path().string() + "/";
  const std::string name = fs::path(job.program.name).filename().string();
  for (const Text& text : texts())
    if (text.name.starts_with("emulated_"))
      place.write("emulation/" + std::string(text.name), text.contents);
  for (const SourceFile& header : job.headers)
    place.write("headers/" + header.name, header.contents);
  const fs::path source =
      place.write("program", "#line 1 \"" + name + "\"\n" + translate(job.program.contents));
  const fs::path image = place.path() / "module.so";
  for (const std::string& word :
       {"-I" + folder + "emulation", "-I" + folder + "headers", std::string("-include"),
        folder + "emulation/emulated_cuda.h", source.string(), "-o" + image.string(),
        std::string("-nodefaultlibs"), std::string("-lc"), std::string("-lm"),
        std::string("-lgcc")})
    line.push_back(word);
  const ProcessResult result = run_process(line);
  if (result.status == -1 || result.status == 127)
    return {.image = {},
            .log = "the emulated device compiles kernels with '" + compiler() +
                   "', which does not run; install g++ or name a compiler in DAIS_CXX"};
  if (result.status != 0) return {.image = {}, .log = as_nvrtc_writes(result.output, folder)};
  Compiled done{.image = read_file(image), .log = as_nvrtc_writes(result.output, folder)};
  keep(kept, done.image);
  return done;
}

}  // namespace dais::cuda::emulated
