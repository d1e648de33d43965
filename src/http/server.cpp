#include "http/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "http/client.h"

namespace dais::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Unix = asio::local::stream_protocol;
using Tcp = asio::ip::tcp;
using Tls = asio::ssl::stream<Tcp::socket>;
using ErrorCode = boost::system::error_code;
using Clock = std::chrono::steady_clock;

int descriptor(Unix::socket& socket) { return socket.native_handle(); }
int descriptor(Tcp::socket& socket) { return socket.native_handle(); }
int descriptor(Tls& stream) { return stream.next_layer().native_handle(); }

// A peer that left shows as an end of what it sends; over TLS it says so before.
template <typename Socket>
bool left(Socket& socket) {
  char probe;
  const ssize_t got = recv(descriptor(socket), &probe, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got > 0 && std::is_same_v<Socket, Tls>);
}

std::optional<unsigned> user_behind(Unix::socket& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return std::nullopt;
  }
  return peer.uid;
}
std::optional<unsigned> user_behind(Tcp::socket&) { return std::nullopt; }
std::optional<unsigned> user_behind(Tls&) { return std::nullopt; }

/// Whose connections are counted together, and how many they may be.
struct Share {
  std::string peer;
  int most = 0;
};
Share share_of(Unix::socket& socket, const Limits& limits) {
  const auto user = user_behind(socket);
  const bool free = user && (*user == 0 || *user == geteuid());
  return {"user " + (user ? std::to_string(*user) : "unknown"),
          free ? limits.connections : limits.of_one_user};
}
Share share_of(Tcp::socket& socket, const Limits& limits) {
  ErrorCode error;
  const auto peer = socket.remote_endpoint(error);
  return {error ? "gone" : peer.address().to_string(), limits.of_one_address};
}

void split_target(std::string_view target, Request& request) {
  const size_t mark = target.find('?');
  request.path = percent_decode(target.substr(0, mark));
  if (mark == std::string_view::npos) return;
  std::string_view rest = target.substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const size_t equal = pair.find('=');
    const std::string_view value =
        equal == std::string_view::npos ? std::string_view() : pair.substr(equal + 1);
    request.query[percent_decode(pair.substr(0, equal))] = percent_decode(value);
  }
}

Response plain(int status, const std::string& text) {
  return {status, "text/plain", text + "\n", nullptr};
}

template <typename Message>
Request native(Message& message) {
  Request request;
  const auto method = message.method_string();
  request.method.assign(method.data(), method.size());
  for (const auto& field : message) {
    std::string name(field.name_string().data(), field.name_string().size());
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    request.headers[name].assign(field.value().data(), field.value().size());
  }
  const auto target = message.target();
  split_target({target.data(), target.size()}, request);
  request.body = std::move(message.body());
  return request;
}

template <typename Socket>
bool write_whole(Socket& socket, const Response& response, unsigned version, bool keep_alive) {
  beast::http::response<beast::http::string_body> message;
  message.version(version);
  message.result(static_cast<unsigned>(response.status));
  message.set(beast::http::field::content_type, response.type);
  message.keep_alive(keep_alive);
  message.body() = response.body;
  message.prepare_payload();
  ErrorCode error;
  beast::http::write(socket, message, error);
  return !error;
}

// `alive` is called before each piece.
template <typename Socket>
bool write_stream(Socket& socket, const Response& response, unsigned version,
                  const std::function<void()>& alive) {
  beast::http::response<beast::http::empty_body> message;
  message.version(version);
  message.result(static_cast<unsigned>(response.status));
  message.set(beast::http::field::content_type, response.type);
  message.chunked(true);
  message.keep_alive(false);
  ErrorCode error;
  beast::http::response_serializer<beast::http::empty_body> serializer(message);
  beast::http::write_header(socket, serializer, error);
  for (std::string piece; !error && response.stream(piece); piece.clear()) {
    alive();
    if (piece.empty()) {
      if (left(socket)) return false;
      continue;
    }
    asio::write(socket, beast::http::make_chunk(asio::buffer(piece)), error);
  }
  if (!error) asio::write(socket, beast::http::make_chunk_last(), error);
  return !error;
}

}  // namespace

struct Server::State {
  State(Handler h, Limits l) : handler(std::move(h)), limits(l) {}

  Handler handler;
  Limits limits;
  asio::io_context context;
  std::list<Unix::acceptor> unix_acceptors;
  std::list<Tcp::acceptor> tcp_acceptors;
  std::list<asio::ssl::context> tls_contexts;
  std::vector<std::string> unix_paths;
  std::vector<std::thread> listeners;
  std::mutex mutex;
  std::condition_variable idle;
  struct Connection {
    Clock::time_point until;  // it is closed then
    std::string peer;
  };
  std::map<int, Connection> open;  // by their sockets
  bool stopping = false;

