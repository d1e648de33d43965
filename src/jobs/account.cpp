#include "jobs/account.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error.h"

namespace dais::jobs {

namespace {

/// An entry of the users of this machine.
struct Entry {
  std::string name;
  Account account;
};

/// By the call of libc that fills memory of the caller's: threads ask at the same time, and who is
/// asked for must not become who another thread asks for.
template <typename Key>
std::optional<Entry> entry_of(int (*ask)(Key, passwd*, char*, size_t, passwd**), Key key) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  std::vector<char> text(1024);
  passwd user{}, *found = nullptr;
  while (ask(key, &user, text.data(), text.size(), &found) == ERANGE && text.size() < kMostBytes)
    text.resize(text.size() * 2);
  if (!found) return std::nullopt;
  return Entry{user.pw_name, {user.pw_uid, user.pw_gid, {}, user.pw_dir}};
}

}  // namespace

bool is_user(const std::string& name) { return entry_of(getpwnam_r, name.c_str()).has_value(); }

std::string user_name(uid_t user) {
  const auto entry = entry_of(getpwuid_r, user);
  return entry ? entry->name : std::to_string(user);
}

std::optional<Account> account_named(const std::string& name) {
  auto entry = entry_of(getpwnam_r, name.c_str());
  if (!entry) return std::nullopt;
  Account out = std::move(entry->account);
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
  const auto entry = entry_of(getpwuid_r, getuid());
  return entry ? entry->account.home : "/";
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
