#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace dais::jobs {

/// A user of this machine, with all that decides what he may open.
struct Account {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;  ///< all he is in
  std::string home;
};

bool is_user(const std::string& name);
/// The number where the machine knows no name for it.
std::string user_name(uid_t user);
/// Nothing when the machine has no such user.
std::optional<Account> account_named(const std::string& name);

/// Throws not_found when the machine has no such user.
Account account_of(const std::string& name);

/// Makes the calling process one of that user, for good; needs root. False, with errno, when the
/// system refuses. Allocates nothing.
bool become(const Account& account);

/// Of the user this program runs as; "/" where the machine knows none.
std::string home_folder();

/// Makes variables those of a user: his home and name, where a request did not choose a home.
void set_user(std::vector<std::string>& environment, const std::string& name,
              const Account& account);

/// The numbers as text and back, for a process that reads its orders; empty text: nobody.
std::string account_text(const std::optional<Account>& account);
std::optional<Account> account_from_text(const char* text);

}  // namespace dais::jobs
