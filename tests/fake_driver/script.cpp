#include "tests/fake_driver/script.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace hone::fake {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const auto end = std::min(text.find(separator, begin), text.size());
        const auto first = text.find_first_not_of(" \n", begin);
        if (first < end) {
            const auto last = text.find_last_not_of(" \n", end - 1);
            parts.push_back(text.substr(first, last - first + 1));
        }
        begin = end + 1;
    }
    return parts;
}

[[noreturn]] void refuse(const std::string& rule, const std::string& why) {
    std::fprintf(stderr, "HONE_FAKE_SCRIPT: %s: %s\n", rule.c_str(), why.c_str());
    std::abort();
}

const std::map<std::string, std::string>& known_keys() {
    static const std::map<std::string, std::string> keys = {
        {"device", " count kind memory "},
        {"driver", " version init init_us init_us_a_gpu "},
        {"alloc", " fail over after times once "},
        {"free", " waits "},
        {"load", " match fail after times once "},
        {"copy", " hang after times once "},
        {"launch",
         " match previous fail hang signal exit us slow sleep_us late_us seeded logits write value offset "
         "idle after times once while "},
        {"noise", " percent seed "},
        {"compile",
         " match fail hang signal exit sleep_us log meet spill registers shared after times once "},
        {"nvrtc", " version archs "},
        {"nvml", " none version throttle tenant refuse sm_mhz power_mw after times once "},
    };
    return keys;
}

Rule parse_rule(const std::string& text) {
    const std::vector<std::string> fields = split(text, ':');
    Rule rule;
    rule.kind = fields.front();
    const auto known = known_keys().find(rule.kind);
    if (known == known_keys().end()) refuse(text, "unknown kind " + rule.kind);
    for (std::size_t i = 1; i < fields.size(); ++i) {
        const auto equals = fields[i].find('=');
        const std::string key = fields[i].substr(0, equals);
        if (known->second.find(" " + key + " ") == std::string::npos) refuse(text, "unknown key " + key);
        rule.fields[key] = equals == std::string::npos ? "" : fields[i].substr(equals + 1);
    }
    return rule;
}

bool has_word(const std::string& words, const std::string& word) {
    return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

bool created_exclusively(const std::string& path) {
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) return false;
    close(file);
    return true;
}

// Counts the event and says whether the rule fires for it.
bool fires(Rule& rule) {
    if (rule.has("while") && access(rule.text("while").c_str(), F_OK) != 0) return false;
    const long hit = ++rule.hits;
    const long first = static_cast<long>(rule.number("after", 1));
    if (hit < first) return false;
    if (rule.has("times") && hit >= first + rule.number("times")) return false;
    return !rule.has("once") || created_exclusively(rule.text("once"));
}

}  // namespace

std::string Rule::text(const std::string& key) const {
    const auto at = fields.find(key);
    return at == fields.end() ? std::string() : at->second;
}

long long Rule::number(const std::string& key, long long otherwise) const {
    return has(key) ? std::strtoll(text(key).c_str(), nullptr, 0) : otherwise;
}

double Rule::real(const std::string& key, double otherwise) const {
    return has(key) ? std::strtod(text(key).c_str(), nullptr) : otherwise;
}

bool matches(const std::string& pattern, const Subject& subject) {
    for (const std::string& word : split(pattern, ',')) {
        const bool is_constant = word.find('=') != std::string::npos;
        const bool found =
            is_constant ? has_word(subject.words, word) : subject.names.find(word) != std::string::npos;
        if (!found) return false;
    }
    return true;
}

Script Script::from_environment() {
    const char* value = std::getenv("HONE_FAKE_SCRIPT");
    Script script;
    script.text_ = value == nullptr ? "" : value;
    for (const std::string& rule : split(script.text_, ';')) script.rules_.push_back(parse_rule(rule));
    return script;
}

std::vector<const Rule*> Script::fire(std::string_view kind, const Subject& subject,
                                      const Subject& previous) {
    std::vector<const Rule*> fired;
    for (Rule& rule : rules_) {
        if (rule.kind != kind || !matches(rule.text("match"), subject)) continue;
        if (rule.has("previous") && !matches(rule.text("previous"), previous)) continue;
        if (fires(rule)) fired.push_back(&rule);
    }
    return fired;
}

const Rule* Script::setting(std::string_view kind, const std::string& key) const {
    const std::vector<const Rule*> all = settings(kind, key);
    return all.empty() ? nullptr : all.back();
}

std::vector<const Rule*> Script::settings(std::string_view kind, const std::string& key) const {
    std::vector<const Rule*> found;
    for (const Rule& rule : rules_) {
        if (rule.kind == kind && rule.has(key)) found.push_back(&rule);
    }
    return found;
}

bool Script::has_rules(std::string_view kind) const {
    return std::ranges::any_of(rules_, [&](const Rule& rule) { return rule.kind == kind; });
}

void act_on_process(const Rule& rule) {
    if (rule.has("sleep_us")) std::this_thread::sleep_for(std::chrono::microseconds(rule.number("sleep_us")));
    if (rule.has("signal")) raise(static_cast<int>(rule.number("signal")));
    if (rule.has("exit")) _exit(static_cast<int>(rule.number("exit")));
}

}  // namespace hone::fake
