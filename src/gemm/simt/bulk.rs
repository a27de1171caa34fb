//! Ordinary arithmetic on compute capability 9.0, to which bulk copies bring the operands: `csrc/kernels/gemm_bulk.cu`.
//!
//! Operands that no tensor map describes, conjugation without transposition, and products without depth are left to the
//! kernels whose threads copy. These add in the same order, in tiles that are chosen by the same times: bits do not depend
//! on which of the two it is.

use super::super::maps::{map, unmapped};
use super::super::problem::GemmProblem;
use super::super::product::Operation;
use super::{LARGE, SLICED, SMALL, Tile};
use crate::driver::{DeviceSlice, TensorMap, TensorSwizzle};
use crate::error::Result;
use crate::images::missing_image;
use crate::types::DType;

/// Bytes of k in a stage.
const DEPTH: u32 = 128;

/// A `Tile` of gemm_bulk.cu: rows and columns, threads that multiply and that help, stages, and the two times.
const fn tile(
    (rows, columns): (u32, u32),
    threads: u32,
    helpers: u32,
    stages: u32,
    (alone, beside): (u64, u64),
) -> Tile {
    // What is turned over takes the place of one stage more; two barriers a stage and one for that, and room to begin at a multiple
    // of 1024.
    let shared = (stages + 1) * (rows + columns) * DEPTH + 8 * (2 * stages + 1) + 1024;
    Tile { rows, columns, threads: threads + helpers, shared, alone, beside }
}

/// The family for the type, its large and its small tile.
const fn tiles(operand: DType) -> Option<(&'static str, [Tile; 2])> {
    match operand {
        DType::F32 => Some((
            "gemm_bulk_f32",
            [tile((128, 128), 128, 128, 2, LARGE), tile((64, 64), 128, 32, 4, SLICED)],
        )),
        DType::C64 => {
            Some(("gemm_bulk_c64", [tile((128, 64), 128, 128, 3, LARGE), tile((64, 64), 128, 32, 3, SMALL)]))
        }
        _ => None,
    }
}

/// The letter of an operation in the kernels' names, if they have one: real numbers are not conjugated.
fn letter(operation: Operation, operand: DType) -> Option<char> {
    match (operation.transposes(), operation.conjugates() && operand.is_complex()) {
        (false, false) => Some('n'),
        (false, true) => None,
        (true, false) => Some('t'),
        (true, true) => Some('c'),
    }
}

/// The family and its tiles, if they can make the product.
pub(super) fn able(problem: &GemmProblem<'_>) -> Option<(&'static str, [Tile; 2])> {
    let (product, properties) = (problem.product, problem.properties);
    let (family, tiles) = tiles(problem.operand)?;
    letter(product.operation_a(), problem.operand)?;
    letter(product.operation_b(), problem.operand)?;
    let able =
        product.k() > 0 && unmapped(problem).next().is_none() && missing_image(properties, family).is_none();
    able.then_some((family, tiles))
}

/// How the kernels' names say that A and B are stored.
pub(super) fn layout(problem: &GemmProblem<'_>) -> String {
    let operations = [problem.product.operation_a(), problem.product.operation_b()];
    operations.into_iter().filter_map(|operation| letter(operation, problem.operand)).collect()
}

