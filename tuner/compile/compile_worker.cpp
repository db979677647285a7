#include "tuner/compile/compile_worker.h"

#include <sys/resource.h>

#include <exception>
#include <memory>
#include <new>

namespace hone::tuner {
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

class Compiler {
  public:
    explicit Compiler(CompileFunction compile) : compile_(compile) {}

    Message answer(const json& request) {
        try {
            return image_reply(request);
        } catch (const std::bad_alloc&) {
            return failure("the compiler ran out of memory");
        } catch (const runtime::NvrtcError& error) {
            return failure(error.what());
        } catch (const std::exception& error) {
            return failure(error.what());
        }
    }

  private:
    Message image_reply(const json& request) {
        if (!nvrtc_) nvrtc_ = runtime::Nvrtc::load();
        runtime::CompiledImage image = compile_(*nvrtc_, compile_request_from_json(request));
        return {json{{"ok", true},
                     {"registers", image.resources.registers},
                     {"shared_bytes", image.resources.shared_bytes},
                     {"spill_bytes", image.resources.spill_bytes}},
                std::move(image.cubin)};
    }

    static Message failure(const std::string& detail) {
        return {json{{"ok", false}, {"detail", detail}}, {}};
    }

    CompileFunction compile_;
    std::shared_ptr<const runtime::Nvrtc> nvrtc_;
};

}  // namespace

json to_json(const runtime::CompileRequest& request) {
    return {{"source", request.source}, {"constants", request.constants}, {"arch", to_string(request.arch)}};
}

runtime::CompileRequest compile_request_from_json(const json& object) {
    const std::optional<Arch> arch = arch_from_name(text(object, "arch"));
    if (!arch) throw ProtocolError("message member 'arch' names no architecture");
    return {.source = text(object, "source"), .constants = text(object, "constants"), .arch = *arch};
}

int serve_compiles(Channel& channel, CompileFunction compile) {
    limit_memory();
    Compiler compiler(compile);
    Message request;
    try {
        while (channel.receive(request, Clock::now() + no_deadline) == Received::message) {
            const Message reply = compiler.answer(request.head);
            channel.send(reply.head, reply.blob, Clock::now() + std::chrono::seconds(30));
        }
    } catch (const ProtocolError&) {
        return 1;
    }
    return 0;
}

}  // namespace hone::tuner