  template <typename Socket>
  void serve(Socket& socket) noexcept;
  template <typename Socket>
  void answer_requests(Socket& socket);
  template <typename Acceptor>
  void accept(Acceptor& acceptor, asio::ssl::context* tls, const std::shared_ptr<State>& self);
  void sweep();
  Clock::time_point patience() const { return Clock::now() + std::chrono::seconds(limits.idle_s); }
  void expect(int fd, Clock::time_point until);
  bool enter(int fd, Share share);
  void leave(int fd);
};

void Server::State::expect(int fd, Clock::time_point until) {
  const std::lock_guard lock(mutex);
  open.at(fd).until = until;
}

// Closes connections that are silent for too long: their threads see an end.
void Server::State::sweep() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    const auto now = Clock::now();
    for (const auto& [fd, connection] : open) {
      if (connection.until < now) shutdown(fd, SHUT_RDWR);
    }
    idle.wait_for(lock, std::chrono::milliseconds(500));
  }
}

bool Server::State::enter(int fd, Share share) {
  const std::lock_guard lock(mutex);
  if (stopping || open.size() >= static_cast<size_t>(limits.connections)) return false;
  const auto his = std::count_if(open.begin(), open.end(), [&share](const auto& one) {
    return one.second.peer == share.peer;
  });
  if (his >= share.most) return false;
  open[fd] = {patience(), std::move(share.peer)};
  return true;
}

void Server::State::leave(int fd) {
  const std::lock_guard lock(mutex);
  open.erase(fd);
  idle.notify_all();
}

template <typename Socket>
void Server::State::serve(Socket& socket) noexcept try {
  answer_requests(socket);
} catch (const std::exception&) {
  // No memory for a request: this connection ends, the others do not.
}

template <typename Socket>
void Server::State::answer_requests(Socket& socket) {
  const int fd = descriptor(socket);
  beast::flat_buffer buffer;
  while (true) {
    expect(fd, patience());
    beast::http::request_parser<beast::http::string_body> parser;
    parser.header_limit(static_cast<uint32_t>(limits.header_bytes));
    parser.body_limit(limits.body_bytes);
    ErrorCode error;
    beast::http::read(socket, buffer, parser, error);
    if (error == beast::http::error::body_limit || error == beast::http::error::header_limit) {
      write_whole(socket, plain(413, "the request is larger than the limit"), 11, false);
      return;
    }
    if (error &&
        error.category() ==
            beast::http::make_error_code(beast::http::error::bad_method).category() &&
        error != beast::http::error::end_of_stream) {
      write_whole(socket, plain(400, error.message()), 11, false);
      return;
    }
    if (error) return;
    auto message = parser.release();
    const unsigned version = message.version();
    const bool keep_alive = message.keep_alive();
    // However long the answer takes is not the peer's fault.
    expect(fd, Clock::time_point::max());
    Response response;
    try {
      Request request = native(message);
      request.peer_user = user_behind(socket);
      response = handler(request);
    } catch (const Error& problem) {
      response = plain(400, problem.what());
    }
    expect(fd, patience());
    if (response.stream) {
      write_stream(socket, response, version, [this, fd] { expect(fd, patience()); });
      return;
    }
    if (!write_whole(socket, response, version, keep_alive) || !keep_alive) return;
  }
}

template <typename Acceptor>
void Server::State::accept(Acceptor& acceptor, asio::ssl::context* tls,
                           const std::shared_ptr<State>& self) {
  while (true) {
    ErrorCode error;
    auto socket = acceptor.accept(error);
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
    }
    if (error) {
      // Out of descriptors or a peer that left at once: not a reason to stop listening.
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    const int fd = socket.native_handle();
    if (!enter(fd, share_of(socket, limits))) {
      if (!tls) write_whole(socket, plain(503, "too many connections"), 11, false);
      continue;
    }
    auto talk = [=, connection = std::move(socket)]() mutable {
      if constexpr (std::is_same_v<Acceptor, Tcp::acceptor>) {
        if (tls) {
          Tls secured(std::move(connection), *tls);
          ErrorCode failed;
          secured.handshake(Tls::server, failed);
          if (!failed) self->serve(secured);
          // Whoever does not answer the farewell is silent for too long.
          self->expect(fd, self->patience());
          if (!failed) secured.shutdown(failed);
          self->leave(fd);
          return;
        }
      }
      self->serve(connection);
      // Out of the set first: stop() must not touch a number that may be given out again.
      self->leave(fd);
    };
    try {
      std::thread(std::move(talk)).detach();
    } catch (const std::system_error&) {
      leave(fd);  // no thread more: the peer sees its end
    }
  }
}

