// The parts of a persistent, warp-specialised kernel of compute capability 9.0 that do not depend on its computation: the state of a
// pipeline of stages, and the scheduler that gives each cluster its work tiles.
//
// Algorithm: stream-K ("Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Multiplication on the GPU", Osama et al.,
// 2023), hybrid form: full waves of whole tiles first, then the clusters divide the k steps of the tiles that remain. The cluster
// with a tile's first slice adds the partial sums ("partials") of the other clusters (the fix-up), and stores the tile.
//
// Problem is the kernel's parameter. It has `k_steps()`, the k steps of a tile, and `slice_steps[]`, the steps of a slice in each wave,
// which the host chooses such that all clusters end at about the same time.
//
// Invariants:
// - The division depends on the sizes and the number of clusters alone, so results are reproducible.
// - A cluster waits only for partials of clusters with lower numbers, and only in its last work tile. A cluster that leaves a partial
//   never waits. Blocks start in ascending order (assumed: CUDA does not document it), so the grid makes progress with any number
//   of resident clusters, even one.
// - The host launches no more clusters than work tiles, so that each cluster has one.
#pragma once
#include "types.cuh"

// The stage that a producer or consumer uses next, and the phase parity that a consumer waits for; a producer waits for the other
// parity (CUTLASS's PipelineState).
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

// The unit of scheduling: a tile's k steps from `first` to before `end`.
//
// A work tile with the tile's first step stores the tile, after it has added `partials` partials (0 of an undivided tile), the first of
// which has the index `partial`. Any other work tile stores its sums as the partial of index `partial`; its `partials` is
// `leaves_partial`.
struct WorkTile {
    i32 tile, first, end;
    i32 partial, partials;

    enum : i32 { leaves_partial = -1 };
};

// A wave of the division: `clusters` clusters, those with the lowest numbers, divide the steps from `begin` on of the last tiles.
//
// 1. Each cluster takes the same number of whole tiles (from `begin` to the last step), as many as possible: `whole` tiles in all.
// 2. `divided` tiles remain, fewer than there are clusters. Their steps are cut into slices of `slice_steps()`. As many clusters as
//    divided tiles take the first slice of each, as many others the second slices, and so on while there are enough clusters.
// 3. The clusters that remain without a slice, the `idle()` ones, divide the steps after the last slices in the next wave.
//
// So clusters work at the same k at the same time, and the operands that they share are read from memory once. `number` is the wave's
// number. The first wave (number 0) starts with all tiles and clusters at step 0.
template <typename Problem, int ClusterSize>
struct Wave {
    const Problem& problem;
    i32 clusters, number = 0, begin = 0;
    i32 divided, whole;  // Numbers of tiles.

    __device__ Wave(const Problem& problem, i32 tiles)
        : problem(problem), clusters(gridDim.x / ClusterSize), divided(tiles % clusters), whole(tiles - divided) {}

    __device__ i32 steps() const { return problem.k_steps(); }
    // Steps of a slice; the last slice of a tile may have fewer.
    __device__ i32 slice_steps() const { return problem.slice_steps[number]; }
    // Slices of each divided tile in this wave.
    __device__ i32 slices() const {
        return divided == 0 ? 0 : min(clusters / divided, (steps() - begin + slice_steps() - 1) / slice_steps());
    }
    // Clusters without a slice.
    __device__ i32 idle() const { return clusters - slices() * divided; }
    // Partials of each divided tile from this wave. The slice with a tile's first step leaves none, because it adds the others.
    __device__ i32 partials() const { return slices() - (number == 0); }
    // Becomes the next wave and returns true, if steps remain after this one.
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

// Returns the work tiles of the calling cluster, one after the other (an iterator).
template <typename Problem, int ClusterSize>
class StreamKScheduler {
    typedef Wave<Problem, ClusterSize> OwnWave;

    const i32 count;   // Tiles of the whole product.
    OwnWave wave;      // The wave of the next work tile.
    i32 at = 0;        // Whole tiles of this wave that this cluster has taken; negative after its last work tile.
    i32 partials = 0;  // Partials of a divided tile from the waves before this one.

    // Returns the number of partials of a divided tile, `tile` counting from the first divided tile of the first wave. A tile that a
    // later wave leaves whole gets one more partial, which has all of its remaining steps.
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

    // Returns the number of divided tiles of the first wave: only these have partials.
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
                // Clusters with the highest numbers take the first slices, because those wait for the other slices.
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
    // Makes the work tile store its sums as partial `number` of its tile. Partials of the same number are consecutive, one for each
    // divided tile, so the partials of one tile are `divided()` apart.
    __device__ void leave_partial(WorkTile& work, i32 number) const {
        work.partial = number * divided() + work.tile - (count - divided());
        work.partials = WorkTile::leaves_partial;
    }
};
