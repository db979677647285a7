// The main of every test program. Beyond doctest's own: cases of *_gpu_test.cpp run only where a GPU can be
// used (exit code 77 when nothing else was asked for, which ctest shows as skipped), a filter that matches no
// case fails, and so do cases that start a thread where CTest says that they start none.
#define DOCTEST_CONFIG_IMPLEMENT
#include <dlfcn.h>
#include <sys/single_threaded.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <doctest/doctest.h>

/// A test program that starts copies of itself as worker processes defines this
/// (tests/tuner/worker_entry.cpp).
extern "C" [[gnu::weak]] int hone_test_worker(int argc, char** argv);

namespace {

constexpr int skipped = 77;
unsigned cases_selected = 0;

/// Learns how many cases the filters left.
struct CaseCounter : doctest::IReporter {
    explicit CaseCounter(const doctest::ContextOptions&) {}

    void test_run_end(const doctest::TestRunStats& stats) override {
        cases_selected = stats.numTestCasesPassingFilters;
    }
    void report_query(const doctest::QueryData&) override {
        cases_selected = 1;
    }  // --list-test-cases and its like
    void test_run_start() override {}
    void test_case_start(const doctest::TestCaseData&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("case_counter", 1, CaseCounter);

/// Asks the driver itself, with neither its headers nor our runtime: this decides whether their tests run at
/// all.
bool gpu_is_usable() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) return false;
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
    const auto device_count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
    int devices = 0;
    return init != nullptr && device_count != nullptr && init(0) == 0 && device_count(&devices) == 0 &&
           devices > 0;
}

bool asks_for_gpu_cases_only(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument.find("source-file=") != std::string_view::npos && argument.ends_with("_gpu_test.cpp"))
            return true;
    }
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]).starts_with("--worker=")) {
        return hone_test_worker == nullptr ? 2 : hone_test_worker(argc, argv);
    }
    const bool gpu_only = asks_for_gpu_cases_only(argc, argv);
    doctest::Context context(argc, argv);
    if (!gpu_is_usable()) {
        if (gpu_only) {
            std::puts("skipped: no usable GPU");
            return skipped;
        }
        context.addFilter("source-file-exclude", "*_gpu_test.cpp");
    }
    const bool is_alone = __libc_single_threaded != 0;  // a GPU's driver has threads of its own
    const int result = context.run();
    if (is_alone && __libc_single_threaded == 0 && std::getenv("HONE_TEST_ONE_THREAD") != nullptr) {
        std::fputs(
            "error: a case starts a thread: give its file a line `// Starts threads` and configure anew, so "
            "that the thread sanitizer runs it, too (tests/CMakeLists.txt)\n",
            stderr);
        return 1;
    }
    if (result == 0 && cases_selected == 0) {
        std::fputs("error: no test case matches\n", stderr);
        return 1;
    }
    return result;
}
