// Runs the real hone program in a sandbox of its own: a temporary folder with a cache, a clean environment,
// and no GPU unless a test asks for fake ones.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hone::test {

struct Ended {
    int code = -1;  ///< 128 + signal when a signal ended it
    std::string out;
    std::string err;

    /// stdout as JSON; fails the test when it is not.
    [[nodiscard]] nlohmann::json json() const;
};

[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);
/// Characters of a line of UTF-8.
[[nodiscard]] std::size_t columns_of(const std::string& line);

/// Has escape sequences or other control characters than line feeds.
[[nodiscard]] bool has_controls(const std::string& text);

class Sandbox {
  public:
    Sandbox();
    Sandbox(const Sandbox&) = delete;
    Sandbox& operator=(const Sandbox&) = delete;
    ~Sandbox();

    using Words = std::vector<std::string>;

    /// Runs to the end; stdin is empty. `while_running` is called once with the pid after the program has
    /// started.
    [[nodiscard]] Ended run(const Words& arguments,
                            const std::function<void(pid_t)>& while_running = {}) const;
    /// The same for another program, by its path.
    [[nodiscard]] Ended run_other(const std::string& program, const Words& arguments,
                                  const std::function<void(pid_t)>& while_running = {}) const;
    /// With stdout and stderr on one terminal; everything is in `out`.
    [[nodiscard]] Ended run_on_terminal(const Words& arguments) const;
    /// Another program on a terminal that is closed as soon as it has shown this text.
    [[nodiscard]] Ended run_on_terminal_until(const std::string& program, const Words& arguments,
                                              const std::string& text) const;

    /// Fake GPUs; HONE_FAKE_SCRIPT as in tests/fake_driver/script.h.
    void use_fake_gpus(const std::string& script = "");
    void set(const std::string& name, const std::string& value) { environment_[name] = value; }
    void unset(const std::string& name) { environment_.erase(name); }

    [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }
    std::filesystem::path write(const std::string& name, const std::string& text) const;
    [[nodiscard]] std::string read(const std::string& name) const;

  private:
    [[noreturn]] void exec(const std::string& program, const Words& arguments) const;

    std::filesystem::path folder_;
    std::map<std::string, std::string> environment_;
};

/// Every command that succeeds without a GPU on an empty or a filled cache, with arguments; for checks that
/// hold for all.
[[nodiscard]] std::vector<Sandbox::Words> sample_commands();

}  // namespace hone::test
