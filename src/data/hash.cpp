#include "data/hash.h"

#include <openssl/evp.h>

#include "base/error.h"

namespace dais::data {

struct Sha256::Context {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (!context_->context || EVP_DigestInit_ex(context_->context, EVP_sha256(), nullptr) != 1)
    throw Error(Code::unavailable, "the cryptographic library has no SHA-256");
}
Sha256::~Sha256() = default;

void Sha256::update(Bytes bytes) {
  EVP_DigestUpdate(context_->context, bytes.data(), bytes.size());
}

Sha256::Digest Sha256::finish() {
  Digest digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context_->context, digest.data(), &size);
  DAIS_CHECK(size == digest.size());
  return digest;
}

Sha256::Digest sha256(Bytes bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string hex(const Sha256::Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace dais::data
