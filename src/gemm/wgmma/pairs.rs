//! Large products, by pairs of blocks that stay for many tiles: `csrc/kernels/gemm_wgmma.cu`.

use super::super::epilogue::{Raw, WithEpilogue};
use super::super::kernels::{self, Key};
use super::super::maps::{MAP_ALIGNMENT, Mapped, map, maps};
use super::super::plan::{Machine, Situation};
use super::super::product::Product;
use super::{PANEL, STORED, Work, config};
use crate::driver::image::ArgumentKind;
use crate::driver::{
    DeviceBuffer, DeviceSlice, DeviceSliceMut, KernelArgument, LaunchTarget, Stream, TensorSwizzle,
};
use crate::error::Result;
use crate::types::DType;

/// Of f16 and of bf16; neither operand transposed, A, B, both.
const FAMILIES: [[&str; 4]; 2] = [
    ["gemm_wgmma_f16_nn", "gemm_wgmma_f16_tn", "gemm_wgmma_f16_nt", "gemm_wgmma_f16_tt"],
    ["gemm_wgmma_bf16_nn", "gemm_wgmma_bf16_tn", "gemm_wgmma_bf16_nt", "gemm_wgmma_bf16_tt"],
];

/// What has the kernels for operands of this type, stored so.
pub(super) fn family(operand: DType, product: &Product) -> &'static str {
    let (a, b) = (product.operation_a().transposes(), product.operation_b().transposes());
    FAMILIES[usize::from(operand == DType::BF16)][usize::from(a) | usize::from(b) << 1]
}

/// Blocks of a cluster, and rows of a tile of both.
const PAIR: u64 = 2;
/// Threads of a block: a warpgroup of which one thread copies, and two that multiply.
const THREADS: u32 = 384;
pub(super) const TILE_ROWS: u64 = 256;

/// The widths of a tile, what a block's 64 k of it cost, and what it costs beside them: in clocks, roughly, from the rates
/// of the instructions and of the copies (64 bytes a clock). They only decide which tile is used, never the bits.
const WIDTHS: [(u32, u64, u64); 4] = [(256, 1024, 1600), (192, 815, 2100), (128, 530, 1100), (64, 340, 850)];
/// What the first loads and the last stores take.
const ENDS: u64 = 5300;
/// What a divided round takes beside its products: the flags are cleared by a launch of their own, each column of a tile is
/// written to memory and read again, and the parts of a tile are added one after the other, 512 bytes of a column at 64 a clock.
const DIVIDES: (u64, u64, u64) = (4000, 64, 8);

/// Flags of a pair: one of each warpgroup that multiplies.
const FLAGS: usize = 4;

/// How a product is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs {
    /// Columns of a tile.
    pub columns: u32,
    pub tiles: u64,
    /// Pairs of blocks.
    pub pairs: u32,
    /// Rows of tiles that are taken together.
    pub group: u32,
    /// Whether all pairs divide the last round of tiles.
    pub divided: bool,
}

/// The kernels' parameter: exactly the `Shape` of gemm_wgmma.cu.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Shape {
    m: i32,
    n: i32,
    k: i32,
    batch: i32,
    c_row: i64,
    c_matrix: i64,
    a_matrix: i32,
    b_matrix: i32,
    group: i32,
    wide: i32,
    together: i32,
    alpha: f32,
    beta: f32,
    divided: i32,
    epilogue: Raw,
    flags: u64,
    parts: u64,
}

/// Its divisions, and the clocks that each takes, roughly; of two that cost the same the wider one comes first.
pub(super) fn divisions(product: &Product, machine: Machine) -> impl Iterator<Item = (Pairs, u64)> {
    let (m, n, k) = (product.m() as u64, product.n() as u64, product.k() as u64);
    let most = u64::from(machine.multiprocessors / 2).max(1);
    let count = product.count() as u64;
    // What one round of blocks reads should fit the L2 cache; where B does not, it is read once for each group, so the
    // larger the better (8 against 4 measured at 8192 and 4 against 8 at 4096 rows).
    let group = match n * k {
        0..=30_000_000 => 4,
        _ if k <= 1536 => 16,
        _ => 8,
    };
    let steps = k.div_ceil(u64::from(PANEL));
    let all = WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]);
    all.filter_map(move |((columns, stage, rest), divided)| {
        let tiles = (m.div_ceil(TILE_ROWS) * n.div_ceil(u64::from(columns))).saturating_mul(count);
        if divided {
            // The kernel counts the steps of the last round times the pairs in 31 bits, and each pair has some.
            let last = tiles % most * steps;
            if last < most * LEAST_STEPS || last.saturating_mul(most) > i32::MAX as u64 {
                return None;
            }
            let parts = most.div_ceil((tiles % most).max(1));
            let ends = ENDS
                + 2 * rest
                + DIVIDES.0
                + DIVIDES.1 * u64::from(columns)
                + DIVIDES.2 * u64::from(columns) * parts;
            let whole = (tiles / most).saturating_mul(steps * stage + rest);
            // In whole rounds pairs are out of step with each other, and read less of the same at one time; how much that
            // takes is a margin, not measured.
            let whole = whole.saturating_add(whole / 32);
            let clocks = whole.saturating_add(last.div_ceil(most) * stage + ends);
            return Some((Pairs { columns, tiles, pairs: most as u32, group, divided }, clocks));
        }
        let rounds = tiles.div_ceil(most);
        let clocks = rounds.saturating_mul(steps * stage + rest).saturating_add(ENDS);
        Some((Pairs { columns, tiles, pairs: tiles.min(most) as u32, group, divided }, clocks))
    })
}

