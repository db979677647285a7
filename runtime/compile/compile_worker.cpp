#include "runtime/compile/compile_worker.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <memory>
#include <new>

#include <fmt/format.h>

#include "kernel_templates/catalog.h"

namespace hone::runtime {
namespace {

using nlohmann::json;

constexpr auto no_deadline = std::chrono::hours(24 * 365);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  // shadow memory takes terabytes of address space
#else
constexpr bool sanitized = false;
#endif

void limit_memory() {
    if (sanitized) return;
    const auto bytes = static_cast<rlim_t>(compile_memory_limit_bytes);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
}

/// Where memory runs out, this process goes, and not the one that it works for.
void go_first() {
    const UniqueFd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    if (score) [[maybe_unused]]
        const ssize_t written = write(score.get(), "1000", 4);
}

/// The request asks for what this process has not: another version's templates, or another NVRTC.
class Refused : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Compiler {
  public:
    explicit Compiler(CompileFunction compile) : compile_(compile) {}

    Message answer(const json& request) {
        try {
            return image_reply(request);
        } catch (const NvrtcError& error) {
            return {json{{"ok", false},
                         {"refused", error.log().empty()},  // it did not get as far as the source
                         {"detail", error.what()},
                         {"log", error.log()}},
                    {}};
        } catch (const std::bad_alloc&) {
            return refusal("the compiler ran out of memory");
        } catch (const std::exception& error) {
            return refusal(error.what());
        }
    }

  private:
    Message image_reply(const json& head) {
        const CompileRequest request = compile_request_from_json(head);
        check(head, request);
        CompiledImage image = compile_(*nvrtc_, request);
        return {json{{"ok", true},
                     {"registers", image.resources.registers},
                     {"shared_bytes", image.resources.shared_bytes},
                     {"spill_bytes", image.resources.spill_bytes}},
                std::move(image.cubin)};
    }

    void check(const json& head, const CompileRequest& request) {
        if (text(head, "build") != build_text(request))
            throw Refused(fmt::format("the worker is of another version: it has another {}", request.source));
        if (!nvrtc_) nvrtc_ = Nvrtc::load();
        const std::string wanted = text(head, "nvrtc");
        if (!wanted.empty() && wanted != nvrtc_->version())
            throw Refused(fmt::format("the worker finds NVRTC {} and not {}", nvrtc_->version(), wanted));
    }

    static Message refusal(const std::string& detail) {
        return {json{{"ok", false}, {"refused", true}, {"detail", detail}, {"log", ""}}, {}};
    }

    CompileFunction compile_;
    std::shared_ptr<const Nvrtc> nvrtc_;
};

}  // namespace

json to_json(const CompileRequest& request) {
    return {{"source", request.source}, {"constants", request.constants}, {"arch", to_string(request.arch)}};
}

CompileRequest compile_request_from_json(const json& object) {
    const std::optional<Arch> arch = arch_from_name(text(object, "arch"));
    if (!arch) throw ProtocolError("message member 'arch' names no architecture");
    return {.source = text(object, "source"), .constants = text(object, "constants"), .arch = *arch};
}

std::string build_text(const CompileRequest& request) {
    const EmbeddedSource* source = find_source(request.source);
    return fmt::format("{} {}", source == nullptr ? "" : source->hash, compile_options(request.arch));
}

int serve_compiles(Channel& channel, CompileFunction compile_one) {
    limit_memory();
    go_first();
    Compiler compiler(compile_one);
    Message request;
    try {
        while (channel.receive(request, Clock::now() + no_deadline) == Received::message) {
            const Message reply = compiler.answer(request.head);
            // Who asked may stand still, and ends this process where it does not want the answer.
            channel.send(reply.head, reply.blob, Clock::now() + no_deadline);
        }
    } catch (const ProtocolError&) {
        return 1;
    }
    return 0;
}

}  // namespace hone::runtime
