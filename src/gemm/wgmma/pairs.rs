//! Large products, by pairs of blocks that stay for many tiles: `csrc/kernels/gemm_wgmma.cu`.

use super::super::epilogue::{Raw, WithEpilogue};
use super::super::kernels::{self, Key};
use super::super::maps::{MAP_ALIGNMENT, Mapped, map, maps};
use super::super::plan::Machine;
use super::super::product::Product;
use super::{PANEL, THREADS, Work};
use crate::driver::{DeviceSliceMut, LaunchConfig, Stream, TensorSwizzle};
use crate::error::Result;
use crate::types::{DType, Element};

/// Of f16 and of bf16.
pub(super) const FAMILIES: [&str; 2] = ["gemm_wgmma_f16", "gemm_wgmma_bf16"];

/// Blocks of a cluster, and rows of a tile of both.
const PAIR: u64 = 2;
pub(super) const TILE_ROWS: u64 = 256;

/// The widths of a tile, what a block's 64 k of it cost, and what it costs beside them: in clocks, roughly, from the rates
/// of the instructions and of the copies (64 bytes a clock). They only decide which tile is used, never the bits.
const WIDTHS: [(u32, u64, u64); 3] = [(256, 1024, 1600), (128, 560, 1100), (64, 340, 850)];
/// What the first loads and the last stores take.
const ENDS: u64 = 2000;

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
    staged: i32,
    alpha: f32,
    beta: f32,
    padding: i32,
    epilogue: Raw,
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
    WIDTHS.into_iter().map(move |(columns, stage, rest)| {
        let tiles = (m.div_ceil(TILE_ROWS) * n.div_ceil(u64::from(columns))).saturating_mul(count);
        let rounds = tiles.div_ceil(most);
        let clocks = rounds.saturating_mul(k.div_ceil(u64::from(PANEL)) * stage + rest).saturating_add(ENDS);
        (Pairs { columns, tiles, pairs: tiles.min(most) as u32, group }, clocks)
    })
}

/// Dynamic shared memory: the stages, what C is staged in, two barriers a stage, and room to begin at a multiple of 1024.
fn shared_bytes(columns: u32) -> u32 {
    let (stages, staging) = (
        if columns == 256 {
            4
        } else if columns == 128 {
            6
        } else {
            8
        },
        4 * 64 * 128,
    );
    stages * ((128 + columns) * PANEL * 2 + 16) + staging + 1024
}

impl Pairs {
    pub fn blocks(&self) -> u32 {
        self.pairs * PAIR as u32
    }

    pub fn kernel(&self, operand: DType, product: &Product) -> String {
        format!("gemm_wgmma_{operand}_{}_{}", product.layout(), self.columns)
    }

    pub fn run<T: Element, C: Element>(
        &self,
        stream: &Stream,
        work: &Work<'_, C>,
        a: &Mapped<'_, T>,
        b: &Mapped<'_, T>,
        c: DeviceSliceMut<'_, C>,
        c_address: u64,
    ) -> Result<()> {
        let (product, columns) = (work.product, self.columns);
        let (a_transposed, b_transposed) =
            (product.operation_a().transposes(), product.operation_b().transposes());
        let key: Key = (
            FAMILIES[usize::from(T::DTYPE == DType::BF16)],
            u64::from(a_transposed) | u64::from(b_transposed) << 1 | u64::from(columns) << 2,
        );
        let function = kernels::function(&stream.device(), key, || self.kernel(T::DTYPE, product))?;
        let map_a = a.map(if a_transposed { (PANEL, 64) } else { (PANEL, 128) })?;
        // Each block of a pair copies half: of the columns where k is contiguous, of the depth where it is not.
        let map_b = b.map(if b_transposed { (PANEL, columns / 2) } else { (PANEL, 32) })?;
        let stored_c = product.stored_c();
        // A store by a map writes whole pieces of 16 bytes: where a row ends within one, it would write behind the row.
        let whole = stored_c.columns * size_of::<C>() % MAP_ALIGNMENT == 0;
        let staged = whole && maps(stored_c, c_address, size_of::<C>());
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
            wide: i32::from(T::DTYPE != C::DTYPE),
            staged: staged.into(),
            alpha: work.alpha,
            beta: work.beta,
            padding: 0,
            epilogue: work.epilogue.raw(),
        };
        let config = LaunchConfig::new(self.blocks(), THREADS).shared(shared_bytes(columns));
        let shape = WithEpilogue { shape, epilogue: work.epilogue };
        if staged {
            let size = ((128 / size_of::<C>()) as u32, 64);
            let mut map_c = map(&c, stored_c, size, TensorSwizzle::Bytes128)?;
            // SAFETY: the kernel takes three maps, an address and this Shape; it reads what the first two describe and the
            // epilogue's buffers, which were checked, and writes what the third does, which lies inside C's buffer.
            unsafe { function.launch(stream, config, (&map_a, &map_b, &mut map_c, c, shape)) }
        } else {
            // SAFETY: as above, but that the kernel does not use the third map, and writes the matrices that the Shape
            // describes.
            unsafe { function.launch(stream, config, (&map_a, &map_b, &map_a, c, shape)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Machine = Machine { capability: (9, 0), driver_isa: (8, 0), multiprocessors: 132 };

    #[test]
    fn the_shape_is_the_kernels() {
        assert_eq!(size_of::<Shape>(), 64 + 32);
        assert_eq!(std::mem::offset_of!(Shape, c_row), 16);
        assert_eq!(std::mem::offset_of!(Shape, alpha), 52);
        assert_eq!(std::mem::offset_of!(Shape, epilogue), 64);
    }

    #[test]
    fn stages_fit_a_block() {
        for (columns, ..) in WIDTHS {
            assert!((200 << 10..=227 << 10).contains(&shared_bytes(columns)), "{columns}");
        }
    }

    #[test]
    fn large_products_take_wide_tiles_and_small_ones_fill_the_device() {
        let best = |product: &Product| divisions(product, H200).min_by_key(|(_, clocks)| *clocks).unwrap().0;
        let of = |m, n, k| best(&Product::new(m, n, k));
        assert_eq!(of(8192, 8192, 8192), Pairs { columns: 256, tiles: 1024, pairs: 66, group: 8 });
        assert_eq!(of(65536, 2304, 768).columns, 256);
        assert_eq!(of(65536, 50304, 768).group, 16);
        // 4 x 16 tiles of 64 columns are one round of 66 pairs; 16 of 256 columns would leave 50 pairs idle.
        assert_eq!(of(1024, 1024, 1024), Pairs { columns: 64, tiles: 64, pairs: 64, group: 4 });
        assert_eq!(of(1, 1, 1).pairs, 1);
        // A batch counts as more tiles.
        assert_eq!(best(&Product::new(1024, 1024, 64).batch(64, 65536, 65536, 1 << 20)).pairs, 66);
    }
}
