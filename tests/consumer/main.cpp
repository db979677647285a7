// What an engine does at start-up, with nothing but the installed package.
#include <cstdio>

#include <hone/hone.h>

int main() {
    try {
        hone::Runtime runtime;
        const hone::RmsNormKernel norm = runtime.prepare(hone::RmsNorm{.hidden = 4096, .max_rows = 16});
        runtime.freeze();
        std::printf("hone %s: %zu buckets\n", std::string(hone::version()).c_str(),
                    norm.reports().front().buckets.size());
        return norm.run(nullptr, {}, 0) == hone::Status::ok ? 0 : 1;
    } catch (const hone::Error& error) {
        std::printf("%s: %s\n%s\n", error.where().c_str(), error.what(), error.hint().c_str());
        return error.kind() == hone::ErrorKind::no_gpu ? 0 : 1;
    }
}
