#include "jobs/account.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"

namespace dais::jobs {

bool is_user(const std::string& name) { return getpwnam(name.c_str()) != nullptr; }

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

Account account_of(const std::string& name) {
  const auto account = account_named(name);
  if (account) return *account;
  throw Error(Code::not_found, "this machine has no user '" + name + "'", {},
              "Add the user, or submit as another");
}

void set_user(std::vector<std::string>& environment, const std::string& name,
              const Account& account) {
  const std::string daemons_home = "HOME=" + home_folder();
  for (std::string& variable : environment) {
    if (variable == daemons_home) variable = "HOME=" + account.home;
  }
  environment.push_back("USER=" + name);
}

std::string home_folder() {
  const passwd* user = getpwuid(getuid());
  return user ? user->pw_dir : "/";
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
