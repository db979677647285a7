#include "decoder/engine/text_output.h"

#include <algorithm>

namespace hone::decoder {

TextOutput::TextOutput(const Tokenizer& tokenizer, std::vector<std::string> stops)
    : stream_(tokenizer.stream()), stops_(std::move(stops)) {
    std::erase(stops_, "");
}

void TextOutput::begin_behind(std::span<const int> ids) {
    for (const int id : ids) static_cast<void>(stream_.push(id));
}

std::string TextOutput::push(int id) { return stopped_ ? std::string() : shown(stream_.push(id)); }

std::string TextOutput::finish() {
    if (stopped_) return {};
    std::string rest = shown(stream_.finish());
    if (!stopped_) rest += std::exchange(pending_, {});
    return rest;
}

std::string TextOutput::shown(std::string more) {
    pending_ += more;
    std::size_t end = std::string::npos;
    for (const std::string& stop : stops_) end = std::min(end, pending_.find(stop));
    if (end != std::string::npos) {
        stopped_ = true;
        return pending_.substr(0, end);
    }
    const std::size_t held = held_back();
    std::string shown = pending_.substr(0, pending_.size() - held);
    pending_.erase(0, shown.size());
    return shown;
}

/// Bytes at the end that a stop may begin with.
std::size_t TextOutput::held_back() const {
    std::size_t most = 0;
    for (const std::string& stop : stops_) {
        for (std::size_t size = std::min(stop.size() - 1, pending_.size()); size > most; --size) {
            if (pending_.ends_with(std::string_view(stop).substr(0, size))) most = size;
        }
    }
    return most;
}

}  // namespace hone::decoder
