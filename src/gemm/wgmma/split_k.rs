//! Products of few tiles by split-K, whose clusters divide k: `csrc/kernels/gemm_split.cu`.

use super::super::epilogue::{EpilogueParameters, WithEpilogue};
use super::super::maps::Mapped;
use super::super::problem::GemmProblem;
use super::super::product::Product;
use super::{LaunchArguments, PANEL};
use crate::driver::{DeviceSliceMut, LaunchConfig, Stream};
use crate::error::Result;
use crate::images::{self, DeviceProperties, Entry};
use crate::types::DType;

/// The families of f16 and of bf16 that are k-contiguous in neither operand, P, Q, both.
const FAMILIES: [[&str; 4]; 2] = [
    ["gemm_split_f16_ss", "gemm_split_f16_ks", "gemm_split_f16_sk", "gemm_split_f16_kk"],
    ["gemm_split_bf16_ss", "gemm_split_bf16_ks", "gemm_split_bf16_sk", "gemm_split_bf16_kk"],
];

/// Returns the family for operands of this type; `p_along` and `q_along` are true for k-contiguous operands.
fn family(operand: DType, [p_along, q_along]: [bool; 2]) -> &'static str {
    FAMILIES[usize::from(operand == DType::BF16)][usize::from(p_along) | usize::from(q_along) << 1]
}

/// Tiles (rows of P, rows of Q), and the numbers of blocks that divide k.
const TILES: [(u32, u32); 9] =
    [(64, 16), (64, 32), (64, 64), (64, 128), (128, 16), (128, 32), (128, 64), (128, 128), (128, 256)];
const SPLITS: [u32; 5] = [1, 2, 3, 4, 8];
/// The dynamic shared memory that a block can have.
const MAX_SHARED_BYTES: u32 = 227 << 10;
/// Elements of C in a thread's store.
const VECTOR_WIDTH: usize = 4;

/// A configuration of the split-K kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gemm) struct SplitK {
    /// True where P is B transposed instead of A.
    pub swapped: bool,
    pub rows: u32,
    /// Rows of Q in a tile.
    pub columns: u32,
    /// Blocks that divide k.
    pub splits: u32,
    pub tiles: u64,
}

/// The kernels' parameter: exactly the `SplitKParameters` of gemm_split.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct SplitKParameters {
    m: i32,
    n: i32,
    k: i32,
    batch: i32,
    c_row: i64,
    c_matrix: i64,
    p_matrix: i32,
    q_matrix: i32,
    splits: i32,
    swapped: i32,
    f32_output: i32,
    aligned_rows: i32,
    alpha: f32,
    beta: f32,
    epilogue: EpilogueParameters,
}

/// Returns the blocks of clusters of this size that are resident at a time. A cluster stays inside one GPC, which has about 16
/// multiprocessors. (On an H200 32 clusters of 4 take as long as two waves.)
fn resident_blocks(properties: DeviceProperties, splits: u32) -> u64 {
    let all = u64::from(properties.multiprocessors);
    match splits {
        0..=2 => all,
        3..=4 => all - all / 11,
        _ => all - all * 5 / 33,
    }
    .max(1)
}