namespace {

// Whether somebody accepts there. A child that a killed server had just forked may hold its socket
// for some moments more: asked again for a while.
bool served(boost::asio::io_context& context, const std::string& path) {
  for (int asked = 0; asked < 20; ++asked) {
    ErrorCode error;
    Unix::socket probe(context);
    probe.connect(Unix::endpoint(path), error);
    if (error) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  return true;
}

}  // namespace

Server::Server(Handler handler, Limits limits)
    : state_(std::make_shared<State>(std::move(handler), limits)) {
  state_->listeners.emplace_back([state = state_] { state->sweep(); });
}

Server::~Server() { stop(); }

void Server::listen_unix(const std::string& path, unsigned mode) {
  ErrorCode error;
  if (path.size() >= sizeof(sockaddr_un{}.sun_path)) {
    throw Error(Code::unavailable, "the path of the socket is too long", path,
                "Use a data folder with a shorter path");
  }
  if (served(state_->context, path)) {
    throw Error(Code::unavailable, "another process serves this socket", path,
                "Stop it, or use another data folder");
  }
  unlink(path.c_str());
  Unix::acceptor& acceptor = state_->unix_acceptors.emplace_back(state_->context);
  acceptor.open(Unix(), error);
  const mode_t old = umask(0777 & ~mode);
  if (!error) acceptor.bind(Unix::endpoint(path), error);
  umask(old);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw Error(Code::unavailable, "cannot listen: " + error.message(), path,
                "Check the rights of the folder");
  }
  state_->unix_paths.push_back(path);
  state_->listeners.emplace_back(
      [state = state_, &acceptor] { state->accept(acceptor, nullptr, state); });
}

namespace {

void load(asio::ssl::context& context, const TlsFiles& files) {
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  const auto check = [](const ErrorCode& error, const std::string& what, const std::string& file) {
    if (!error) return;
    throw Error(Code::invalid_argument, "no " + what + ": " + error.message(), file,
                "Give PEM files of a certificate and its key; `openssl req -x509 -newkey rsa:3072 "
                "-nodes -keyout key.pem -out certificate.pem -subj /CN=HOST -addext "
                "subjectAltName=DNS:HOST` makes a pair");
  };
  ErrorCode error;
  context.use_certificate_chain_file(files.certificate, error);
  check(error, "certificate", files.certificate);
  context.use_private_key_file(files.key, asio::ssl::context::pem, error);
  check(error, "private key of that certificate", files.key);
}

}  // namespace

int Server::listen_tcp(const std::string& address, int port, const std::optional<TlsFiles>& tls) {
  const std::string where = address + ":" + std::to_string(port);
  ErrorCode error;
  const auto ip = asio::ip::make_address(address, error);
  if (error || port < 0 || port > 65535) {
    throw Error(Code::unavailable, "not an address to listen on", where,
                "Give an IP address such as 127.0.0.1 and a port from 0 to 65535");
  }
  asio::ssl::context* secured = nullptr;
  if (tls) {
    secured = &state_->tls_contexts.emplace_back(asio::ssl::context::tls_server);
    load(*secured, *tls);
  }
  Tcp::acceptor& acceptor = state_->tcp_acceptors.emplace_back(state_->context);
  const Tcp::endpoint endpoint(ip, static_cast<uint16_t>(port));
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw Error(Code::unavailable, "cannot listen: " + error.message(), where,
                "Choose a free port, or 0 for any");
  }
  state_->listeners.emplace_back(
      [state = state_, &acceptor, secured] { state->accept(acceptor, secured, state); });
  return acceptor.local_endpoint().port();
}

void Server::stop() {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    if (state.stopping) return;
    state.stopping = true;
    for (auto& acceptor : state.unix_acceptors) shutdown(acceptor.native_handle(), SHUT_RDWR);
    for (auto& acceptor : state.tcp_acceptors) shutdown(acceptor.native_handle(), SHUT_RDWR);
    for (const auto& [fd, connection] : state.open) shutdown(fd, SHUT_RD);
    state.idle.notify_all();
  }
  for (std::thread& listener : state.listeners) listener.join();
  for (const std::string& path : state.unix_paths) unlink(path.c_str());
  std::unique_lock lock(state.mutex);
  state.idle.wait(lock, [&state] { return state.open.empty(); });
}

}  // namespace dais::http
