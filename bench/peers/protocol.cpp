#include "protocol.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace dais::peers {
namespace {

using Clock = std::chrono::steady_clock;

// Bounds the memory for the samples of one command; a tiny model fills it in a few seconds.
constexpr size_t kMaxRuns = 200'000;

double microseconds(Clock::duration span) {
  return std::chrono::duration<double, std::micro>(span).count();
}

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  return out + '"';
}

std::string load(Engine& engine, std::istringstream& words) {
  int threads = 0;
  std::string model;
  words >> threads >> std::ws;
  if (threads < 1 || !std::getline(words, model)) {
    throw std::runtime_error("usage: load THREADS MODEL");
  }
  const auto start = Clock::now();
  engine.load(model, threads);
  std::ostringstream reply;
  reply << ",\"version\":" << json_text(engine.version())
        << ",\"load_ms\":" << microseconds(Clock::now() - start) / 1000;
  return reply.str();
}

std::string run(Engine& engine, std::istringstream& words) {
  size_t count = 0;
  double seconds = 0;
  if (!(words >> count >> seconds)) throw std::runtime_error("usage: run COUNT SECONDS");
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < kMaxRuns &&
         (times.size() < count || microseconds(Clock::now() - begin) < seconds * 1e6)) {
    engine.release_outputs();
    const auto start = Clock::now();
    engine.run();
    times.push_back(microseconds(Clock::now() - start));
  }
  std::ostringstream reply;
  reply << ",\"runs\":" << times.size();
  if (!times.empty()) {
    std::sort(times.begin(), times.end());
    reply << ",\"min_us\":" << times.front() << ",\"median_us\":" << times[times.size() / 2];
  }
  return reply.str();
}

// The high-water mark of resident memory, in the kernel's own words.
std::string peak() {
  std::ifstream status("/proc/self/status");
  std::string word;
  long kilobytes = 0;
  while (status >> word) {
    if (word == "VmHWM:") status >> kilobytes;
  }
  return ",\"peak_mb\":" + std::to_string(static_cast<double>(kilobytes) / 1024);
}

std::string answer(Engine& engine, const std::string& line) {
  std::istringstream words(line);
  std::string command, rest;
  words >> command >> std::ws;
  if (command == "load") return load(engine, words);
  if (command == "run") return run(engine, words);
  if (command == "peak") return peak();
  std::getline(words, rest);
  if (command == "input") {
    engine.set_input(read_tensor(rest));
  } else if (command == "save") {
    engine.save_outputs(rest);
  } else {
    throw std::runtime_error("unknown command " + command);
  }
  return "";
}

}  // namespace

int answer_commands(Engine& engine) {
  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    std::string reply;
    try {
      reply = "{\"ok\":true" + answer(engine, line) + "}";
    } catch (const std::exception& error) {
      reply = "{\"ok\":false,\"error\":" + json_text(error.what()) + "}";
    }
    std::cout << reply << std::endl;
  }
  return 0;
}

}  // namespace dais::peers