/// Steps of a divided round that are worth a pair's while.
const LEAST_STEPS: u64 = 4;

/// Dynamic shared memory: barriers and notes, the stages, what C is staged in, and room to begin at a multiple of 1024.
fn shared_bytes(columns: u32) -> u32 {
    let stages = match columns {
        192.. => 4,
        128.. => 6,
        _ => 8,
    };
    let staging = 4 * 64 * 128;
    1024 + stages * (128 + columns) * PANEL * 2 + staging + 1024
}

impl Pairs {
    pub fn blocks(&self) -> u32 {
        self.pairs * PAIR as u32
    }

    /// Tiles of the last round, where that is divided.
    pub fn divided_tiles(&self) -> u64 {
        if self.divided { self.tiles % u64::from(self.pairs) } else { 0 }
    }

    /// Words of the flags; what follows begins at a multiple of 128 bytes.
    fn flags(&self) -> usize {
        (FLAGS * self.pairs as usize).next_multiple_of(32)
    }

    /// Where pairs leave their parts of divided tiles: words, of which the first ones are flags and 0.
    fn parts(&self, stream: &Stream) -> Result<Option<DeviceBuffer<u32>>> {
        if !self.divided {
            return Ok(None);
        }
        let words = self.flags() + FLAGS * self.pairs as usize * 64 * self.columns as usize;
        let mut parts = stream.uninitialized::<u32>(words)?;
        stream.fill(&mut parts.slice_mut(..self.flags())?, 0)?;
        Ok(Some(parts))
    }

    pub fn kernel(&self, operand: DType, product: &Product) -> String {
        format!("{}_{}", family(operand, product), self.columns)
    }

    pub fn run(
        &self,
        stream: &Stream,
        work: &Work<'_>,
        a: &Mapped<'_>,
        b: &Mapped<'_>,
        c: DeviceSliceMut<'_, u8>,
    ) -> Result<()> {
        let Situation { product, operand, result, .. } = *work.situation;
        let columns = self.columns;
        let (a_transposed, b_transposed) =
            (product.operation_a().transposes(), product.operation_b().transposes());
        let key: Key = (family(operand, product), columns.into());
        let function = kernels::function(&stream.device(), key, &|| self.kernel(operand, product))?;
        let map_a = a.map(if a_transposed { (PANEL, 64) } else { (PANEL, 128) })?;
        // Each block of a pair copies half: of the columns where k is contiguous, of the depth where it is not.
        let map_b = b.map(if b_transposed { (PANEL, columns / 2) } else { (PANEL, 32) })?;
        // Its memory goes back to the stream behind the launch.
        let mut left = self.parts(stream)?;
        let left = left.as_mut().map(|parts| parts.slice_mut(..)).transpose()?;
        let flags = left.as_ref().map_or(0, DeviceSliceMut::address);
        let parts = flags + (self.flags() * size_of::<u32>()) as u64;
        let stored_c = product.stored_c();
        // A store by a map writes whole pieces of 16 bytes: where a row ends within one, it would write behind the row.
        let kept = work.epilogue.kept.as_ref().map(DeviceSlice::from);
        let addresses = [Some(c.address()), kept.as_ref().map(DeviceSlice::address)];
        let size = result.size();
        let staged = stored_c.is_whole(MAP_ALIGNMENT, size)
            && addresses.iter().flatten().all(|at| maps(stored_c, *at, size));
        // What no map describes, though its rows are whole, threads store too.
        let lie = |bytes: usize| addresses.iter().flatten().all(|address| address % bytes as u64 == 0);
        let by_threads: Vec<usize> = STORED[1..].iter().copied().filter(|bytes| lie(*bytes)).collect();
        let together = if staged { MAP_ALIGNMENT } else { stored_c.whole_blocks(&by_threads, size) };
        let shape = Shape {
            m: product.m() as i32,
            n: product.n() as i32,
            k: product.k() as i32,
            batch: product.count() as i32,
            c_row: stored_c.leading as i64,
            c_matrix: stored_c.stride as i64,
            a_matrix: a.apart(),
            b_matrix: b.apart(),
            group: self.group as i32,
            wide: i32::from(operand != result),
            together: together as i32,
            alpha: work.alpha,
            beta: work.beta,
            divided: self.divided.into(),
            epilogue: work.epilogue.raw(),
            flags,
            parts,
        };
        let config = config(product, self.blocks(), THREADS, shared_bytes(columns));
        let shape = WithParts { shape: WithEpilogue { shape, epilogue: work.epilogue }, parts: left };
        if staged {
            let size = ((128 / result.size()) as u32, 64);
            let of = |memory| map(memory, result, stored_c, size, TensorSwizzle::Bytes128);
            let map_c = of(DeviceSlice::from(&c))?;
            let map_kept = kept.map(of).transpose()?;
            let map_kept = map_kept.as_ref().unwrap_or(&map_c);
            // SAFETY: the kernel takes four maps, an address and this Shape; it reads what the first two describe and the
            // epilogue's buffers, which were checked, and writes what the others do, which lies inside C's buffer and that of
            // what is kept: both are entered as what they are beside their maps.
            unsafe { function.launch(stream, config, (&map_a, &map_b, &map_c, map_kept, c, shape)) }
        } else {
            // SAFETY: as above, but that the kernel does not use the last two maps, and writes the matrices that the Shape
            // describes.
            unsafe { function.launch(stream, config, (&map_a, &map_b, &map_a, &map_a, c, shape)) }
        }
    }
}

