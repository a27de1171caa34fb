// y = epilogue(norm(x) W^T + bias) for one to eight rows x, in 16 bits: the products of a step of decoding, which are bound by the loads of
// W. Elements are ELEMENT (-DELEMENT=bf16 or f16), sums are f32.
//
// Entries: gemm_rows_<ELEMENT>_k and _n (RowsProblem). In _k the inputs run along the stored rows of W, (outputs, inputs); in _n the
// outputs do, (inputs, outputs).
//
// Launch: `blocks` blocks of 256 threads (src/gemm/rows.rs), and shared memory for the rows of x and, in _n, for a block's sums. Rows
// of x, W, bias and y begin at multiples of 16 bytes, and so do inputs; outputs too in _n.
//
// Algorithm: each block keeps all rows of x in shared memory, normalised and rounded to ELEMENT. In _k a warp computes two outputs at a
// time: a lane loads 8 inputs of both and multiplies them by all rows of x; the lanes then add their sums. In _n a block computes 16
// outputs at a time: a lane loads 8 of them for one input, warps and lanes take inputs in turns, and shared memory adds their sums.
//
// Epilogue: the bias, an activation, the product with a second one (a gated feed-forward: activation(x W0^T) x W1^T), the residual; y is
// rounded once. Up to three matrices have their outputs behind each other in y.
//
// Invariants: the sums of a row are added in one order, whatever the number of rows and of blocks is. So its bits do not depend on the
// other rows.
//
// | version | change | a step of a Llama of 1.1 B parameters, bf16, one row, H200 |
// |---|---|---|
// | | split-K products of gemm_split.cu, norms and activations by themselves | 1.54 ms |
// | 1 | as above | 1.22 ms |
#include "epilogue.cuh"
#include "instructions.cuh"
#include "numbers.cuh"

// Outside of the anonymous namespace, because the compiler would put a random identifier into its name, a new one in each compilation.
extern __shared__ unsigned char shared_memory[];

enum NormKind : i32 { no_norm, rms_norm, layer_norm };

// Exactly `RowsParameters` of src/gemm/rows.rs. Strides are in elements.
struct alignas(16) RowsProblem {
    const ELEMENT* x;
    const ELEMENT* weights[3];  // Null behind the last matrix.
    const ELEMENT* biases[3];   // Null without.
    const ELEMENT* norm_weight;
    const ELEMENT* norm_bias;
    const ELEMENT* residual;  // Null without; as y.
    ELEMENT* y;
    i64 x_stride, residual_stride, y_stride;
    i32 ends[3];  // The outputs up to the end of each matrix.
    i32 rows, inputs, outputs;
    i32 norm;
    f32 eps, norm_offset;  // The offset is added to the norm's weight.
    i32 activation;        // An ActivationCode (activations.cuh), of the first matrix alone in a gated product.
    i32 is_gated;          // The first matrix is the gate of the second one, and `outputs` those of one.
};

namespace {

enum : int {
    threads = 256,
    warps = 8,
    most_rows = 8,
    warp_outputs = 2,   // Of a warp in _k at a time.
    block_outputs = 16,  // Of a block in _n at a time.
};

// Eight elements.
struct alignas(16) Run {
    u32 words[4];
};

// The lower and the upper element of a word.
__device__ inline f32 low(u32 word) {
    ELEMENT element;
    element.bits = (u16)word;
    return widened(element);
}
__device__ inline f32 high(u32 word) {
    ELEMENT element;
    element.bits = (u16)(word >> 16);
    return widened(element);
}

__device__ inline f32 sum_of_warp(f32 x) {
#pragma unroll
    for (i32 lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffff, x, lanes);
    return x;
}

// Writes the rows of x to shared memory, normalised. Each warp takes whole rows; `x` of row r is at r * inputs.
__device__ inline void store_rows(const RowsProblem& problem, ELEMENT* to) {
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, inputs = problem.inputs;
    if (problem.norm == no_norm) {
        for (i32 at = threadIdx.x * 8; at < problem.rows * inputs; at += threads * 8) {
            const i32 row = at / inputs;
            *(Run*)(to + at) = *(const Run*)(problem.x + row * problem.x_stride + (at - row * inputs));
        }
        return;
    }
    // All warps add up parts of each row, so that one row takes no longer than eight.
    f32* const parts = (f32*)(to + problem.rows * inputs);
    for (i32 row = 0; row < problem.rows; row++) {
        const ELEMENT* const from = problem.x + row * problem.x_stride;
        f32 sum = 0.0f, squares = 0.0f;
        for (i32 at = threadIdx.x * 8; at < inputs; at += threads * 8) {
            const Run run = *(const Run*)(from + at);
            *(Run*)(to + row * inputs + at) = run;
#pragma unroll
            for (i32 i = 0; i < 4; i++) {
                const f32 first = low(run.words[i]), second = high(run.words[i]);
                sum += first + second;
                squares = fmaf(first, first, squares);
                squares = fmaf(second, second, squares);
            }
        }
        sum = sum_of_warp(sum);
        squares = sum_of_warp(squares);
        if (lane == 0) {
            parts[(row * warps + warp) * 2] = sum;
            parts[(row * warps + warp) * 2 + 1] = squares;
        }
    }
    __syncthreads();
    f32* const factors = parts + problem.rows * warps * 2;
    if (warp < problem.rows) {
        // A second pass for the variance, because the mean may be large beside the deviation.
        f32 sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (i32 i = 0; i < warps; i++) {
            sum += parts[(warp * warps + i) * 2];
            squares += parts[(warp * warps + i) * 2 + 1];
        }
        f32 mean = 0.0f;
        if (problem.norm == layer_norm) {
            mean = sum / inputs;
            squares = 0.0f;
            for (i32 at = lane; at < inputs; at += 32) {
                const f32 difference = widened(to[warp * inputs + at]) - mean;
                squares = fmaf(difference, difference, squares);
            }
            squares = sum_of_warp(squares);
        }
        if (lane == 0) {
            factors[2 * warp] = mean;
            factors[2 * warp + 1] = 1.0f / sqrtf(squares / inputs + problem.eps);
        }
    }
    __syncthreads();
    for (i32 at = threadIdx.x; at < problem.rows * inputs; at += threads) {
        const i32 row = at / inputs, column = at - row * inputs;
        f32 x = (widened(to[at]) - factors[2 * row]) * factors[2 * row + 1];
        if (problem.norm_weight) x *= widened(problem.norm_weight[column]) + problem.norm_offset;
        if (problem.norm_bias) x += widened(problem.norm_bias[column]);
        narrow(x, to[at]);
    }
}

// Adds the products of eight weights and eight inputs.
__device__ inline void multiply_run(f32& sum, const Run& weights, const Run& x) {
#pragma unroll
    for (i32 i = 0; i < 4; i++) {
        sum = fmaf(low(weights.words[i]), low(x.words[i]), sum);
        sum = fmaf(high(weights.words[i]), high(x.words[i]), sum);
    }
}

// One output among those of all matrices.
struct Output {
    i32 matrix, column;  // The column in the matrix.

