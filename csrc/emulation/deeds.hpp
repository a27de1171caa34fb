// Copies, stores and products, which run beside the threads of the emulated device and are done at a time that the seed draws.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace emulated {

// A copy, store or product in progress. It is done when a thread waits for it, or at any time before.
struct Deed {
    std::function<void()> work;
    std::function<void()> awaited;  // Called where a thread waits for it, after the work.
    bool done = false;
    uint64_t due = 0;  // The step of the machine before which it is not done while threads go on.
    void finish() {
        if (done) return;
        done = true;
        auto own = std::move(work);
        own();
    }
};
typedef std::shared_ptr<Deed> DeedPointer;
// Groups of deeds in the order in which they were committed; the last one is open.
struct Groups {
    std::vector<std::vector<DeedPointer>> groups = std::vector<std::vector<DeedPointer>>(1);
    DeedPointer last;  // For deeds that run in order.
    void add(DeedPointer deed) { groups.back().push_back(std::move(deed)); }
    void commit() { groups.emplace_back(); }
    // Until at most so many committed groups are unfinished.
    void wait(size_t left) {
        while (groups.size() - 1 > left) {
            for (DeedPointer& deed : groups.front()) {
                deed->finish();
                if (deed->awaited) deed->awaited();
            }
            groups.erase(groups.begin());
        }
    }
};
// Counts the turns of threads.
inline uint64_t& steps() {
    static uint64_t count = 0;
    return count;
}
inline std::vector<DeedPointer>& pending() {
    static std::vector<DeedPointer> deeds;
    return deeds;
}
inline DeedPointer begin(std::function<void()> work) {
    DeedPointer deed = std::make_shared<Deed>();
    deed->work = std::move(work);
    if (draw(8) == 0) deed->due = steps() + draw(1 << 17);
    pending().push_back(deed);
    return deed;
}
// Does one of what is pending, and returns whether it did. `goes_on`: some thread does not wait.
inline bool progress(bool goes_on) {
    std::vector<DeedPointer>& deeds = pending();
    while (!deeds.empty()) {
        const size_t at = draw((uint32_t)deeds.size());
        DeedPointer deed = deeds[at];
        if (goes_on && !deed->done && deed->due > steps()) return false;
        deeds[at] = deeds.back();
        deeds.pop_back();
        if (deed->done) continue;
        deed->finish();
        return true;
    }
    return false;
}

}  // namespace emulated