/// The kernels' last parameter, with the memory that its addresses name.
struct WithParts<'a> {
    shape: WithEpilogue<'a, Shape>,
    parts: Option<DeviceSliceMut<'a, u32>>,
}

// SAFETY: it is its shape, and the memory that parts are left in is entered too.
unsafe impl KernelArgument for WithParts<'_> {
    const KIND: ArgumentKind = WithEpilogue::<'_, Shape>::KIND;
    const SIZE: usize = WithEpilogue::<'_, Shape>::SIZE;

    fn enter(&self, target: LaunchTarget<'_>) -> Result<()> {
        self.shape.enter(target)?;
        match &self.parts {
            Some(parts) => <DeviceSliceMut<'_, u32> as KernelArgument>::enter(parts, target),
            None => Ok(()),
        }
    }

    fn pointer(&self) -> *mut std::ffi::c_void {
        self.shape.pointer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Machine = Machine { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    #[test]
    fn the_shape_is_the_kernels() {
        assert_eq!(size_of::<Shape>(), 64 + 32 + 16);
        assert_eq!(std::mem::offset_of!(Shape, c_row), 16);
        assert_eq!(std::mem::offset_of!(Shape, alpha), 52);
        assert_eq!(std::mem::offset_of!(Shape, epilogue), 64);
    }

    #[test]
    fn stages_fit_a_block() {
        for (columns, ..) in WIDTHS {
            assert!((190 << 10..=227 << 10).contains(&shared_bytes(columns)), "{columns}");
        }
    }

    #[test]
    fn large_products_take_wide_tiles_and_small_ones_fill_the_device() {
        let best = |product: &Product| divisions(product, H200).min_by_key(|(_, clocks)| *clocks).unwrap().0;
        let of = |m, n, k| best(&Product::new(m, n, k));
        assert_eq!(
            of(8192, 8192, 8192),
            Pairs { columns: 256, tiles: 1024, pairs: 66, group: 8, divided: false }
        );
        // Gradients of weights have few tiles and a long k.
        assert_eq!(of(768, 3072, 65536).divided_tiles(), 36);
        assert_eq!(of(65536, 2304, 768).columns, 256);
        assert_eq!(of(65536, 50304, 768).group, 16);
        // 4 x 16 tiles of 64 columns are one round of 66 pairs; 16 of 256 columns would leave 50 pairs idle.
        assert_eq!(
            of(1024, 1024, 1024),
            Pairs { columns: 64, tiles: 64, pairs: 64, group: 4, divided: false }
        );
        assert_eq!(of(1, 1, 1).pairs, 1);
        // A batch counts as more tiles.
        assert_eq!(best(&Product::new(1024, 1024, 64).batch(64, 65536, 65536, 1 << 20)).pairs, 66);
    }
}
