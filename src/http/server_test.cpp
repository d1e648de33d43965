#include "http/server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "http/client.h"

namespace dais::http {
namespace {

std::string socket_path() {
  return std::filesystem::temp_directory_path() / ("dais_http_" + std::to_string(getpid()));
}

Response echo(const Request& request) {
  std::string text = request.method + " " + request.path;
  for (const auto& [name, value] : request.query) text += " " + name + "=" + value;
  return {200, "text/plain", text + " " + request.body, nullptr};
}

TEST(HttpServer, AnswersOverBothKindsOfSocket) {
  Server server(echo);
  const std::string path = socket_path();
  server.listen_unix(path, 0600);
  const int port = server.listen_tcp("127.0.0.1", 0);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  for (const std::string& endpoint : {"unix:" + path, "http://127.0.0.1:" + std::to_string(port)}) {
    const Response answer = request(endpoint, "POST", "/a%20b?x=1%262&y", "body");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "POST /a b x=1&2 y= body");
  }
  server.stop();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THROW(request("unix:" + path, "GET", "/"), Error);
}

TEST(HttpServer, TellsWhoIsBehindAUnixSocket) {
  std::optional<unsigned> user;
  Server server([&user](const Request& request) {
    user = request.peer_user;
    return Response{};
  });
  server.listen_unix(socket_path(), 0600);
  request("unix:" + socket_path(), "GET", "/");
  EXPECT_EQ(user, getuid());
}

TEST(HttpServer, BoundsWhatItReads) {
  Limits limits;
  limits.body_bytes = 1000;
  Server server(echo, limits);
  server.listen_unix(socket_path(), 0600);
  EXPECT_EQ(request("unix:" + socket_path(), "POST", "/", std::string(1001, 'x')).status, 413);
  EXPECT_EQ(request("unix:" + socket_path(), "GET", "/%zz").status, 400);
}

TEST(HttpServer, StreamsUntilTheReaderLeaves) {
  std::atomic<bool> noticed{false};
  struct Guard {
    std::atomic<bool>& flag;
    ~Guard() { flag = true; }
  };
  Server server([&noticed](const Request&) {
    auto guard = std::make_shared<Guard>(noticed);
    auto sent = std::make_shared<int>(0);
    return Response{200, "text/plain", "", [guard, sent](std::string& piece) {
                      if (++*sent <= 3) {
                        piece = "line\n";
                      } else {
                        std::this_thread::sleep_for(std::chrono::milliseconds(5));
                      }
                      return true;
                    }};
  });
  server.listen_unix(socket_path(), 0600);
  std::string got;
  request("unix:" + socket_path(), "GET", "/", "", {}, [&got](std::string_view piece) {
    got += piece;
    return got.size() < 15;
  });
  EXPECT_EQ(got, "line\nline\nline\n");
  server.stop();
  EXPECT_TRUE(noticed);
}

TEST(HttpServer, ASocketInUseIsNotTaken) {
  Server first(echo), second(echo);
  first.listen_unix(socket_path(), 0600);
  EXPECT_THROW(second.listen_unix(socket_path(), 0600), Error);
}

TEST(PercentEncoding, RoundTrips) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  EXPECT_EQ(percent_decode(percent_encode(every)), every);
  EXPECT_THROW(percent_decode("%"), Error);
  EXPECT_THROW(percent_decode("%4"), Error);
}

}  // namespace
}  // namespace dais::http
