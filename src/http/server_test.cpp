#include "http/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
    explicit Guard(std::atomic<bool>& told) : flag(told) {}
    ~Guard() { flag = true; }
    std::atomic<bool>& flag;
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

/// A connection to a server's Unix socket, or -1.
int connected(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy_n(path.c_str(), path.size() + 1, address.sun_path);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

/// Another user's connections: `count` that say nothing. What the last of them is answered.
std::string as_another_user(int count) {
  const std::string path = socket_path();  // this process's
  int answer[2];
  if (pipe(answer) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    int last = -1;
    if (setuid(kNobody) == 0)
      for (int i = 0; i < count; ++i) last = connected(path);
    const std::string text = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    // Who is refused is answered before he has asked.
    send(last, text.data(), text.size(), MSG_NOSIGNAL);
    char line[12] = {};
    const bool told = recv(last, line, sizeof line, MSG_WAITALL) > 0 &&
                      write(answer[1], line, sizeof line) == sizeof line;
    _exit(told ? 0 : 1);
  }
  close(answer[1]);
  std::string out(12, ' ');
  if (read(answer[0], out.data(), out.size()) < 0) out.clear();
  close(answer[0]);
  waitpid(child, nullptr, 0);
  return out;
}

TEST(HttpServer, OneUserKeepsNobodyOut) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  Limits limits;
  limits.connections = 20;  // those that were closed may be counted for a moment
  limits.of_one_user = 2;
  Server server(echo, limits);
  server.listen_unix(socket_path(), 0666);
  EXPECT_EQ(as_another_user(2), "HTTP/1.1 200");
  EXPECT_EQ(as_another_user(3), "HTTP/1.1 503");
  // Who serves may have all.
  int mine[4];
  for (int& fd : mine) fd = connected(socket_path());
  EXPECT_EQ(request("unix:" + socket_path(), "GET", "/").status, 200);
  for (const int fd : mine) close(fd);
}

TEST(HttpServer, OneAddressKeepsNobodyOut) {
  Limits limits;
  limits.of_one_address = 1;
  Server server(echo, limits);
  server.listen_unix(socket_path(), 0600);
  const int port = server.listen_tcp("127.0.0.1", 0);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(request("http://127.0.0.1:" + std::to_string(port), "GET", "/").status, 503);
  EXPECT_EQ(request("unix:" + socket_path(), "GET", "/").status, 200);
  close(fd);
}

TEST(HttpServer, ASilentConnectionIsClosed) {
  Limits limits;
  limits.idle_s = 1;
  Server server(echo, limits);
  server.listen_unix(socket_path(), 0600);
  for (const std::string begun : {"", "GET / HT"}) {
    const int fd = connected(socket_path());
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, begun.data(), begun.size()), static_cast<ssize_t>(begun.size()));
    char byte;
    while (read(fd, &byte, 1) > 0) continue;  // it ends, or the test does not
    close(fd);
  }
}

// A certificate for 127.0.0.1 that vouches for itself, and its key, as PEM files.
TlsFiles own_certificate(const std::string& name) {
  const TlsFiles files{socket_path() + name + ".pem", socket_path() + name + ".key"};
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  X509_EXTENSION* names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(certificate, names, -1);
  X509_EXTENSION_free(names);
  X509_sign(certificate, key, EVP_sha256());
  std::FILE* file = std::fopen(files.certificate.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
  file = std::fopen(files.key.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return files;
}

TEST(HttpServer, OverTlsOnlyATrustedServerIsSpokenTo) {
  const TlsFiles files = own_certificate("a"), others = own_certificate("b");
  Server server(echo);
  const int port = server.listen_tcp("127.0.0.1", 0, files);
  const std::string place = "127.0.0.1:" + std::to_string(port);
  const auto ask = [&](const std::string& endpoint, const std::string& authority) {
    return request(endpoint, "POST", "/x", "body", {}, nullptr, authority);
  };
  EXPECT_EQ(ask("https://" + place, files.certificate).body, "POST /x body");
  // Nobody vouches for it, somebody else does, it has another name, or TLS is not spoken.
  EXPECT_THROW(ask("https://" + place, ""), Error);
  EXPECT_THROW(ask("https://" + place, others.certificate), Error);
  EXPECT_THROW(ask("https://localhost:" + std::to_string(port), files.certificate), Error);
  EXPECT_THROW(ask("http://" + place, ""), Error);
  EXPECT_EQ(ask("https://" + place, files.certificate).status, 200);
  EXPECT_THROW(server.listen_tcp("127.0.0.1", 0, TlsFiles{files.certificate, others.key}), Error);
  EXPECT_THROW(server.listen_tcp("127.0.0.1", 0, TlsFiles{"/none", files.key}), Error);
  server.stop();
  for (const TlsFiles& pair : {files, others}) {
    std::filesystem::remove(pair.certificate);
    std::filesystem::remove(pair.key);
  }
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