/// Returns the configurations with their estimated clock cycles, fitted to times of squares of 256 to 1024, and of few rows times
/// 4096 x 4096, on an H200. Of two that cost the same the one that is not swapped comes first.
pub(super) fn configurations(
    product: &Product,
    properties: DeviceProperties,
) -> impl Iterator<Item = (SplitK, u64)> {
    let (m, n, count) = (product.m() as u64, product.n() as u64, product.count() as u64);
    let k = product.k() as u64;
    let steps = k.div_ceil(u64::from(PANEL));
    let all = [false, true].into_iter().flat_map(|swapped| TILES.map(|tile| (swapped, tile)));
    let all = all.flat_map(|(swapped, (rows, columns))| {
        SPLITS.map(|splits| SplitK { swapped, rows, columns, splits, tiles: 0 })
    });
    let fits = move |split: &SplitK| {
        u64::from(split.splits) <= steps.max(1) && split.shared_bytes(true) <= MAX_SHARED_BYTES
    };
    all.filter(fits).map(move |split| {
        let (of_p, of_q) = if split.swapped { (n, m) } else { (m, n) };
        let (rows, columns, splits) =
            (u64::from(split.rows), u64::from(split.columns), u64::from(split.splits));
        let tiles = of_p.div_ceil(rows).saturating_mul(of_q.div_ceil(columns)).saturating_mul(count);
        let blocks = tiles.saturating_mul(splits);
        let resident_blocks = resident_blocks(properties, split.splits);
        // 64 k: the instructions' rate, a block's copies, and those of all blocks.
        let bytes = (rows + split.copied_columns(split.along(product)[1]) as u64) * 128;
        let step =
            (columns * rows / 32).max(bytes / 64).max(280).max(bytes * blocks.min(resident_blocks) / 7000);
        // Sums are exchanged through shared memory.
        let end = columns * columns / 16 + if rows == 64 { 3150 + columns / 2 } else { 3300 + 10 * columns };
        let exchange = if splits > 1 { 1000 + columns * columns * rows / 256 } else { 0 };
        // Memory traffic of both operands; blocks that read the same rows of P are far from each other.
        let of_each = of_p.saturating_mul(if of_q > columns { 17 } else { 10 }).saturating_add(of_q * 10);
        let memory = of_each.saturating_mul(k).saturating_mul(count) / 11_000;
        let rounds = blocks.div_ceil(resident_blocks);
        let clocks = rounds.saturating_mul(steps.div_ceil(splits) * step).max(memory);
        (SplitK { tiles, ..split }, clocks.saturating_add(rounds.saturating_mul(end + exchange)))
    })
}

impl SplitK {
    pub fn blocks(&self) -> u64 {
        self.tiles.saturating_mul(self.splits.into())
    }