    __device__ static Output at(const RowsProblem& problem, i32 output) {
        if (output < problem.ends[0]) return {0, output};
        if (output < problem.ends[1]) return {1, output - problem.ends[0]};
        return {2, output - problem.ends[1]};
    }
};

// Stores a sum of a row, `second` of the second matrix in a gated product.
__device__ inline void store(const RowsProblem& problem, i32 row, i32 output, f32 sum, f32 second) {
    const Output of = problem.is_gated ? Output{0, output} : Output::at(problem, output);
    const ELEMENT* const bias = problem.biases[of.matrix];
    if (bias) sum += widened(bias[of.column]);
    f32 activated[1] = {sum};
    Epilogue epilogue = {};
    epilogue.activation = problem.activation;
    activate(epilogue, activated);
    sum = activated[0];
    if (problem.is_gated) {
        if (problem.biases[1]) second += widened(problem.biases[1][output]);
        sum *= second;
    }
    if (problem.residual) sum += widened(problem.residual[row * problem.residual_stride + output]);
    narrow(sum, problem.y[row * problem.y_stride + output]);
}

// Computes all outputs of a matrix whose inputs run along its stored rows, for up to `Rows` rows.
template <i32 Rows>
__device__ inline void multiply_by_inputs(const RowsProblem& problem, const ELEMENT* x) {
    enum : int { unrolled = Rows == 1 ? 8 : 4 };
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, inputs = problem.inputs, rows = problem.rows;
    // Two outputs of one matrix or of two, or one output of both matrices of a gated product.
    const i32 of_group = problem.is_gated ? 1 : warp_outputs;
    const i32 groups = (problem.outputs + of_group - 1) / of_group;
#pragma unroll 1
    for (i32 group = blockIdx.x * warps + warp; group < groups; group += gridDim.x * warps) {
        const ELEMENT* from[warp_outputs];
#pragma unroll
        for (i32 i = 0; i < warp_outputs; i++) {
            const i32 output = min(group * of_group + i, problem.outputs - 1);
            const Output of = problem.is_gated ? Output{i, group} : Output::at(problem, output);
            from[i] = problem.weights[of.matrix] + (i64)of.column * inputs;
        }
        f32 sums[warp_outputs][Rows] = {};
#pragma unroll unrolled
        for (i32 at = lane * 8; at < inputs; at += 256) {
            Run weights[warp_outputs];
#pragma unroll
            for (i32 i = 0; i < warp_outputs; i++) weights[i] = *(const Run*)(from[i] + at);
#pragma unroll
            for (i32 row = 0; row < Rows; row++) {
                if (row >= rows) continue;
                const Run run = *(const Run*)(x + row * inputs + at);
#pragma unroll
                for (i32 i = 0; i < warp_outputs; i++) multiply_run(sums[i][row], weights[i], run);
            }
        }
#pragma unroll
        for (i32 row = 0; row < Rows; row++) {
            if (row >= rows) continue;
#pragma unroll
            for (i32 i = 0; i < warp_outputs; i++) sums[i][row] = sum_of_warp(sums[i][row]);
            if (problem.is_gated) {
                if (lane == row) store(problem, row, group, sums[0][row], sums[1][row]);
                continue;
            }
            const i32 output = group * warp_outputs + lane;
            const f32 sum = lane == 0 ? sums[0][row] : sums[1][row];
            if (lane < warp_outputs && output < problem.outputs) store(problem, row, output, sum, 0.0f);
        }
    }
}

// Computes all outputs of a matrix whose outputs run along its stored rows, for up to `Rows` rows.
template <i32 Rows>
__device__ inline void multiply_by_outputs(const RowsProblem& problem, const ELEMENT* x, f32* sums_of_warps) {
    enum : int { run_lanes = block_outputs / 8, input_lanes = 32 / run_lanes, inputs_at_once = input_lanes * warps };
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, inputs = problem.inputs, rows = problem.rows;
    const i32 groups = problem.outputs / block_outputs, of_run = lane % run_lanes;
    const i32 row_of_sum = threadIdx.x / block_outputs, column_of_sum = threadIdx.x % block_outputs;
#pragma unroll 1
    for (i32 group = blockIdx.x; group < groups; group += gridDim.x) {
        f32 found[2] = {0.0f, 0.0f};
#pragma unroll
        for (i32 part = 0; part < 2; part++) {
            if (part > 0 && !problem.is_gated) continue;
            // A block's outputs are of one matrix, or of both of a gated product.
            Output of = Output::at(problem, group * block_outputs);
            if (problem.is_gated) of = {part, group * block_outputs};
            const i32 first = of.matrix == 0 || problem.is_gated ? 0 : problem.ends[of.matrix - 1];
            const i32 width = problem.is_gated ? problem.outputs : problem.ends[of.matrix] - first;
            const ELEMENT* const from = problem.weights[of.matrix] + of.column + of_run * 8;
            f32 sums[Rows][8] = {};
#pragma unroll 4
            for (i32 at = warp * input_lanes + lane / run_lanes; at < inputs; at += inputs_at_once) {
                const Run weights = *(const Run*)(from + (i64)at * width);
#pragma unroll
                for (i32 row = 0; row < Rows; row++) {
                    if (row >= rows) continue;
                    const f32 factor = widened(x[row * inputs + at]);
#pragma unroll
                    for (i32 i = 0; i < 4; i++) {
                        sums[row][2 * i] = fmaf(low(weights.words[i]), factor, sums[row][2 * i]);
                        sums[row][2 * i + 1] = fmaf(high(weights.words[i]), factor, sums[row][2 * i + 1]);
                    }
                }
            }
#pragma unroll
            for (i32 row = 0; row < Rows; row++) {
                if (row >= rows) continue;
#pragma unroll
                for (i32 i = 0; i < 8; i++) {
#pragma unroll
                    for (i32 lanes = 16; lanes >= run_lanes; lanes /= 2) {
                        sums[row][i] += __shfl_xor_sync(0xffffffff, sums[row][i], lanes);
                    }
                    if (lane < run_lanes) sums_of_warps[(warp * most_rows + row) * block_outputs + of_run * 8 + i] = sums[row][i];
                }
            }
            __syncthreads();
            if (row_of_sum < rows) {
#pragma unroll
                for (i32 w = 0; w < warps; w++) {
                    found[part] += sums_of_warps[(w * most_rows + row_of_sum) * block_outputs + column_of_sum];
                }
            }
            __syncthreads();
        }
        if (row_of_sum < rows) store(problem, row_of_sum, group * block_outputs + column_of_sum, found[0], found[1]);
    }
}

}  // namespace

