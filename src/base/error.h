#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dais {

/// Why a call could not go on. `internal` is a bug of dais itself, never the user's.
enum class Code {
  invalid_argument,  ///< the caller's values, flags or input data are wrong
  invalid_model,     ///< a model file breaks its format or the rules of an operator
  unsupported,       ///< well formed, but outside what dais implements
  not_found,         ///< a file, name or device does not exist
  exhausted,         ///< memory, disk or a stated limit ran out
  unavailable,       ///< a device, library or peer does not answer
  cancelled,         ///< stopped on request
  internal,          ///< a broken invariant inside dais
};

std::string_view code_name(Code code);

/// The one exception type: what went wrong, where, and how to mend it.
/// `what()` joins the three parts into one line.
class Error : public std::exception {
 public:
  Error(Code code, std::string what, std::string where = {}, std::string remedy = {});

  const char* what() const noexcept override { return line_.c_str(); }
  Code code() const { return code_; }
  const std::string& problem() const { return problem_; }
  const std::string& where() const { return where_; }
  const std::string& remedy() const { return remedy_; }

  /// The same error seen from a caller that knows a place; an inner place stays in front.
  Error at(std::string_view place) const;

 private:
  Code code_;
  std::string problem_, where_, remedy_, line_;
};

/// "did you mean" candidate: the entry of `names` nearest to `word` by edit distance,
/// or an empty string when none is near enough to be a likely slip.
std::string nearest(std::string_view word, const std::vector<std::string>& names);

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace dais

/// States an invariant of dais itself. Never use it for user input.
#define DAIS_CHECK(condition) \
  (static_cast<bool>(condition) ? void() : ::dais::check_failed(#condition, __FILE__, __LINE__))
