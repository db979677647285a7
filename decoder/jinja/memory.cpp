#include "decoder/jinja/memory.h"

#include <algorithm>

#include "decoder/jinja/fault.h"
#include "decoder/jinja/limits.h"
#include "decoder/jinja/operators.h"

namespace hone::decoder::jinja {
namespace {

int depth_of(const Value& value) {
    if (const auto* list = std::get_if<const List*>(&value)) return (*list)->depth;
    if (const auto* dict = std::get_if<const Dict*>(&value)) return (*dict)->depth;
    return 0;
}

int deeper(int depth) {
    if (depth >= max_value_depth)
        throw Fault(fmt::format("lists and objects are more than {} deep in each other", max_value_depth));
    return depth + 1;
}

}  // namespace

Memory::Memory(std::size_t values, std::size_t bytes)
    : steps_left_(max_steps + values * steps_for_value), bytes_left_(max_bytes + bytes * bytes_for_byte) {}

void Memory::step(std::size_t bytes) {
    const std::size_t steps = 1 + bytes / 64;
    if (steps > steps_left_)
        throw Fault(
            fmt::format("the template computes for too long: a text may take {} steps, and {} more "
                        "for each value of the conversation",
                        max_steps, steps_for_value));
    steps_left_ -= steps;
}

void Memory::take(std::size_t bytes) {
    if (bytes > bytes_left_)
        throw Fault(
            fmt::format("the template needs too much memory: a text may take {} MiB, and {} times "
                        "what the conversation has",
                        max_bytes >> 20, bytes_for_byte));
    bytes_left_ -= bytes;
}

std::string_view Memory::keep(std::string text) {
    step(text.size());
    take(sizeof text + text.size());
    return texts_.emplace_back(std::move(text));
}

Value Memory::list(std::vector<Value> items, List::Sort sort) {
    step(items.size() * sizeof(Value));
    take(sizeof(List) + items.size() * sizeof(Value));
    int depth = 0;
    for (const Value& item : items) depth = std::max(depth, depth_of(item));
    return &lists_.emplace_back(List{.items = std::move(items), .sort = sort, .depth = deeper(depth)});
}

Value Memory::dict(std::vector<std::pair<Value, Value>> entries) {
    take(sizeof(Dict) + entries.size() * 2 * sizeof(Value));
    Dict made;
    int depth = 0;
    for (auto& [key, value] : entries) {
        depth = std::max({depth, depth_of(key), depth_of(value)});
        if (const Value* const known = find(*this, made, key))
            *const_cast<Value*>(known) = value;  // of `made`, which is ours
        else
            made.entries.emplace_back(key, value);
    }
    made.depth = deeper(depth);
    return &dicts_.emplace_back(std::move(made));
}

Value Memory::function(Function made) {
    take(sizeof made);
    return &functions_.emplace_back(std::move(made));
}

Loop* Memory::loop(Loop made) {
    take(sizeof made + made.items.size() * sizeof(Value));
    return &loops_.emplace_back(std::move(made));
}

Value Memory::space(std::vector<std::pair<std::string_view, Value>> entries) {
    take(sizeof(Space) + entries.size() * sizeof(entries.front()));
    return &spaces_.emplace_back(Space{std::move(entries)});
}

}  // namespace hone::decoder::jinja