    /// Returns the rows and columns of C in a tile.
    pub fn tile(&self) -> (u32, u32) {
        if self.swapped { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    /// Returns true for each of P and Q that is k-contiguous.
    fn along(&self, product: &Product) -> [bool; 2] {
        let (a, b) = (!product.operation_a().transposes(), product.operation_b().transposes());
        if self.swapped { [b, a] } else { [a, b] }
    }

    pub fn family(&self, operand: DType, product: &Product) -> &'static str {
        family(operand, self.along(product))
    }

    pub fn kernel(&self, operand: DType, product: &Product) -> String {
        format!("{}_{}x{}", self.family(operand, product), self.rows, self.columns)
    }

    /// Returns the rows of Q in a stage: a box of 64 even where fewer are multiplied.
    fn copied_columns(&self, q_along: bool) -> u32 {
        if q_along { self.columns } else { self.columns.max(PANEL) }
    }

    /// Returns the dynamic shared memory: barriers, alignment to 1024 bytes, and the larger of the stages and the exchanged sums.
    fn shared_bytes(&self, q_along: bool) -> u32 {
        let stage = (self.rows + self.copied_columns(q_along)) * PANEL * 2;
        // A block of the next product fits beside small tiles.
        let resident_blocks = if self.rows == 64 && self.columns <= 32 { 104 << 10 } else { 224 << 10 };
        let stages = resident_blocks / stage * stage;
        let (height, row) = if self.swapped {
            (self.columns, 4 * (self.rows + 4))
        } else {
            (self.rows, 4 * (self.columns + 8))
        };
        let sums = (height + (self.splits - 1) * height.div_ceil(self.splits)) * row;
        stages.max(sums) + 2048
    }

    pub(super) fn run(
        &self,
        stream: &Stream,
        arguments: &LaunchArguments<'_>,
        a: &Mapped<'_>,
        b: &Mapped<'_>,
        c: DeviceSliceMut<'_, u8>,
    ) -> Result<()> {
        let GemmProblem { product, operand, result, .. } = *arguments.problem;
        let [p_along, q_along] = self.along(product);
        let entry_key = u64::from(self.rows) << 32 | u64::from(self.columns);
        let name = || self.kernel(operand, product);
        let entry = Entry::Number(entry_key, &name);
        let function = images::kernel(&stream.device(), self.family(operand, product), entry)?;
        let (p, q) = if self.swapped { (b, a) } else { (a, b) };
        let p_map = p.map(if p_along { (PANEL, self.rows) } else { (PANEL, PANEL) })?;
        let q_map = q.map(if q_along { (PANEL, self.columns) } else { (PANEL, PANEL) })?;
        let stored = product.stored_c();
        let vector_bytes = VECTOR_WIDTH * result.size();
        let aligned_rows = c.address().is_multiple_of(vector_bytes as u64)
            && stored.keeps_alignment(vector_bytes, result.size());
        let parameters = SplitKParameters {
            m: product.m() as i32,
            n: product.n() as i32,
            k: product.k() as i32,
            batch: product.count() as i32,
            c_row: stored.leading as i64,
            c_matrix: stored.stride as i64,
            p_matrix: p.apart(),
            q_matrix: q.apart(),
            splits: self.splits as i32,
            swapped: self.swapped.into(),
            f32_output: i32::from(operand != result),
            aligned_rows: aligned_rows.into(),
            alpha: arguments.alpha,
            beta: arguments.beta,
            epilogue: arguments.epilogue.raw(),
        };
        let threads = 128 + 2 * self.rows;
        let config = LaunchConfig::new(self.blocks() as u32, threads).shared(self.shared_bytes(q_along));
        let config = product.overlapped(config);
        let config = if self.splits > 1 { config.cluster(self.splits) } else { config };
        let parameters = WithEpilogue { parameters, epilogue: arguments.epilogue };
        // SAFETY: the kernel takes two maps, an address and these parameters. It reads the memory of the maps and of the epilogue,
        // which was checked, and writes the matrices that the parameters describe, which are inside C's buffer.
        unsafe { function.launch(stream, config, (&p_map, &q_map, c, parameters)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_are_the_kernels() {
        assert_eq!(size_of::<SplitKParameters>(), 64 + 32);
        assert_eq!(std::mem::offset_of!(SplitKParameters, c_row), 16);
        assert_eq!(std::mem::offset_of!(SplitKParameters, alpha), 56);
        assert_eq!(std::mem::offset_of!(SplitKParameters, epilogue), 64);
    }

    #[test]
    fn stages_and_sums_fit_a_block() {
        for (rows, columns) in TILES {
            for q_along in [false, true] {
                let bytes =
                    SplitK { swapped: true, rows, columns, splits: 1, tiles: 1 }.shared_bytes(q_along);
                let least = if (rows, columns) < (64, 64) { 86 << 10 } else { 190 << 10 };
                assert!((least..=MAX_SHARED_BYTES).contains(&bytes), "{rows}x{columns}: {bytes}");
            }
        }
        // A wide tile, and a third of it from each of two others; from three others it would be too much.
        let split = SplitK { swapped: false, rows: 128, columns: 256, splits: 3, tiles: 1 };
        assert_eq!(split.shared_bytes(true), (128 + 2 * 43) * 4 * 264 + 2048);
        assert!(SplitK { splits: 4, ..split }.shared_bytes(true) > MAX_SHARED_BYTES);
    }

    #[test]
    fn letters_say_what_runs_along_the_rows() {
        use crate::gemm::Operation::Transpose;
        let split = SplitK { swapped: true, rows: 64, columns: 16, splits: 1, tiles: 1 };
        let kernel = |split: SplitK, product: Product| split.kernel(DType::BF16, &product);
        let product = Product::new(1, 64, 64);
        // B is stored k by n, A has k along its rows.
        assert_eq!(kernel(split, product), "gemm_split_bf16_sk_64x16");
        assert_eq!(kernel(split, product.b(Transpose)), "gemm_split_bf16_kk_64x16");
        assert_eq!(kernel(split, product.a(Transpose)), "gemm_split_bf16_ss_64x16");
        assert_eq!(kernel(SplitK { swapped: false, ..split }, product), "gemm_split_bf16_ks_64x16");
    }
}
