//! The table of matrix products that all suites run: the CPU (tests/gemm), the emulated kernels (tests/fake/emulated), the
//! fake cuBLAS (tests/fake/cublas.rs) and a device (tests/gpu/gemm.rs). It holds sizes, layouts, gaps, batches, factors,
//! dtypes and epilogues; `tests/gpu/gemm/case.rs` runs a product and compares it with the definition.
//!
//! To add a case, add a row here: every suite that runs the table runs the row. A suite sets only the alignment and the
//! engine of a case, and may take a part of a table that is too slow for it.

#![allow(dead_code, unused_imports, unused_macros, reason = "no suite runs every table")]

use selvedge::gemm::{Activation, Operation};

/// m, n and k.
pub type Size = (usize, usize, usize);

/// A product of whole numbers from -2 to 2.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub size: Size,
    pub operations: (Operation, Operation),
    /// Rows begin at multiples of so many elements, and so many more lie between.
    pub multiple: usize,
    pub gaps: (usize, usize, usize),
    /// Elements before the first one.
    pub starts: (usize, usize, usize),
    pub batch: usize,
    /// True for A, or for B, if all products share it.
    pub shared: (bool, bool),
    /// True if the results are stored side by side in common rows.
    pub interleaved: bool,
    pub alpha: (i64, i64),
    pub beta: (i64, i64),
}

impl Case {
    pub fn new(m: usize, n: usize, k: usize) -> Case {
        Case {
            size: (m, n, k),
            operations: (Operation::None, Operation::None),
            multiple: 1,
            gaps: (0, 0, 0),
            starts: (0, 0, 0),
            batch: 1,
            shared: (false, false),
            interleaved: false,
            alpha: (1, 0),
            beta: (0, 0),
        }
    }

    /// The case with gaps and starts that keep 16-byte vectors of two-byte elements.
    pub fn aligned(self) -> Case {
        Case { multiple: 8, gaps: (8, 16, 8), starts: (8, 16, 24), ..self }
    }

    /// The case with gaps and starts that allow no vector access.
    pub fn unaligned(self) -> Case {
        Case { gaps: (3, 5, 1), starts: (1, 3, 7), ..self }
    }

    /// The case with real factors: the real parts of its own.
    pub fn real(self) -> Case {
        Case { alpha: (self.alpha.0, 0), beta: (self.beta.0, 0), ..self }
    }
}

/// The four layouts of the operands.
pub const LAYOUTS: [(Operation, Operation); 4] = [
    (Operation::None, Operation::None),
    (Operation::None, Operation::Transpose),
    (Operation::Transpose, Operation::None),
    (Operation::Transpose, Operation::Transpose),
];

pub const OPERATIONS: [Operation; 4] =
    [Operation::None, Operation::Transpose, Operation::Conjugate, Operation::Adjoint];

/// The size in each layout.
pub fn layouts_of((m, n, k): Size) -> [Case; 4] {
    LAYOUTS.map(|operations| Case { operations, ..Case::new(m, n, k) })
}

/// The size for each pair of operations, conjugated ones too.
pub fn conjugates_of((m, n, k): Size) -> Vec<Case> {
    let pairs = OPERATIONS.into_iter().flat_map(|a| OPERATIONS.map(|b| (a, b)));
    pairs.map(|operations| Case { operations, ..Case::new(m, n, k) }).collect()
}

/// More than one tile in every direction, a partial tile at each end, and more than one step of k.
pub const SEVERAL_TILES: Size = (150, 139, 77);

const ODD: [usize; 7] = [0, 1, 7, 31, 33, 127, 129];

/// Every pair of odd sizes with a third one, and one long dimension.
pub fn odd_sizes() -> Vec<Size> {
    let mut sizes =
        vec![(4097, 7, 33), (7, 4097, 33), (33, 7, 4097), (1, 1, 4097), (4097, 1, 1), (1, 4097, 1)];
    for (index, &m) in ODD.iter().enumerate() {
        for (at, &n) in ODD.iter().enumerate() {
            sizes.push((m, n, ODD[(3 * index + 2 * at) % ODD.len()]));
        }
    }
    sizes
}

/// Odd sizes for types whose products take long.
pub const FEW_ODD_SIZES: [Size; 3] = [(33, 65, 7), (129, 1, 31), (1, 127, 33)];

/// Sizes of a small library's own cases: single rows, columns and steps, and empty matrices.
pub const SMALL_SIZES: [Size; 7] =
    [(1, 1, 1), (1, 6, 3), (6, 1, 3), (3, 6, 1), (17, 16, 33), (0, 3, 3), (3, 0, 3)];

