#include "jobs/account.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/error.h"

namespace dais::jobs {
namespace {

TEST(JobsAccount, UsersOfTheMachineAreFound) {
  const auto root = account_named("root");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->user, 0U);
  EXPECT_EQ(std::ranges::count(root->groups, root->group), 1);
  EXPECT_EQ(root->home, "/root");
  EXPECT_FALSE(account_named("nobody-here"));
  EXPECT_THROW(account_of("nobody-here"), Error);
}

/// Many threads ask at once who somebody is, as the scheduler's do of its callers.
TEST(JobsAccountThreads, NobodyBecomesWhoAnotherThreadAsksFor) {
  std::vector<std::thread> threads;
  for (const uid_t user : {uid_t{0}, uid_t{1}, uid_t{65534}, uid_t{4000000}})
    threads.emplace_back([user] {
      const std::string name = user_name(user);
      for (int i = 0; i < 2000; ++i) {
        ASSERT_EQ(user_name(user), name);
        if (user != 4000000) {
          ASSERT_EQ(account_of(name).user, user);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(user_name(0), "root");
  EXPECT_EQ(user_name(4000000), "4000000");
}

TEST(JobsAccount, TextKeepsAllNumbers) {
  const auto same = [](const Account& account) {
    const auto read = account_from_text(account_text(account).c_str());
    return read && read->user == account.user && read->group == account.group &&
           read->groups == account.groups;
  };
  EXPECT_TRUE(same({0, 0, {}, {}}));
  EXPECT_TRUE(same({4'294'967'294U, 100, {100, 27, 4}, {}}));
  EXPECT_EQ(account_text(std::nullopt), "");
  for (const char* text : {"", "1000", "x 1", "1000 1000 video"}) {
    EXPECT_FALSE(account_from_text(text)) << text;
  }
}

TEST(JobsAccount, AProcessHasTheGroupsOfItsUserAndNoOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root becomes somebody else";
  const pid_t child = fork();
  if (child == 0) {
    if (!become({65'534, 65'534, {65'534, 27}, {}})) _exit(1);
    gid_t groups[8];
    const int count = getgroups(8, groups);
    const bool right = count == 2 && std::count(groups, groups + count, gid_t{27}) == 1 &&
                       geteuid() == 65'534 && getegid() == 65'534 && setuid(0) != 0;
    _exit(right ? 0 : 2);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(JobsAccount, AHomeThatTheRequestChoseStays) {
  std::vector<std::string> environment = {"HOME=" + home_folder(), "A=1"};
  set_user(environment, "anna", {1000, 1000, {}, "/srv/anna"});
  EXPECT_EQ(environment, (std::vector<std::string>{"HOME=/srv/anna", "A=1", "USER=anna"}));
  environment = {"HOME=/elsewhere"};
  set_user(environment, "anna", {1000, 1000, {}, "/srv/anna"});
  EXPECT_EQ(environment[0], "HOME=/elsewhere");
}

}  // namespace
}  // namespace dais::jobs
