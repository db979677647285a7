#include "tuner/report/page/peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "runtime/system/input_error.h"
#include "runtime/system/short_text.h"
#include "runtime/system/strict_json.h"
#include "runtime/system/text_file.h"

namespace hone::tuner {
namespace {

using Input = nlohmann::json;

constexpr std::string_view schema = "hone.compare/1";
constexpr std::size_t most_bytes = std::size_t{64} << 20;

/// Looks at one file and says what of it is wrong.
class PeersFile {
  public:
    PeersFile(const std::string& text, std::string name)
        : name_(std::move(name)), json_(runtime::parse_json_object(text, name_)) {}

    Json read() const {
        const std::string given = text_at(json_, "schema", "the file");
        if (given != schema) {
            throw wrong(fmt::format("schema is '{}', known is '{}': bench/compare_torch.py --out writes it",
                                    runtime::with_short_words(given), schema));
        }
        Json cases = Json::array();
        for (const Input& row : list_at(json_, "results", "the file")) cases.push_back(case_of(row));
        return {{"name", text_at(json_, "name", "the file")},
                {"date", text_at(json_, "date", "the file")},
                {"machine", machine()},
                {"cases", std::move(cases)}};
    }

  private:
    runtime::InputError wrong(const std::string& what) const {
        return runtime::InputError(fmt::format("{}: {}", name_, what));
    }

    const Input& member(const Input& object, const char* key, std::string_view where) const {
        if (!object.is_object() || !object.contains(key))
            throw wrong(fmt::format("{} has no member '{}', which {} has", where, key, schema));
        return object[key];
    }

    std::string text_at(const Input& object, const char* key, std::string_view where) const {
        const Input& value = member(object, key, where);
        if (!value.is_string()) throw wrong(fmt::format("'{}' of {} has to be a text", key, where));
        return value.get<std::string>();
    }

    const Input& list_at(const Input& object, const char* key, std::string_view where) const {
        const Input& value = member(object, key, where);
        if (!value.is_array()) throw wrong(fmt::format("'{}' of {} has to be a list", key, where));
        return value;
    }

    /// "NVIDIA H100, driver 580, torch 2.11": its members in the order of their names but for the device.
    std::string machine() const {
        const Input& machine = member(json_, "machine", "the file");
        std::string text = text_at(machine, "device", "'machine'");
        for (const auto& [key, value] : machine.items()) {
            if (key != "device" && !value.is_null()) text += fmt::format(", {} {}", key, plain(value));
        }
        return text;
    }

    /// A text without its quotes.
    static std::string plain(const Input& value) {
        return value.is_string() ? value.get<std::string>()
                                 : value.dump(-1, ' ', false, Input::error_handler_t::replace);
    }

    Json case_of(const Input& row) const {
        const Input& what = member(row, "case", "a result");
        std::vector<std::string> sizes;
        for (const auto& [key, value] : what.items()) {
            if (key != "op") sizes.push_back(fmt::format("{} {}", key, plain(value)));
        }
        Json peers = Json::array();
        Json hone_us = nullptr;
        for (const Input& peer : list_at(row, "peers", "a result")) {
            const std::string name = text_at(peer, "name", "a peer");
            if (!peer.contains("us")) continue;  // it failed, and "error" says how
            const double us = time_of(peer["us"], name);
            if (name == "hone")
                hone_us = us;
            else
                peers.push_back({{"name", name}, {"us", us}});
        }
        return {{"op", text_at(what, "op", "a case")},
                {"sizes", fmt::format("{}", fmt::join(sizes, ", "))},
                {"hone_us", hone_us},
                {"peers", std::move(peers)}};
    }

    double time_of(const Input& us, const std::string& name) const {
        if (us.is_number() && std::isfinite(us.get<double>()) && us.get<double>() > 0)
            return us.get<double>();
        throw wrong(fmt::format("'us' of peer '{}' is {}: it has to be a positive number of microseconds",
                                runtime::with_short_words(name), runtime::with_short_words(plain(us))));
    }

    std::string name_;
    Input json_;
};

}  // namespace

Json read_peers(const std::filesystem::path& file) {
    return peers_from_json(runtime::read_text_file(file, most_bytes), file.string());
}

Json peers_from_json(const std::string& text, const std::string& file_name) {
    return PeersFile(text, file_name).read();
}

}  // namespace hone::tuner
