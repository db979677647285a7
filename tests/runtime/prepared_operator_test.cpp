// Starts threads: the thread sanitizer runs this file, too.
#include "runtime/dispatch/prepared_operator.h"

#include <doctest/doctest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "kernel_templates/norm/norm.h"
#include "runtime/operators/norm.h"
#include "tests/runtime/launched_parameters.h"
#include "tests/runtime/operator_under_test.h"
#include "tests/support/allocation_count.h"
#include "tests/support/sanitized.h"

namespace hone::runtime {
namespace {

/// A dispatcher on a fake GPU, and its kernel.
struct Prepared {
    explicit Prepared(const RmsNorm& norm,
                      std::shared_ptr<const Driver> driver = test::driver_without_launches())
        : dispatcher({.use_cache = false}, std::move(driver)), kernel(test::prepare(dispatcher, norm)) {}
    Dispatcher dispatcher;
    RmsNormKernel kernel;
};

/// Runs over all buckets, `calls` times.
Status run_many(const RmsNormKernel& kernel, const RmsNormArgs& args, std::int64_t max_rows, int calls) {
    for (int i = 0; i < calls; ++i) {
        const std::int64_t rows = (std::int64_t{i} * 7919) % max_rows + 1;
        if (const Status status = kernel.run(nullptr, args, rows); status != Status::ok) return status;
    }
    return Status::ok;
}

/// From here on every system call but the end of the process kills it.
bool forbid_system_calls() {
    std::array<sock_filter, 5> program{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    }};
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// The wait status of a child that forbids system calls and then runs `body`; exit code 99: they cannot be
/// forbidden.
template <class Body>
int status_of_silent_child(Body&& body) {
    const pid_t child = fork();
    if (child == 0) {
        if (!forbid_system_calls()) _exit(99);
        _exit(body());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

TEST_CASE("a million runs allocate nothing") {
    const test::FakeMachine machine;
    const Prepared prepared({.hidden = 4096, .residual = true});
    const RmsNormArgs args = test::untouched_args();
    const std::uint64_t before = test::allocation_count();
    const Status status = run_many(prepared.kernel, args, 8192, 1'000'000);
    const std::uint64_t after = test::allocation_count();
    CHECK(status == Status::ok);
    CHECK(after - before == 0);
}

TEST_CASE("a hundred thousand runs make no system call" * doctest::skip(test::is_sanitized)) {
    const test::FakeMachine machine;
    const Prepared prepared({.hidden = 4096, .residual = true});
    const RmsNormArgs args = test::untouched_args();
    const int status = status_of_silent_child(
        [&] { return run_many(prepared.kernel, args, 8192, 100'000) == Status::ok ? 0 : 1; });
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("the watch over system calls does catch one" * doctest::skip(test::is_sanitized)) {
    const int status = status_of_silent_child([] { return static_cast<int>(syscall(SYS_getppid)); });
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSYS);
}

TEST_CASE("zero rows are fine and launch nothing, whatever the pointers") {
    const test::FakeMachine machine;
    const Prepared prepared({.hidden = 64, .max_rows = 8}, Driver::load());
    CHECK(prepared.kernel.run(nullptr, {}, 0) == Status::ok);
    CHECK(machine.launch_count() == 0);
}

TEST_CASE("each wrong argument has its status, and nothing is launched") {
    const test::FakeMachine machine;
    const Prepared prepared({.hidden = 64, .max_rows = 8, .output = NormOutput::int8, .residual = true},
                            Driver::load());
    const RmsNormArgs good = test::untouched_args();
    const auto run = [&](const RmsNormArgs& args, std::int64_t rows = 8) {
        return prepared.kernel.run(nullptr, args, rows);
    };
    const auto changed = [&](auto change) {
        RmsNormArgs args = good;
        change(args);
        return run(args);
    };
    CHECK(run(good, -1) == Status::bad_rows);
    CHECK(run(good, 9) == Status::bad_rows);
    CHECK(run(good, INT64_MIN) == Status::bad_rows);
    CHECK(changed([](RmsNormArgs& a) { a.x = nullptr; }) == Status::null_pointer);
    CHECK(changed([](RmsNormArgs& a) { a.residual = nullptr; }) == Status::null_pointer);
    CHECK(changed([](RmsNormArgs& a) { a.weight = nullptr; }) == Status::null_pointer);
    CHECK(changed([](RmsNormArgs& a) { a.out = nullptr; }) == Status::null_pointer);
    CHECK(changed([](RmsNormArgs& a) { a.sum = nullptr; }) == Status::null_pointer);
    CHECK(changed([](RmsNormArgs& a) { a.scale = nullptr; }) == Status::null_pointer);
    CHECK(changed([](RmsNormArgs& a) { a.x = reinterpret_cast<void*>(0x10002); }) == Status::misaligned);
    CHECK(changed([](RmsNormArgs& a) { a.scale = reinterpret_cast<float*>(0x60002); }) == Status::misaligned);
    CHECK(changed([](RmsNormArgs& a) { a.x_stride = 63; }) == Status::bad_stride);
    CHECK(changed([](RmsNormArgs& a) { a.out_stride = -64; }) == Status::bad_stride);
    CHECK(changed([](RmsNormArgs& a) { a.sum_stride = 65; }) == Status::misaligned);
    CHECK(changed([](RmsNormArgs& a) { a.epsilon = -1e-9F; }) == Status::bad_epsilon);
    CHECK(changed([](RmsNormArgs& a) { a.epsilon = std::numeric_limits<float>::quiet_NaN(); }) ==
          Status::bad_epsilon);
    CHECK(machine.launch_count() == 0);
    CHECK(run(good) == Status::ok);
    CHECK(machine.launch_count() == 1);
}

TEST_CASE("tensors that the operator does not have are not looked at") {
    const test::FakeMachine machine;
    const Prepared prepared({.hidden = 64, .max_rows = 8}, Driver::load());
    RmsNormArgs args = test::untouched_args();
    args.residual = nullptr;
    args.sum = reinterpret_cast<void*>(1);
    args.scale = nullptr;
    args.sum_stride = 1;
    CHECK(prepared.kernel.run(nullptr, args, 8) == Status::ok);
}

TEST_CASE("an operator with a workspace says how large it has to be, and refuses a call without") {
    const test::FakeMachine machine;
    Dispatcher dispatcher({.use_cache = false}, Driver::load());
    const RmsNormBackwardKernel kernel =
        test::prepare(dispatcher, RmsNormBackward{.hidden = 4096, .max_rows = 1000});
    CHECK(kernel.workspace_bytes(1) >= 4096 * 4);  // a row of partial sums at least
    CHECK(kernel.workspace_bytes(1000) >= kernel.workspace_bytes(999));
    CHECK_THROWS_WITH_AS(static_cast<void>(kernel.workspace_bytes(1001)),
                         "rows is 1001; allowed: 0 to 1000, as prepared", Error);
    CHECK_THROWS_AS(static_cast<void>(kernel.workspace_bytes(-1)), Error);
    CHECK_THROWS_AS(static_cast<void>(RmsNormBackwardKernel().workspace_bytes(1)), Error);

    RmsNormBackwardArgs args{.dy = reinterpret_cast<void*>(0x10000),
                             .x = reinterpret_cast<void*>(0x20000),
                             .weight = reinterpret_cast<void*>(0x30000),
                             .dx = reinterpret_cast<void*>(0x40000),
                             .dweight = reinterpret_cast<void*>(0x50000)};
    CHECK(kernel.run(nullptr, args, 10) == Status::null_pointer);
    args.workspace = reinterpret_cast<void*>(0x60010);
    CHECK(kernel.run(nullptr, args, 10) == Status::misaligned);
    args.workspace = reinterpret_cast<void*>(0x60100);
    CHECK(machine.launch_count() == 0);
    CHECK(kernel.run(nullptr, args, 10) == Status::ok);
    CHECK(machine.launch_count() == 2);  // gradients, and the sum of dweight's parts
    args.dx_stride = 4095;
    CHECK(kernel.run(nullptr, args, 10) == Status::bad_stride);
}

TEST_CASE("an operator without a workspace asks for none") {
    const test::FakeMachine machine;
    const Prepared prepared({.hidden = 64, .max_rows = 8}, Driver::load());
    CHECK(prepared.kernel.workspace_bytes(8) == 0);
}

TEST_CASE("codes of one byte need less alignment than the elements they come from") {
    const test::FakeMachine machine;
    const Prepared prepared({.hidden = 4104, .max_rows = 8, .output = NormOutput::fp8}, Driver::load());
    RmsNormArgs args = test::untouched_args();
    args.out = reinterpret_cast<void*>(0x40008);
    CHECK(prepared.kernel.run(nullptr, args, 8) ==
          Status::ok);  // rows of 4104 codes are multiples of 8 bytes
}

TEST_CASE("an odd row length takes any pointer that fits its element") {
    const test::FakeMachine machine;
    const Prepared prepared({.hidden = 4097, .max_rows = 8}, Driver::load());
    RmsNormArgs args = test::untouched_args();
    args.x = reinterpret_cast<void*>(0x10002);
    CHECK(prepared.kernel.run(nullptr, args, 8) == Status::ok);
    args.x = reinterpret_cast<void*>(0x10001);
    CHECK(prepared.kernel.run(nullptr, args, 8) == Status::misaligned);
}

std::vector<std::uint64_t> launched_with;

CUresult note_parameters(const CUlaunchConfig*, CUfunction, void** parameters, void**) {
    launched_with = test::launched_parameters(norm::call_args, parameters);
    return CUDA_SUCCESS;
}

TEST_CASE("a launch carries the call's own pointers, rows, strides and epsilon") {
    const test::FakeMachine machine;
    const auto driver = std::const_pointer_cast<Driver>(Driver::load());
    driver->cuLaunchKernelEx = note_parameters;  // the fallback launches programmatically on such a GPU
    const Prepared prepared({.hidden = 64, .max_rows = 8}, driver);
    RmsNormArgs args = test::untouched_args();
    args.residual = nullptr;
    args.sum = nullptr;
    args.scale = nullptr;
    args.x_stride = 128;
    args.epsilon = 0.5F;
    REQUIRE(prepared.kernel.run(nullptr, args, 5) == Status::ok);
    using Expected = decltype(launched_with);
    CHECK(launched_with == Expected{0x10000, 0, 0x30000, 0, 0x40000, 0, 0,                     // pointers
                                    5, 128, 64, 64, 64, std::bit_cast<std::uint32_t>(0.5F)});  // scalars
}

TEST_CASE("an empty kernel object says so") {
    CHECK(RmsNormKernel().run(nullptr, {}, 1) == Status::not_prepared);
    CHECK_FALSE(LayerNormKernel());
    CHECK_THROWS_AS(static_cast<void>(RmsNormKernel().reports()), Error);
}

TEST_CASE("ten million runs of sixteen threads are all counted by the origin of their kernel") {
    const test::FakeMachine machine;
    const Prepared prepared({.hidden = 4096});
    constexpr int threads = 16;
    constexpr int calls = 625'000;
    std::vector<std::jthread> running;
    for (int i = 0; i < threads; ++i) {
        running.emplace_back([&] { run_many(prepared.kernel, test::untouched_args(), 8192, calls); });
    }
    running.clear();
    CHECK(prepared.dispatcher.counters().runs_fallback == threads * calls);
    CHECK(prepared.dispatcher.counters().runs_exact == 0);
}

TEST_CASE("kernels run while another thread prepares, explains and drops others") {
    const test::FakeMachine machine;
    Prepared prepared({.hidden = 4096});
    std::atomic<bool> stop{false};
    std::atomic<int> failed{0};
    std::vector<std::jthread> running;
    for (int i = 0; i < 3; ++i) {
        running.emplace_back([&] {
            while (!stop.load())
                failed += run_many(prepared.kernel, test::untouched_args(), 8192, 500) != Status::ok;
        });
    }
    for (const std::int64_t hidden : {1024, 2048, 4096, 8192}) {
        const RmsNormKernel other =
            test::prepare(prepared.dispatcher, RmsNorm{.hidden = hidden, .max_rows = 64});
        CHECK(other.run(nullptr, test::untouched_args(), 64) == Status::ok);
        const Problem largest = problem_of(RmsNorm{.hidden = hidden});
        CHECK(prepared.dispatcher.explain(largest, sizes_of(largest)).bucket.sizes[0].last == 8192);
        CHECK(prepared.dispatcher.last_launch_error().empty());
    }
    stop = true;
    running.clear();
    CHECK(failed == 0);
}

}  // namespace
}  // namespace hone::runtime
