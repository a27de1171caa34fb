//! Products of few tiles, by clusters of blocks that divide k: `csrc/kernels/gemm_split.cu`.

use super::super::epilogue::{Raw, WithEpilogue};
use super::super::maps::Mapped;
use super::super::problem::GemmProblem;
use super::super::product::Product;
use super::{PANEL, Work};
use crate::driver::{DeviceSliceMut, LaunchConfig, Stream};
use crate::error::Result;
use crate::images::{self, DeviceProperties, Entry};
use crate::types::DType;

/// Of f16 and of bf16; k along the rows of neither operand, of P, of Q, of both.
const FAMILIES: [[&str; 4]; 2] = [
    ["gemm_split_f16_ss", "gemm_split_f16_ks", "gemm_split_f16_sk", "gemm_split_f16_kk"],
    ["gemm_split_bf16_ss", "gemm_split_bf16_ks", "gemm_split_bf16_sk", "gemm_split_bf16_kk"],
];

/// What has the kernels for operands of this type, by whether k runs along the stored rows of P and of Q.
fn family(operand: DType, [p_along, q_along]: [bool; 2]) -> &'static str {
    FAMILIES[usize::from(operand == DType::BF16)][usize::from(p_along) | usize::from(q_along) << 1]
}

/// Rows of P and of Q in a tile, and the blocks that divide k.
const TILES: [(u32, u32); 9] =
    [(64, 16), (64, 32), (64, 64), (64, 128), (128, 16), (128, 32), (128, 64), (128, 128), (128, 256)];
const SPLITS: [u32; 5] = [1, 2, 3, 4, 8];
/// Shared memory that a block can have.
const MOST_SHARED: u32 = 227 << 10;
/// Elements of C that a thread stores together.
const TOGETHER: usize = 4;

/// How a product is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gemm) struct Split {
    /// Whether a tile takes its rows of B transposed instead of A.
    pub swapped: bool,
    pub rows: u32,
    /// Of the other operand, the rows that a tile takes.
    pub columns: u32,
    /// Blocks that divide k.
    pub splits: u32,
    pub tiles: u64,
}

/// The kernels' parameter: exactly the `Shape` of gemm_split.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Shape {
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
    wide: i32,
    vector: i32,
    alpha: f32,
    beta: f32,
    epilogue: Raw,
}

/// Blocks of clusters of this size that run at one time: a cluster lies within one of the device's processing clusters,
/// which have about 16 multiprocessors, not all as many. (On an H200 32 clusters of 4 take as long as two rounds.)
fn room(properties: DeviceProperties, splits: u32) -> u64 {
    let all = u64::from(properties.multiprocessors);
    match splits {
        0..=2 => all,
        3..=4 => all - all / 11,
        _ => all - all * 5 / 33,
    }
    .max(1)
}

/// Its divisions, and the clocks that each takes, roughly, from times of squares of 256 to 1024, and of few rows times 4096 x
/// 4096, on an H200; of two that cost the same the one that is not swapped comes first.
pub(super) fn divisions(
    product: &Product,
    properties: DeviceProperties,
) -> impl Iterator<Item = (Split, u64)> {
    let (m, n, count) = (product.m() as u64, product.n() as u64, product.count() as u64);
    let k = product.k() as u64;
    let steps = k.div_ceil(u64::from(PANEL));
    let all = [false, true].into_iter().flat_map(|swapped| TILES.map(|tile| (swapped, tile)));
    let all = all.flat_map(|(swapped, (rows, columns))| {
        SPLITS.map(|splits| Split { swapped, rows, columns, splits, tiles: 0 })
    });
    let fits = move |split: &Split| {
        u64::from(split.splits) <= steps.max(1) && split.shared_bytes(true) <= MOST_SHARED
    };
    all.filter(fits).map(move |split| {
        let (of_p, of_q) = if split.swapped { (n, m) } else { (m, n) };
        let (rows, columns, splits) =
            (u64::from(split.rows), u64::from(split.columns), u64::from(split.splits));
        let tiles = of_p.div_ceil(rows).saturating_mul(of_q.div_ceil(columns)).saturating_mul(count);
        let blocks = tiles.saturating_mul(splits);
        let room = room(properties, split.splits);
        // 64 k: the instructions' rate, a block's copies, and those of all blocks.
        let bytes = (rows + split.copied_columns(split.along(product)[1]) as u64) * 128;
        let step = (columns * rows / 32).max(bytes / 64).max(280).max(bytes * blocks.min(room) / 7000);
        // Sums go through shared memory; those of other blocks are waited for.
        let end = columns * columns / 16 + if rows == 64 { 3150 + columns / 2 } else { 3300 + 10 * columns };
        let exchange = if splits > 1 { 1000 + columns * columns * rows / 256 } else { 0 };
        // What memory takes to bring both operands; blocks that read the same of P are far from each other.
        let of_each = of_p.saturating_mul(if of_q > columns { 17 } else { 10 }).saturating_add(of_q * 10);
        let memory = of_each.saturating_mul(k).saturating_mul(count) / 11_000;
        let rounds = blocks.div_ceil(room);
        let clocks = rounds.saturating_mul(steps.div_ceil(splits) * step).max(memory);
        (Split { tiles, ..split }, clocks.saturating_add(rounds.saturating_mul(end + exchange)))
    })
}

