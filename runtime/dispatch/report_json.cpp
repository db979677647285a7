#include "runtime/dispatch/report_json.h"

namespace hone::runtime {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const std::vector<SizeRange>& sizes) {
    Json ranges = Json::object();
    for (const SizeRange& size : sizes) ranges[size.name] = {size.first, size.last};
    return ranges;
}

Json as_json(const BucketReport& bucket) {
    return {{"sizes", as_json(bucket.sizes)},     {"candidate", bucket.candidate},
            {"origin", name(bucket.origin)},      {"trust", name(bucket.trust)},
            {"measured_at", bucket.measured_at},  {"image", name(bucket.image)},
            {"load_ms", bucket.load_ms},          {"note", bucket.note},
            {"tune_command", bucket.tune_command}};
}

}  // namespace

Json as_json(const PrepareReport& report) {
    Json buckets = Json::array();
    for (const BucketReport& bucket : report.buckets) buckets.push_back(as_json(bucket));
    Json json = Json::object();
    if (!report.part.empty()) json["part"] = report.part;
    json["problem"] = report.problem;
    json["buckets"] = std::move(buckets);
    json["tune_command"] = report.tune_command;
    json["elapsed_ms"] = report.elapsed_ms;
    return json;
}

Json as_json(const Explanation& explained) {
    const BucketReport& bucket = explained.bucket;
    const bool margin_known = explained.runner_up_us > 0 && explained.measured_us > 0;
    return {
        {"problem", explained.problem},
        {"candidate", bucket.candidate},
        {"origin", name(bucket.origin)},
        {"trust", name(bucket.trust)},
        {"bucket", as_json(bucket.sizes)},
        {"measured_at", bucket.measured_at},
        {"measured_us", explained.measured_us},
        {"measured_on", explained.measured_on},
        {"layer", explained.layer},
        {"chain", explained.chain},
        {"default", explained.fallback},
        {"runner_up", explained.runner_up},
        {"runner_up_us", explained.runner_up_us},
        {"margin", margin_known ? Json(explained.runner_up_us / explained.measured_us - 1) : Json(nullptr)},
        {"tied_with", explained.tied_with},
        {"measured_at_mhz", explained.measured_at_mhz},
        {"tied_within", explained.tied_within},
        {"passed_over", explained.passed_over},
        {"tune_command", bucket.tune_command}};
}

}  // namespace hone::runtime
