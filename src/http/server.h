#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "http/message.h"

namespace dais::http {

struct Limits {
  size_t header_bytes = 16 << 10;
  size_t body_bytes = 16 << 20;
  int connections = 256;  ///< more are answered with 503
  /// Of those, what one user of this machine may have (but root and who serves), and one address:
  /// nobody keeps the others out.
  int of_one_user = 64, of_one_address = 192;
  /// A connection is closed when no request came from it for so long, or did not end, or when so
  /// long nothing of an answer was taken.
  int idle_s = 60;
};

/// PEM files of a server: its certificate, with those that vouch for it, and its private key.
struct TlsFiles {
  std::string certificate, key;
};

/// Serves HTTP/1.1 on any number of sockets. The handler runs on a thread of the connection, so
/// many calls may run at once; it must not throw. Stopping waits for the calls that run.
class Server {
 public:
  using Handler = std::function<Response(const Request&)>;

  explicit Server(Handler handler, Limits limits = {});
  ~Server();
  Server(const Server&) = delete;

  /// Listens on a Unix socket; an old one that nobody serves is replaced. `mode` are the rights of
  /// the file. Throws `unavailable` when the path is taken or cannot be made.
  void listen_unix(const std::string& path, unsigned mode);
  /// Listens on an address; port 0 takes any. Returns the port. With `tls` it speaks TLS 1.2 or
  /// newer. Throws `unavailable`, or `invalid_argument` for files that are no certificate and key.
  int listen_tcp(const std::string& address, int port, const std::optional<TlsFiles>& tls = {});
  /// Closes every socket and waits for running calls. Safe to call twice.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dais::http
