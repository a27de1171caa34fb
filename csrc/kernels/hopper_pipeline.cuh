// The parts of a warp-specialised, persistent kernel on compute capability 9.0 that do not depend on what it computes: the state of
// a pipeline of stages, and the scheduler that gives each cluster its work tiles.
//
// Algorithm: stream-K ("Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Multiplication on the GPU", Osama et al.,
// 2023), hybrid form: full waves of whole tiles first, then the clusters divide the steps of the tiles that remain. The cluster
// that has a tile's first slice adds the partials of the other clusters (the fix-up).
//
// Problem is the kernel's parameter. It has `k_steps()`, the steps of a tile, and `slice_steps[]`, the steps of a slice in each wave,
// which the host chooses so that all clusters end at the same time.
//
// Invariants:
// - The division depends on the sizes and the number of clusters alone, so results are reproducible.
// - A cluster waits only for partials of clusters with lower numbers, and it waits in its last work tile. A cluster that leaves a
//   partial never waits. Blocks start in ascending order (assumed: CUDA does not document it), so a grid ends with any number of
//   resident clusters, down to one.
// - The host launches at most as many clusters as tiles, so that each has a work tile.
#pragma once
#include "types.cuh"

// The stage of a producer or consumer, and the phase parity that a consumer waits for; a producer waits for the other parity
// (CUTLASS's PipelineState).
template <int Count>
struct PipelineState {
    u32 stage = 0;
    u32 phase = 0;

    // The stage before this one.
    __device__ u32 previous() const { return (stage == 0 ? Count : stage) - 1; }

    __device__ void advance() {
        if (++stage == Count) {
            stage = 0;
            phase ^= 1;
        }
    }
};

// A tile, or a slice of its steps.
struct WorkTile {
    i32 tile, first, end;   // Steps.
    i32 partial, partials;  // The first partial to add and their count, or the own partial and `leaves_partial`.

    enum : i32 { leaves_partial = -1 };
};

// The division of the last `tiles` tiles, from step `begin` on, among the first `clusters` clusters. Each cluster takes as many whole
// tiles as all can. Of the tiles that remain, fewer than clusters, as many clusters as tiles take the first slice each, as many
// others the second, and so on. Clusters without a slice divide the remaining steps in the next wave.
//
// So clusters work at the same k at the same time, and the operands that they share are read from memory once.
template <typename Problem, int ClusterSize>
struct Wave {
    const Problem& problem;
    i32 clusters, number = 0, begin = 0;
    i32 divided, whole;  // Tiles.

    __device__ Wave(const Problem& problem, i32 tiles)
        : problem(problem), clusters(gridDim.x / ClusterSize), divided(tiles % clusters), whole(tiles - divided) {}

    __device__ i32 steps() const { return problem.k_steps(); }
    __device__ i32 slice_steps() const { return problem.slice_steps[number]; }
    __device__ i32 slices() const {
        return divided == 0 ? 0 : min(clusters / divided, (steps() - begin + slice_steps() - 1) / slice_steps());
    }
    // Clusters without a slice.
    __device__ i32 idle() const { return clusters - slices() * divided; }
    // Partials of each divided tile: the very first slice of a tile leaves none.
    __device__ i32 partials() const { return slices() - (number == 0); }
    // Becomes the next wave, if this one leaves steps to it.
    __device__ bool next() {
        const i32 end = begin + slices() * slice_steps();
        if (divided == 0 || end >= steps()) return false;
        const i32 rest = idle();
        begin = end;
        clusters = rest;
        whole = divided / clusters * clusters;
        divided -= whole;
        number++;
        return true;
    }
};

// The work tiles of the calling cluster, one after the other.
template <typename Problem, int ClusterSize>
class StreamKScheduler {
    typedef Wave<Problem, ClusterSize> OwnWave;

    const i32 count;
    OwnWave wave;
    i32 at = 0;        // Whole tiles of this wave that are taken; negative after the last work tile.
    i32 partials = 0;  // Of a divided tile, from the waves before this one.

    // The partials of the divided tile number `tile` of the first wave.
    __device__ i32 partials_of(i32 tile) const {
        OwnWave of(wave.problem, count);
        i32 sum = of.partials();
        while (of.next()) {
            if (tile < of.whole) return sum + 1;
            tile -= of.whole;
            sum += of.partials();
        }
        return sum;
    }

   public:
    __device__ StreamKScheduler(const Problem& problem, i32 count) : count(count), wave(problem, count) {}

    // The number of divided tiles.
    __device__ i32 divided() const { return count % (i32)(gridDim.x / ClusterSize); }

    // Returns the next work tile, if there is one.
    __device__ bool next(WorkTile& work) {
        const i32 own = blockIdx.x / ClusterSize;
        while (at >= 0) {
            const i32 first = count - wave.whole - wave.divided, tile = at * wave.clusters + own;
            if (tile < wave.whole) {
                at++;
                work.tile = first + tile;
                work.first = wave.begin;
                work.end = wave.steps();
                work.partials = 0;
                if (wave.number > 0) leave_partial(work, partials);
                return true;
            }
            if (own >= wave.idle()) {
                // The clusters with the highest numbers have the first slices, which wait for the others.
                const i32 slice = (wave.clusters - 1 - own) / wave.divided;
                const i32 tile = own - (wave.clusters - (slice + 1) * wave.divided);
                at = -1;
                work.tile = first + wave.whole + tile;
                work.first = wave.begin + slice * wave.slice_steps();
                work.end = min(work.first + wave.slice_steps(), wave.steps());
                leave_partial(work, partials + slice - (wave.number == 0));
                if (wave.number == 0 && slice == 0) {
                    work.partial = tile;
                    work.partials = partials_of(tile);
                }
                return true;
            }
            partials += wave.partials();
            at = wave.next() ? 0 : -1;
        }
        return false;
    }

   private:
    // The sums of the work tile become the partial of its tile with this number.
    __device__ void leave_partial(WorkTile& work, i32 number) const {
        work.partial = number * divided() + work.tile - (count - divided());
        work.partials = WorkTile::leaves_partial;
    }
};
