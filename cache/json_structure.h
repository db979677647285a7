// A look at a JSON text from outside before a tree is made of it: refuses what the tree would hide (keys that
// stand twice) or suffer from (depth). Who derives from it says how, and what else is refused. Not a callback
// of the parser, which looks through all siblings at the end of each object.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hone::cache {

class JsonStructure : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit JsonStructure(std::size_t most_levels) : most_levels_(most_levels) {}

    bool null() final { return true; }
    bool boolean(bool) final { return true; }
    bool number_integer(number_integer_t) final { return true; }
    bool number_unsigned(number_unsigned_t) final { return true; }
    bool number_float(number_float_t, const string_t&) final { return true; }
    bool string(string_t&) final { return true; }
    bool binary(binary_t&) final { return true; }
    bool start_object(std::size_t) final {
        enter();
        object_begins(keys_.size());
        return true;
    }
    bool end_object() final { return leave(); }
    bool start_array(std::size_t) final {
        enter();
        return true;
    }
    bool end_array() final { return leave(); }
    bool key(string_t& name) final {
        if (!keys_.back().insert(name).second) refuse_key(name);
        return true;
    }

  protected:
    /// Objects and arrays that are open, with this one.
    virtual void object_begins(std::size_t /*levels*/) {}
    [[noreturn]] virtual void refuse_depth(std::size_t most_levels) = 0;
    [[noreturn]] virtual void refuse_key(const std::string& name) = 0;

  private:
    void enter() {
        if (keys_.size() == most_levels_) refuse_depth(most_levels_);
        keys_.emplace_back();
    }
    bool leave() {
        keys_.pop_back();
        return true;
    }

    std::size_t most_levels_;
    std::vector<std::set<std::string>> keys_;  ///< keys of the objects that are open; arrays have none
};

}  // namespace hone::cache
