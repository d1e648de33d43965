#include "jobs/account.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace dais::jobs {

std::optional<Account> account_named(const std::string& name) {
  const passwd* user = getpwnam(name.c_str());
  if (!user) return std::nullopt;
  Account out{user->pw_uid, user->pw_gid, {}, user->pw_dir};
  int count = 32;
  do {
    out.groups.resize(static_cast<size_t>(count));
  } while (getgrouplist(name.c_str(), out.group, out.groups.data(), &count) < 0);
  out.groups.resize(static_cast<size_t>(count));
  return out;
}

bool become(const Account& account) {
  return setgroups(account.groups.size(), account.groups.data()) == 0 &&
         setgid(account.group) == 0 && setuid(account.user) == 0;
}

std::string account_text(const std::optional<Account>& account) {
  if (!account) return {};
  std::string out = std::to_string(account->user) + " " + std::to_string(account->group);
  for (const gid_t group : account->groups) out += " " + std::to_string(group);
  return out;
}

std::optional<Account> account_from_text(const char* text) {
  std::vector<gid_t> numbers;
  for (char* end = nullptr; *text; text = end) {
    numbers.push_back(static_cast<gid_t>(std::strtoul(text, &end, 10)));
    if (end == text) return std::nullopt;
  }
  if (numbers.size() < 2) return std::nullopt;
  return Account{numbers[0], numbers[1], {numbers.begin() + 2, numbers.end()}, {}};
}

}  // namespace dais::jobs