/// Sizes around those of tiles and steps, with A and B in rows of multiples of 16 bytes, and C in rows of 2, 4, 8 and 16.
const TILE_SIZES: [Size; 6] =
    [(1, 1, 8), (129, 65, 72), (300, 136, 200), (40, 264, 328), (70, 132, 64), (70, 202, 24)];

/// [`TILE_SIZES`], each in one of the layouts.
pub fn around_tiles() -> impl Iterator<Item = Case> {
    let layouts = LAYOUTS.into_iter().cycle();
    TILE_SIZES
        .into_iter()
        .zip(layouts)
        .map(|((m, n, k), operations)| Case { operations, ..Case::new(m, n, k) })
}

/// Sizes of few tiles and a long k, which parallel split-K divides: with a rest of k, without, one row, and several tiles.
pub const LONG_SIZES: [Size; 4] = [(33, 20, 1100), (16, 72, 1024), (1, 70, 2080), (70, 65, 1031)];

/// [`LONG_SIZES`], each in one of the layouts, with factors that the reduction applies.
pub fn of_long_k() -> impl Iterator<Item = Case> {
    let layouts = LAYOUTS.into_iter().cycle().skip(1);
    let sizes = LONG_SIZES.into_iter().zip(layouts);
    sizes.map(|((m, n, k), operations)| scaled(Case { operations, ..Case::new(m, n, k) }))
}

/// The size of the batches on the CPU, the emulated kernels and a device.
pub const BATCHED: Size = (65, 70, 40);

/// One product, batches of three with and without a shared operand, and an empty batch, each in every layout.
pub fn batches_of(size: Size) -> Vec<Case> {
    let kinds = [
        (1, (false, false), false),
        (3, (false, false), false),
        (3, (true, false), false),
        (3, (false, true), true),
        (0, (false, false), false),
    ];
    layouts_of(size)
        .into_iter()
        .flat_map(|case| {
            kinds.map(|(batch, shared, interleaved)| Case { batch, shared, interleaved, ..case })
        })
        .collect()
}

/// Sizes for factors. A device runs the first two.
pub const SCALED_SIZES: [Size; 6] = [(70, 65, 33), (5, 9, 0), (1, 40, 30), (40, 1, 30), (9, 9, 2), (9, 9, 1)];

/// The size with complex factors of 0, 1 and others. [`Case::real`] gives the same with real factors.
pub fn factors_of((m, n, k): Size) -> Vec<Case> {
    let pairs = [0, 1, 3].into_iter().flat_map(|alpha| [0, 1, -2].map(|beta| (alpha, beta)));
    pairs.map(|(alpha, beta)| Case { alpha: (alpha, 1), beta: (beta, -1), ..Case::new(m, n, k) }).collect()
}

/// Factors that every kernel applies: C is read, and neither factor is 1.
pub fn scaled(case: Case) -> Case {
    Case { alpha: (3, 1), beta: (1, -2), ..case }
}

/// Sizes whose operands are conjugated. A device and the emulated kernels run the first.
pub const CONJUGATED_SIZES: [Size; 3] = [(35, 20, 17), (1, 20, 17), (35, 1, 2)];

/// Sums far past every integer type: the low bits are those of the sums of whole numbers.
pub fn wrapping() -> Case {
    Case { alpha: (1 << 33 | 77, 0), beta: (-(1 << 34) - 5, 0), ..Case::new(20, 30, 400) }
}

/// Sizes of random products that are compared with the bound of backward error analysis, on any engine.
pub const BOUNDED_SIZES: [Size; 6] =
    [(40, 50, 100), (24, 32, 3000), (40, 50, 1), (40, 50, 2), (1, 70, 900), (70, 1, 900)];

/// The same, for rows that begin at multiples of 16 bytes.
pub const BOUNDED_ALIGNED_SIZES: [Size; 4] = [(40, 56, 8), (40, 56, 104), (24, 32, 3000), (136, 264, 520)];

