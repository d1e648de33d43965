#include "http/client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "base/error.h"

namespace dais::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Unix = asio::local::stream_protocol;
using Tcp = asio::ip::tcp;
using Tls = asio::ssl::stream<Tcp::socket>;
using ErrorCode = boost::system::error_code;

[[noreturn]] void nobody(const std::string& endpoint, const ErrorCode& error) {
  throw Error(Code::unavailable, "no answer: " + error.message(), endpoint,
              "Check that the server runs and that you may reach it");
}

template <typename Socket>
void read_pieces(Socket& socket, beast::flat_buffer& buffer,
                 beast::http::response_parser<beast::http::buffer_body>& parser,
                 const std::function<bool(std::string_view)>& piece, const std::string& endpoint) {
  std::array<char, 16 << 10> chunk;
  while (!parser.is_done()) {
    parser.get().body().data = chunk.data();
    parser.get().body().size = chunk.size();
    ErrorCode error;
    // Not until the buffer is full: a stream may pause for long.
    beast::http::read_some(socket, buffer, parser, error);
    if (error && error != beast::http::error::need_buffer) nobody(endpoint, error);
    const size_t got = chunk.size() - parser.get().body().size;
    if (got > 0 && !piece(std::string_view(chunk.data(), got))) return;
  }
}

template <typename Socket>
Response converse(Socket& socket, beast::http::request<beast::http::string_body>& message,
                  const std::function<bool(std::string_view)>& piece, const std::string& endpoint) {
  ErrorCode error;
  beast::http::write(socket, message, error);
  if (error) nobody(endpoint, error);
  beast::flat_buffer buffer;
  beast::http::response_parser<beast::http::buffer_body> parser;
  parser.body_limit(uint64_t{1} << 40);
  beast::http::read_header(socket, buffer, parser, error);
  if (error) nobody(endpoint, error);
  Response response;
  response.status = static_cast<int>(parser.get().result_int());
  const auto type = parser.get()[beast::http::field::content_type];
  response.type.assign(type.data(), type.size());
  const bool handed_over = piece && response.status < 300;
  read_pieces(
      socket, buffer, parser,
      [&](std::string_view part) {
        if (handed_over) return piece(part);
        response.body += part;
        return true;
      },
      endpoint);
  return response;
}

struct Address {
  std::string host, port;
};

// Of http://host:port or https://host:port.
Address address_of(const std::string& endpoint) {
  const std::string rest = endpoint.substr(endpoint.find("//") + 2);
  const size_t colon = rest.rfind(':');
  if (colon == std::string::npos) {
    throw Error(Code::invalid_argument, "the endpoint has no port", endpoint,
                "Use http://host:port or https://host:port");
  }
  return {rest.substr(0, colon), rest.substr(colon + 1)};
}

Tcp::socket connect_tcp(asio::io_context& context, const std::string& endpoint) {
  const Address address = address_of(endpoint);
  ErrorCode error;
  Tcp::resolver resolver(context);
  const auto found = resolver.resolve(address.host, address.port, error);
  Tcp::socket socket(context);
  if (!error) asio::connect(socket, found, error);
  if (error) nobody(endpoint, error);
  return socket;
}

// The server must show a certificate for its name that the authority, or one of the system's,
// vouches for.
Response converse_tls(asio::io_context& context, const std::string& endpoint,
                      const std::string& authority,
                      beast::http::request<beast::http::string_body>& message,
                      const std::function<bool(std::string_view)>& piece) {
  asio::ssl::context tls(asio::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  ErrorCode error;
  if (authority.empty()) {
    tls.set_default_verify_paths(error);
  } else {
    tls.load_verify_file(authority, error);
  }
  if (error) {
    throw Error(Code::invalid_argument, "no certificates to trust: " + error.message(), authority,
                "Give a PEM file of the certificate that vouches for the server");
  }
  const std::string host = address_of(endpoint).host;
  Tls stream(connect_tcp(context, endpoint), tls);
  stream.set_verify_mode(asio::ssl::verify_peer);
  stream.set_verify_callback(asio::ssl::host_name_verification(host));
  SSL_set_tlsext_host_name(stream.native_handle(), host.c_str());
  stream.handshake(Tls::client, error);
  if (error) {
    throw Error(Code::unavailable, "the server is not trusted: " + error.message(), endpoint,
                "Name the certificate that vouches for it (--ca), and the server as it does");
  }
  return converse(stream, message, piece, endpoint);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Response request(const std::string& endpoint, std::string_view method, const std::string& target,
                 const std::string& body, const Headers& headers,
                 const std::function<bool(std::string_view)>& piece, const std::string& authority) {
  beast::http::request<beast::http::string_body> message;
  message.version(11);
  message.method_string({method.data(), method.size()});
  message.target(target);
  message.set(beast::http::field::host, "dais");
  for (const auto& [name, value] : headers) message.set(name, value);
  message.keep_alive(false);
  message.body() = body;
  message.prepare_payload();
  asio::io_context context;
  if (endpoint.starts_with("unix:")) {
    ErrorCode error;
    Unix::socket socket(context);
    socket.connect(Unix::endpoint(endpoint.substr(5)), error);
    if (error) nobody(endpoint, error);
    return converse(socket, message, piece, endpoint);
  }
  if (endpoint.starts_with("http://")) {
    Tcp::socket socket = connect_tcp(context, endpoint);
    return converse(socket, message, piece, endpoint);
  }
  if (endpoint.starts_with("https://")) {
    return converse_tls(context, endpoint, authority, message, piece);
  }
  throw Error(Code::invalid_argument, "not an endpoint", endpoint,
              "Use unix:/path, http://host:port or https://host:port");
}

std::string percent_encode(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      throw Error(Code::invalid_argument, "broken percent escape", std::string(text));
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace dais::http
