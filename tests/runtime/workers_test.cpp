// Worker processes: which program they run, and what a compile worker answers.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/compile/compile_worker.h"
#include "runtime/workers/process.h"
#include "runtime/workers/program.h"
#include "tests/support/fake_machine.h"
#include "tests/support/scratch.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;

fs::path placed(const fs::path& file, fs::perms perms = fs::perms::owner_all) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "a program or a library\n";
    fs::permissions(file, perms);
    return file;
}

TEST_CASE("the program is found beside the library as builds, wheels, archives and packages have it") {
    const test::Scratch scratch;
    const fs::path root = fs::canonical(scratch.path("..")) / scratch.path("x").parent_path().filename();
    struct Layout {
        const char* library;
        const char* program;
    };
    for (const Layout& layout : {Layout{"build/libhone.so.0", "build/hone"},
                                 Layout{"site-packages/hone/lib/libhone.so.0", "site-packages/hone/bin/hone"},
                                 Layout{"usr/lib/x86_64-linux-gnu/libhone.so.0", "usr/bin/hone"}}) {
        CAPTURE(layout.library);
        const fs::path library = placed(root / layout.library);
        CHECK(program_beside(library).empty());
        const fs::path program = placed(root / layout.program);
        CHECK(program_beside(library) == program);
        fs::permissions(program, fs::perms::owner_read);
        if (geteuid() != 0) CHECK(program_beside(library).empty());
    }
    CHECK(program_beside("").empty());
    CHECK(program_beside("build/libhone.so.0").empty());
    CHECK(program_beside(root / "nowhere/libhone.so.0").empty());
}

TEST_CASE("a program that others could have put there is not started") {
    const test::Scratch scratch;
    const fs::path library = placed(scratch.path("own/libhone.so.0"));
    const fs::path program = placed(scratch.path("bin/hone"));
    CHECK_FALSE(program_beside(library).empty());
    fs::permissions(program.parent_path(), fs::perms::all);
    CHECK(program_beside(library).empty());
    fs::permissions(program.parent_path(), fs::perms::owner_all);
    fs::permissions(program, fs::perms::all);
    CHECK(program_beside(library).empty());
    fs::remove(program);
    fs::create_directory(program);
    CHECK(program_beside(library).empty());
}

std::string why_not_started() {
    try {
        (void)WorkerProcess::start(own_worker_program(), "compile", "");
    } catch (const WorkerError& error) {
        return error.what();
    }
    return "";
}

TEST_CASE("HONE_WORKER_EXECUTABLE names the program, or says that there is none") {
    {
        const test::ScopedVariable named("HONE_WORKER_EXECUTABLE", "/opt/hone");
        CHECK(dispatch_worker_program() == "/opt/hone");
        CHECK(own_worker_program() == "/opt/hone");
        CHECK(why_not_started() ==
              "cannot start /opt/hone, which HONE_WORKER_EXECUTABLE names: No such file or directory");
    }
    const test::ScopedVariable named("HONE_WORKER_EXECUTABLE", "off");
    CHECK(dispatch_worker_program().empty());
    CHECK(own_worker_program() == "/proc/self/exe");
}

TEST_CASE("a program that is no worker's is not started as one") {
    const test::ScopedVariable named("HONE_WORKER_EXECUTABLE", std::nullopt);
    CHECK(dispatch_worker_program().empty());
    CHECK(own_worker_program() == "/proc/self/exe");
}

/// What a compile worker answers to this request, changed.
template <class Change>
nlohmann::json answer(Change change) {
    const test::FakeMachine fakes;
    const CompileRequest request{.source = "rmsnorm/reference.cu", .constants = "", .arch = {9, 0, true}};
    nlohmann::json head = to_json(request);
    head["build"] = build_text(request);
    head["nvrtc"] = "13.0";
    change(head);
    WorkerProcess worker = WorkerProcess::start("/proc/self/exe", compile_kind);
    worker.channel().send(head, {}, Clock::now() + std::chrono::seconds(60));
    Message reply;
    REQUIRE(worker.channel().receive(reply, Clock::now() + std::chrono::seconds(60)) == Received::message);
    CHECK(reply.blob.empty() != boolean(reply.head, "ok"));
    return reply.head;
}

TEST_CASE("a compile worker refuses what it has not, and does not call that an error of the source") {
    CHECK(boolean(answer([](auto&) {}), "ok"));
    const auto refused = [](const nlohmann::json& reply, const std::string& words) {
        CHECK_FALSE(boolean(reply, "ok"));
        CHECK(boolean(reply, "refused"));
        CHECK(text(reply, "detail").find(words) != std::string::npos);
    };
    refused(answer([](auto& head) { head["build"] = "0123 --std=c++20"; }), "of another version");
    refused(answer([](auto& head) { head["source"] = "rmsnorm/of_tomorrow.cu"; }), "of another version");
    refused(answer([](auto& head) { head.erase("build"); }), "build");
    refused(answer([](auto& head) { head["nvrtc"] = "12.4"; }), "NVRTC 13.0 and not 12.4");
    refused(answer([](auto& head) { head["arch"] = 9; }), "arch");
}

}  // namespace
}  // namespace hone::runtime