/// Runs an expression for each pair of operand and result dtype (`all`), or of real and complex floats alone (`floats`),
/// which are type aliases in it: `for_each_dtype!(all, T, C => case.check_host::<T, C>()?)`.
macro_rules! for_each_dtype {
    (all, $operand:ident, $result:ident => $body:expr) => {
        for_each_dtype!(@pairs $operand, $result, $body; u8, u8; i8, i8; u16, u16; i16, i16; u32, u32; i32, i32;
            u64, u64; i64, i64);
        for_each_dtype!(floats, $operand, $result => $body);
    };
    (floats, $operand:ident, $result:ident => $body:expr) => {
        for_each_dtype!(@pairs $operand, $result, $body;
            half::f16, half::f16; half::f16, f32; half::bf16, half::bf16; half::bf16, f32; f32, f32; f64, f64;
            num_complex::Complex<f32>, num_complex::Complex<f32>; num_complex::Complex<f64>, num_complex::Complex<f64>);
    };
    (@pairs $operand:ident, $result:ident, $body:expr; $($from:ty, $into:ty);*) => {
        $({
            type $operand = $from;
            type $result = $into;
            $body;
        })*
    };
}
pub(crate) use for_each_dtype;

/// The parts of an epilogue.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub bias: bool,
    pub by_row: bool,
    pub aux: bool,
    pub activation: Activation,
    pub residual: bool,
    /// True if the sums are multiplied by the activation's derivative at the elements of [`PRE_ACTIVATIONS`].
    pub derivative: bool,
    pub beta: i64,
}

/// Pre-activations of derivatives, for the whole numbers from -2 to 2.
pub const PRE_ACTIVATIONS: [f64; 5] = [-30.0, -0.75, 0.0, 0.625, 2.0];

pub const NOTHING: Parts = Parts {
    bias: false,
    by_row: false,
    aux: false,
    activation: Activation::None,
    residual: false,
    derivative: false,
    beta: 0,
};

/// Each part of an epilogue alone, and all together.
pub fn epilogues() -> Vec<Parts> {
    let all = Parts { bias: true, aux: true, residual: true, beta: -2, ..NOTHING };
    vec![
        Parts { bias: true, ..NOTHING },
        Parts { bias: true, by_row: true, ..NOTHING },
        Parts { activation: Activation::Relu, ..NOTHING },
        Parts { residual: true, ..NOTHING },
        Parts { bias: true, activation: Activation::GeluTanh, ..NOTHING },
        Parts { bias: true, aux: true, activation: Activation::GeluTanh, ..NOTHING },
        Parts { activation: Activation::Relu, ..all },
        Parts { activation: Activation::GeluTanh, by_row: true, ..all },
        Parts { bias: true, activation: Activation::Silu, ..NOTHING },
        Parts { bias: true, aux: true, activation: Activation::Silu, ..NOTHING },
        Parts { activation: Activation::Silu, ..all },
    ]
}

/// The derivatives, which only the engine `wgmma` has.
pub const DERIVATIVES: [Parts; 3] = [
    Parts { derivative: true, activation: Activation::Relu, ..NOTHING },
    Parts { derivative: true, activation: Activation::GeluTanh, ..NOTHING },
    Parts { derivative: true, activation: Activation::Silu, ..NOTHING },
];

/// Derivatives by kernel configurations: several tiles of each width, rows outside of the last one, more tiles than clusters, and
/// stream-K.
pub const SIZES_OF_DERIVATIVES: [(Size, &str); 7] = [
    ((136, 320, 72), "persistent/64"),
    ((296, 256, 200), "persistent/128"),
    ((136, 384, 64), "persistent/192"),
    ((264, 512, 136), "persistent/256"),
    ((16, 67 * 256, 72), "persistent/256"),
    ((264, 128, 4800), "persistent/64/stream-k"),
    ((264, 512, 5000), "persistent/256/stream-k"),
];

/// The epilogues that cuBLASLt has, too.
pub fn epilogues_of_cublas() -> Vec<Parts> {
    let biased = Parts { bias: true, ..NOTHING };
    let gelu = Parts { activation: Activation::GeluTanh, ..NOTHING };
    vec![
        biased,
        Parts { beta: -2, ..biased },
        Parts { residual: true, ..NOTHING },
        Parts { residual: true, ..biased },
        Parts { activation: Activation::Relu, ..NOTHING },
        Parts { activation: Activation::Relu, beta: 1, ..biased },
        gelu,
        Parts { bias: true, beta: -2, ..gelu },
        Parts { aux: true, ..gelu },
        Parts { bias: true, aux: true, beta: 1, ..gelu },
    ]
}

/// Sizes of epilogues on tensor cores: tiles of more than 64 columns, split along k, and many tiles.
pub const EPILOGUE_SIZES: [Size; 3] = [(136, 72, 40), (16, 136, 328), (300, 1048, 40)];

/// Sizes of epilogues on the CPU: several tiles, one row, one column, and no depth.
pub const EPILOGUE_SIZES_OF_THE_CPU: [Size; 4] = [(130, 140, 24), (1, 9, 700), (9, 1, 3), (3, 5, 0)];