#define ENTRY_OF(element, order) gemm_rows_##element##_##order
#define ENTRY(element, order) ENTRY_OF(element, order)

extern "C" __global__ void __launch_bounds__(threads, 2) ENTRY(ELEMENT, k)(const __grid_constant__ RowsProblem problem) {
    ELEMENT* const x = (ELEMENT*)shared_memory;
    store_rows(problem, x);
    __syncthreads();
    if (problem.rows == 1) multiply_by_inputs<1>(problem, x);
    else if (problem.rows <= 4) multiply_by_inputs<4>(problem, x);
    else multiply_by_inputs<most_rows>(problem, x);
}

extern "C" __global__ void __launch_bounds__(threads, 2) ENTRY(ELEMENT, n)(const __grid_constant__ RowsProblem problem) {
    ELEMENT* const x = (ELEMENT*)shared_memory;
    // Behind the rows, and the parts and factors of their norms.
    f32* const sums_of_warps = (f32*)(x + problem.rows * problem.inputs) + most_rows * (2 * warps + 2);
    store_rows(problem, x);
    __syncthreads();
    if (problem.rows == 1) multiply_by_outputs<1>(problem, x, sums_of_warps);
    else if (problem.rows <= 4) multiply_by_outputs<4>(problem, x, sums_of_warps);
    else multiply_by_outputs<most_rows>(problem, x, sums_of_warps);
}
