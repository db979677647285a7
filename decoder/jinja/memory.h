// What values of one text live in, and how much of it and of the processor's time they may take.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/jinja/value.h"

namespace hone::decoder::jinja {

class Memory {
  public:
    /// For a text made from so many values with so many bytes.
    Memory(std::size_t values, std::size_t bytes);

    // Throw Fault where a limit is reached.
    /// Something that takes a while, and looks at so many bytes.
    void step(std::size_t bytes = 0);
    void take(std::size_t bytes);

    [[nodiscard]] std::string_view keep(std::string text);
    [[nodiscard]] Value text(std::string text) { return text_value(keep(std::move(text))); }
    [[nodiscard]] Value list(std::vector<Value> items, List::Sort sort = List::Sort::list);
    /// Of two entries with a key, the place of the first and the value of the second are kept.
    [[nodiscard]] Value dict(std::vector<std::pair<Value, Value>> entries);
    [[nodiscard]] Value space(std::vector<std::pair<std::string_view, Value>> entries);
    [[nodiscard]] Value function(Function made);
    [[nodiscard]] Loop* loop(Loop made);

  private:
    std::size_t steps_left_;
    std::size_t bytes_left_;
    std::deque<std::string> texts_{};
    std::deque<List> lists_{};
    std::deque<Dict> dicts_{};
    std::deque<Space> spaces_{};
    std::deque<Function> functions_{};
    std::deque<Loop> loops_{};
};

}  // namespace hone::decoder::jinja