/// The maps of A and B, a box being a tile's rows or columns in a stage.
pub(super) fn maps(
    problem: &GemmProblem<'_>,
    tile: &Tile,
    a: DeviceSlice<'_, u8>,
    b: DeviceSlice<'_, u8>,
) -> Result<[TensorMap; 2]> {
    let product = problem.product;
    let (dtype, depth) = (problem.operand, DEPTH / problem.operand.size() as u32);
    // Where k runs along the stored rows, pieces of them come in different banks, to be turned over.
    let boxes = |span: u32, along: bool| {
        if along { ((depth, span), TensorSwizzle::Bytes128) } else { ((span, depth), TensorSwizzle::None) }
    };
    let (size_a, swizzle_a) = boxes(tile.rows, !product.operation_a().transposes());
    let (size_b, swizzle_b) = boxes(tile.columns, product.operation_b().transposes());
    Ok([
        map(a, dtype, product.stored_a(), size_a, swizzle_a)?,
        map(b, dtype, product.stored_b(), size_b, swizzle_b)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{DeviceProperties, Product};

    fn problem<'a>(product: &'a Product, operand: DType, addresses: [u64; 3]) -> GemmProblem<'a> {
        let properties = DeviceProperties::reference((9, 0));
        GemmProblem { addresses, ..GemmProblem::from_types(product, operand, operand, properties) }
    }

    #[test]
    fn tiles_are_the_kernels() {
        for (operand, large, small) in [
            (DType::F32, (256, 3 * 256 * 128 + 40 + 1024), (160, 5 * 128 * 128 + 72 + 1024)),
            (DType::C64, (256, 4 * 192 * 128 + 56 + 1024), (160, 4 * 128 * 128 + 56 + 1024)),
        ] {
            let (_, tiles) = tiles(operand).unwrap();
            assert_eq!(tiles.map(|tile| (tile.threads, tile.shared)), [large, small], "{operand}");
            // Two blocks share a multiprocessor, which keeps 1 KB of its 228 for each; of small ones of c64 three.
            assert!(tiles.iter().all(|tile| 2 * (tile.shared + 1024) <= 228 << 10));
        }
        assert!(tiles(DType::C64).is_some_and(|(_, [_, small])| 3 * (small.shared + 1024) <= 228 << 10));
        assert!(tiles(DType::F64).is_none());
    }

    #[test]
    fn what_no_map_describes_is_left_to_others() {
        let able =
            |product: Product, operand, addresses| able(&problem(&product, operand, addresses)).is_some();
        let product = Product::new(64, 64, 64);
        for operand in [DType::F32, DType::C64] {
            assert!(able(product, operand, [0x100; 3]));
            // C may begin anywhere, A and B may not.
            assert!(able(product, operand, [0x100, 0x110, 0x104]));
            assert!(!able(product, operand, [0x108, 0x100, 0x100]));
            assert!(!able(product, operand, [0x100, 0x104, 0x100]));
            assert!(!able(Product::new(64, 64, 63), operand, [0; 3]));
            assert!(!able(Product::new(64, 63, 64), operand, [0; 3]));
            assert!(able(Product::new(63, 64, 64), operand, [0; 3]));
            assert!(able(Product::new(64, 63, 64).b(Operation::Transpose), operand, [0; 3]));
            assert!(!able(Product::new(64, 64, 0), operand, [0; 3]));
        }
        // Rows of an even number of complex numbers, of which two are 16 bytes.
        assert!(able(Product::new(64, 62, 62), DType::C64, [0; 3]));
        assert!(!able(Product::new(64, 62, 62), DType::F32, [0; 3]));
        assert!(!able(product, DType::F64, [0; 3]));
    }

    #[test]
    fn names_say_what_is_conjugated() {
        use Operation::{Adjoint, Conjugate, None, Transpose};
        let of = |a, b, operand| {
            let product = Product::new(64, 64, 64).a(a).b(b);
            let problem = problem(&product, operand, [0; 3]);
            able(&problem).map(|_| layout(&problem))
        };
        assert_eq!(of(None, Transpose, DType::C64).as_deref(), Some("nt"));
        assert_eq!(of(Adjoint, None, DType::C64).as_deref(), Some("cn"));
        assert_eq!(of(Transpose, Adjoint, DType::C64).as_deref(), Some("tc"));
        assert_eq!(of(Conjugate, None, DType::C64), Option::None);
        // Of real numbers nothing is left of it.
        assert_eq!(of(Conjugate, Adjoint, DType::F32).as_deref(), Some("nt"));
    }
}