impl Split {
    pub fn blocks(&self) -> u64 {
        self.tiles.saturating_mul(self.splits.into())
    }

    /// Rows and columns of C in a tile.
    pub fn tile(&self) -> (u32, u32) {
        if self.swapped { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    /// Whether k runs along the stored rows of P and of Q.
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

    /// Rows of Q in a stage: a box of 64 even where fewer are multiplied.
    fn copied_columns(&self, q_along: bool) -> u32 {
        if q_along { self.columns } else { self.columns.max(PANEL) }
    }

    /// Dynamic shared memory: as many stages as there is room for, later the block's sums and what the others send, behind
    /// the barriers, and room to begin at a multiple of 1024.
    fn shared_bytes(&self, q_along: bool) -> u32 {
        let stage = (self.rows + self.copied_columns(q_along)) * PANEL * 2;
        // Small tiles leave room for a block of the next product.
        let room = if self.rows == 64 && self.columns <= 32 { 104 << 10 } else { 224 << 10 };
        let stages = room / stage * stage;
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
        work: &Work<'_>,
        a: &Mapped<'_>,
        b: &Mapped<'_>,
        c: DeviceSliceMut<'_, u8>,
    ) -> Result<()> {
        let GemmProblem { product, operand, result, .. } = *work.problem;
        let [p_along, q_along] = self.along(product);
        let number = u64::from(self.rows) << 32 | u64::from(self.columns);
        let name = || self.kernel(operand, product);
        let entry = Entry::Number(number, &name);
        let function = images::kernel(&stream.device(), self.family(operand, product), entry)?;
        let (p, q) = if self.swapped { (b, a) } else { (a, b) };
        let p_map = p.map(if p_along { (PANEL, self.rows) } else { (PANEL, PANEL) })?;
        let q_map = q.map(if q_along { (PANEL, self.columns) } else { (PANEL, PANEL) })?;
        let stored = product.stored_c();
        let together = TOGETHER * result.size();
        let vector =
            c.address().is_multiple_of(together as u64) && stored.keeps_alignment(together, result.size());
        let shape = Shape {
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
            wide: i32::from(operand != result),
            vector: vector.into(),
            alpha: work.alpha,
            beta: work.beta,
            epilogue: work.epilogue.raw(),
        };
        let threads = 128 + 2 * self.rows;
        let config = LaunchConfig::new(self.blocks() as u32, threads).shared(self.shared_bytes(q_along));
        let config = product.overlapped(config);
        let config = if self.splits > 1 { config.cluster(self.splits) } else { config };
        let shape = WithEpilogue { shape, epilogue: work.epilogue };
        // SAFETY: the kernel takes two maps, an address and this Shape; it reads what the maps describe, and the epilogue's
        // buffers, which were checked, and writes the matrices that the Shape describes, which lie inside C's buffer.
        unsafe { function.launch(stream, config, (&p_map, &q_map, c, shape)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_the_kernels() {
        assert_eq!(size_of::<Shape>(), 64 + 32);
        assert_eq!(std::mem::offset_of!(Shape, c_row), 16);
        assert_eq!(std::mem::offset_of!(Shape, alpha), 56);
        assert_eq!(std::mem::offset_of!(Shape, epilogue), 64);
    }

    #[test]
    fn stages_and_sums_fit_a_block() {
        for (rows, columns) in TILES {
            for q_along in [false, true] {
                let bytes = Split { swapped: true, rows, columns, splits: 1, tiles: 1 }.shared_bytes(q_along);
                let least = if (rows, columns) < (64, 64) { 86 << 10 } else { 190 << 10 };
                assert!((least..=MOST_SHARED).contains(&bytes), "{rows}x{columns}: {bytes}");
            }
        }
        // A wide tile, and a third of it from each of two others; from three others it would be too much.
        let split = Split { swapped: false, rows: 128, columns: 256, splits: 3, tiles: 1 };
        assert_eq!(split.shared_bytes(true), (128 + 2 * 43) * 4 * 264 + 2048);
        assert!(Split { splits: 4, ..split }.shared_bytes(true) > MOST_SHARED);
    }

    #[test]
    fn letters_say_what_runs_along_the_rows() {
        use crate::gemm::Operation::Transpose;
        let split = Split { swapped: true, rows: 64, columns: 16, splits: 1, tiles: 1 };
        let kernel = |split: Split, product: Product| split.kernel(DType::BF16, &product);
        let product = Product::new(1, 64, 64);
        // B is stored k by n, A has k along its rows.
        assert_eq!(kernel(split, product), "gemm_split_bf16_sk_64x16");
        assert_eq!(kernel(split, product.b(Transpose)), "gemm_split_bf16_kk_64x16");
        assert_eq!(kernel(split, product.a(Transpose)), "gemm_split_bf16_ss_64x16");
        assert_eq!(kernel(Split { swapped: false, ..split }, product), "gemm_split_bf16_ks_64x16");
    }
}
