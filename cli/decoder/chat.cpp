#include "cli/decoder/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string_view>
#include <system_error>

#include "cli/console.h"
#include "decoder/engine/growing_text.h"
#include "decoder/error.h"

namespace hone::cli {
namespace {

using End = decoder::TextPiece::End;

constexpr std::size_t max_line_bytes = std::size_t{1} << 20;

/// A line of stdin without its end, or nothing: there is none, or it is longer than anyone types.
std::optional<std::string> line_of_stdin() {
    std::string line;
    for (int c = std::cin.get(); c != EOF && c != '\n'; c = std::cin.get()) {
        if (line.size() == max_line_bytes)
            throw Failure::usage("bad_input", "a line of stdin is longer than a mebibyte");
        line += static_cast<char>(c);
    }
    if (std::ferror(stdin) != 0)
        throw Failure::usage("bad_input",
                             fmt::format("stdin cannot be read: {}", std::generic_category().message(errno)));
    if (line.empty() && std::cin.eof()) return std::nullopt;
    return line;
}

/// False: the reader has gone, who wants no more. Throws Failure where the system does not write.
bool print_answer(std::string_view text) {
    if (print(text)) return true;
    if (errno == EPIPE) return false;
    throw Failure(ExitCode::failure, {"cannot_write", why_not_printed(), ""});
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

Chat::Chat(decoder::TokenEngine& engine, const decoder::Tokenizer& tokenizer,
           const decoder::ChatTemplate& chat, const ChatOptions& options)
    : engine_(engine), tokenizer_(tokenizer), template_(chat), options_(options) {
    if (!options_.system.empty())
        conversation_.push_back({.role = decoder::Role::system, .content = options_.system});
}

std::int64_t Chat::run(const std::atomic<bool>& stop, bool has_prompt) {
    std::int64_t answers = 0;
    while (!stop) {
        if (has_prompt && !print_answer("> ")) break;
        const std::optional<std::string> line = line_of_stdin();
        if (!line && has_prompt) static_cast<void>(print("\n"));
        if (!line || *line == "/exit") break;
        if (is_blank(*line)) continue;
        try {
            if (!answer(*line, stop)) break;
            ++answers;
        } catch (const decoder::EngineFailure& failure) {
            throw Failure(ExitCode::failure, {"gpu_failed", failure.what(), ""});
        } catch (const decoder::DecoderError& refused) {
            conversation_.pop_back();
            Console().warn(refused.what());
        }
    }
    return answers;
}

bool Chat::answer(std::string line, const std::atomic<bool>& stop) {
    conversation_.push_back({.role = decoder::Role::user, .content = std::move(line)});
    decoder::GrowingText growing(engine_, tokenizer_, request(), options_.stops);
    decoder::Message answer{.role = decoder::Role::assistant};
    for (End end = End::none; end == End::none && !stop;) {
        decoder::TextPiece piece = growing.next(std::chrono::milliseconds(100));
        if (!print_answer(piece.text)) return false;
        answer.content += piece.text;
        end = piece.end;
    }
    conversation_.push_back(std::move(answer));
    return print_answer("\n");
}

/// What the conversation has room for is at most what was asked for.
decoder::TextRequest Chat::request() const {
    decoder::TextRequest request = options_.answer;
    request.prompt =
        tokenizer_.encode(template_.render(conversation_, options_.variables), {.add_special_tokens = false});
    const auto room = static_cast<std::int64_t>(engine_.max_context()) - std::ssize(request.prompt);
    request.max_new_tokens = static_cast<int>(
        std::clamp<std::int64_t>(request.max_new_tokens, 1, std::max<std::int64_t>(room, 1)));
    if (const auto turn_end = template_.turn_end()) request.end_ids.push_back(*turn_end);
    return request;
}

}  // namespace hone::cli
