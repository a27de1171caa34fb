//! Products on CUDA cores of compute capability 9.0 with TMA loads: `csrc/kernels/gemm_bulk.cu`.
//!
//! The cp.async kernels compute products of operands that no tensor map describes, with conjugation without transposition, or
//! without depth. Both add in the same order, in tiles that are selected by the same times, so the bits do not depend on the kernel.

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

/// Returns a `Tile` of gemm_bulk.cu: rows and columns, consumer threads, producer threads, stages, and the two times.
const fn tile(
    (rows, columns): (u32, u32),
    threads: u32,
    producers: u32,
    stages: u32,
    (alone, beside): (u64, u64),
) -> Tile {
    // The transpose buffer is as large as a stage. It has one barrier, each stage two. The rest aligns it to 1024 bytes.
    let shared = (stages + 1) * (rows + columns) * DEPTH + 8 * (2 * stages + 1) + 1024;
    Tile { rows, columns, threads: threads + producers, shared, alone, beside }
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

/// Returns the letter of an operation in the kernels' names, if there is one: real numbers are not conjugated.
fn letter(operation: Operation, operand: DType) -> Option<char> {
    match (operation.transposes(), operation.conjugates() && operand.is_complex()) {
        (false, false) => Some('n'),
        (false, true) => None,
        (true, false) => Some('t'),
        (true, true) => Some('c'),
    }
}

/// Returns the family and its tiles, if they compute the product.
pub(super) fn tiles_for(problem: &GemmProblem<'_>) -> Option<(&'static str, [Tile; 2])> {
    let (product, properties) = (problem.product, problem.properties);
    let (family, tiles) = tiles(problem.operand)?;
    letter(product.operation_a(), problem.operand)?;
    letter(product.operation_b(), problem.operand)?;
    let tiles_for =
        product.k() > 0 && unmapped(problem).next().is_none() && missing_image(properties, family).is_none();
    tiles_for.then_some((family, tiles))
}

/// Returns the layout of A and B in the kernels' names.
pub(super) fn layout(problem: &GemmProblem<'_>) -> String {
    let operations = [problem.product.operation_a(), problem.product.operation_b()];
    operations.into_iter().filter_map(|operation| letter(operation, problem.operand)).collect()
}

/// Returns the tensor maps of A and B, a box being a tile's rows or columns in a stage.
pub(super) fn maps(
    problem: &GemmProblem<'_>,
    tile: &Tile,
    a: DeviceSlice<'_, u8>,
    b: DeviceSlice<'_, u8>,
) -> Result<[TensorMap; 2]> {
    let product = problem.product;
    let (dtype, depth) = (problem.operand, DEPTH / problem.operand.size() as u32);
    // K-contiguous operands are swizzled, so that the transpose meets no bank twice.
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
    fn operands_without_a_tensor_map_use_other_kernels() {
        let tiles_for = |product: Product, operand, addresses| {
            tiles_for(&problem(&product, operand, addresses)).is_some()
        };
        let product = Product::new(64, 64, 64);
        for operand in [DType::F32, DType::C64] {
            assert!(tiles_for(product, operand, [0x100; 3]));
            // C may begin anywhere, A and B may not.
            assert!(tiles_for(product, operand, [0x100, 0x110, 0x104]));
            assert!(!tiles_for(product, operand, [0x108, 0x100, 0x100]));
            assert!(!tiles_for(product, operand, [0x100, 0x104, 0x100]));
            assert!(!tiles_for(Product::new(64, 64, 63), operand, [0; 3]));
            assert!(!tiles_for(Product::new(64, 63, 64), operand, [0; 3]));
            assert!(tiles_for(Product::new(63, 64, 64), operand, [0; 3]));
            assert!(tiles_for(Product::new(64, 63, 64).b(Operation::Transpose), operand, [0; 3]));
            assert!(!tiles_for(Product::new(64, 64, 0), operand, [0; 3]));
        }
        // Rows of an even number of complex numbers, of which two are 16 bytes.
        assert!(tiles_for(Product::new(64, 62, 62), DType::C64, [0; 3]));
        assert!(!tiles_for(Product::new(64, 62, 62), DType::F32, [0; 3]));
        assert!(!tiles_for(product, DType::F64, [0; 3]));
    }

    #[test]
    fn names_have_the_letter_of_each_operation() {
        use Operation::{Adjoint, Conjugate, None, Transpose};
        let of = |a, b, operand| {
            let product = Product::new(64, 64, 64).a(a).b(b);
            let problem = problem(&product, operand, [0; 3]);
            tiles_for(&problem).map(|_| layout(&problem))
        };
        assert_eq!(of(None, Transpose, DType::C64).as_deref(), Some("nt"));
        assert_eq!(of(Adjoint, None, DType::C64).as_deref(), Some("cn"));
        assert_eq!(of(Transpose, Adjoint, DType::C64).as_deref(), Some("tc"));
        assert_eq!(of(Conjugate, None, DType::C64), Option::None);
        // Of real numbers nothing is left of it.
        assert_eq!(of(Conjugate, Adjoint, DType::F32).as_deref(), Some("nt"));
    }
}
