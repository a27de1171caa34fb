// The kernels ahead of one that may begin before they have ended. Only the contents of memory over time count for the kernel.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace emulated {

struct Fiber;

struct Memory {
    unsigned char* data;
    uint64_t bytes;
};

// The kernels ahead leave what is in memory at the launch. They do so at their end; until then every byte of it is another
// one, and what is written meanwhile is written over.
struct Earlier {
    bool overlaps = false, runs = false;
    unsigned often = 0;  // How seldom they end by themselves; 0: they end where nothing else goes on.
    std::vector<std::pair<Memory, std::vector<unsigned char>>> left;
    std::vector<Fiber*> waiting;

    void begin(const Memory* memory, size_t count, unsigned how_often) {
        overlaps = runs = true;
        often = how_often;
        for (size_t i = 0; i < count; i++) {
            left.push_back({memory[i], {memory[i].data, memory[i].data + memory[i].bytes}});
        }
        for (auto& [of, bytes] : left) {
            for (uint64_t i = 0; i < of.bytes; i++) of.data[i] = (unsigned char)~bytes[i];
        }
    }

    // Who waited for it.
    std::vector<Fiber*> end() {
        runs = false;
        for (auto& [of, bytes] : left) memcpy(of.data, bytes.data(), of.bytes);
        return std::move(waiting);
    }
};

}  // namespace emulated
