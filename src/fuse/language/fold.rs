//! Folds: the list of functions that combine two values, as instructions.
//!
//! A value has at most two parts: a number, the parts of a complex number, or an extreme and its index.
//!
//! Invariant: merging [`FoldRules::identity`] with any value gives that value bit for bit (except the bits of
//! a NaN), because missing elements are the identity on a device and absent on the CPU. The identity of sums
//! is -0, because 0 would turn -0 into 0.

use super::lower::{arithmetic, compare, product};
use crate::error::{Error, Result};
use crate::fuse::ir::instruction::RegisterKind;
use crate::fuse::ir::program::{Program, Step, Value, kind_of, parts};
use crate::types::DType;

/// The function that a reduction or scan folds values with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fold {
    /// x + y. Integers and bools are summed in i64 (u64 in u64), f16 and bf16 in f32 with rounding at the
    /// end.
    Sum,
    /// x · y, in the dtypes of a sum. A product with a zero is 0 even if partial products overflow, and NaN
    /// if an element is infinite or NaN.
    Product,
    /// The smallest element; NaN if any element is NaN. -0 is less than 0.
    Minimum,
    /// The largest element; NaN if any element is NaN. 0 is greater than -0.
    Maximum,
    /// The index of the smallest element, the first of equal ones. NaN is less than all numbers, and zeros
    /// are equal.
    ArgMinimum,
    /// The index of the largest element, the first of equal ones. NaN is greater than all numbers, and zeros
    /// are equal.
    ArgMaximum,
    /// True if any element is nonzero; NaN is nonzero.
    Any,
    /// True if all elements are nonzero.
    All,
    /// Σ (s x)² and the factor s, as the parts of a complex number; |x| of complex elements. s is 1, or a power of
    /// two if the sum of squares is infinite or near the end of the normal range. f16 and bf16 are added in f32.
    SumOfSquares,
}

/// The exponents of the factors that rescale elements of f32 and of f64, and of the sums below which they do.
///
/// They bring every element that matters, and its square, into the normal range. In f32, an infinite sum of squares becomes at
/// least 2^128 · 2^-180 = 2^-52, beside which all squares below 2^-126 of 2^40 elements vanish; and at most 2^76 an element. Of a sum
/// below 2^-100, squares may have lost digits below the normal range, which 2^26 of them would show; elements are from 2^-149 to
/// 2^-50, and their squares become 2^-118 to 2^80. A power of two changes no digit of other sums.
const RESCALING: [(i32, i32); 2] = [(90, -100), (600, -960)];

/// A sum of squares that may have left the normal range.
pub(in crate::fuse) trait Rescale: Copy {
    /// Returns the factor of the elements whose sum of squares this is: 1, or a power of two if the sum is infinite or too
    /// small.
    fn rescale(self) -> Self;

    /// Returns the least sum that is not too small.
    fn least() -> Self;
}

macro_rules! rescale {
    ($type:ident, $exponents:expr) => {
        impl Rescale for $type {
            fn rescale(self) -> $type {
                let factor = $type::from(2u8).powi($exponents.0);
                match self {
                    sum if sum == $type::INFINITY => factor.recip(),
                    sum if sum < $type::least() => factor,
                    _ => 1.0,
                }
            }

            fn least() -> $type {
                $type::from(2u8).powi($exponents.1)
            }
        }
    };
}

rescale!(f32, RESCALING[0]);
rescale!(f64, RESCALING[1]);

/// The bits that a kernel compares a sum of squares with, and those of its factors.
pub(in crate::fuse) struct RescalingBits {
    pub(in crate::fuse) infinity: u64,
    pub(in crate::fuse) least: u64,
    /// The factors of an infinite sum and of one that is too small.
    pub(in crate::fuse) factors: [u64; 2],
    pub(in crate::fuse) one: u64,
}

impl RescalingBits {
    /// Returns the bits for sums in this kind of register.
    pub(in crate::fuse) fn new(kind: RegisterKind) -> RescalingBits {
        let (of_f32, of_f64) = (|x: f32| u64::from(x.to_bits()), f64::to_bits);
        match kind {
            RegisterKind::Float64 => RescalingBits {
                infinity: of_f64(f64::INFINITY),
                least: of_f64(f64::least()),
                factors: [f64::INFINITY.rescale(), 0f64.rescale()].map(of_f64),
                one: of_f64(1.0),
            },
            _ => RescalingBits {
                infinity: of_f32(f32::INFINITY),
                least: of_f32(f32::least()),
                factors: [f32::INFINITY.rescale(), 0f32.rescale()].map(of_f32),
                one: of_f32(1.0),
            },
        }
    }
}

impl Fold {
    /// All folds but [`SumOfSquares`](Self::SumOfSquares), whose result has two parts.
    pub const EVERY: [Fold; 8] = [
        Fold::Sum,
        Fold::Product,
        Fold::Minimum,
        Fold::Maximum,
        Fold::ArgMinimum,
        Fold::ArgMaximum,
        Fold::Any,
        Fold::All,
    ];

    /// Returns the name that errors use.
    pub const fn name(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::Product => "prod",
            Fold::Minimum => "min",
            Fold::Maximum => "max",
            Fold::ArgMinimum => "argmin",
            Fold::ArgMaximum => "argmax",
            Fold::Any => "any",
            Fold::All => "all",
            Fold::SumOfSquares => "sum_of_squares",
        }
    }

    /// Returns whether an empty reduction has a value: true for sums, products and tests, false for minima
    /// and maxima.
    pub const fn has_empty(self) -> bool {
        matches!(self, Fold::Sum | Fold::Product | Fold::Any | Fold::All | Fold::SumOfSquares)
    }

    /// Returns the dtype of the result for elements of a dtype.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for dtypes without an order or without arithmetic.
    pub fn result(self, dtype: DType) -> Result<DType> {
        self.accumulator(dtype)?;
        Ok(match self {
            Fold::ArgMinimum | Fold::ArgMaximum => DType::I64,
            Fold::Any | Fold::All => DType::Bool,
            Fold::Sum | Fold::Product => whole(dtype),
            Fold::Minimum | Fold::Maximum => dtype,
            Fold::SumOfSquares if matches!(dtype, DType::F64 | DType::C128) => DType::C128,
            Fold::SumOfSquares => DType::C64,
        })
    }

    /// Returns the dtype in which elements of a dtype are folded.
    ///
    /// # Errors
    ///
    /// As [`result`](Self::result).
    pub(in crate::fuse) fn accumulator(self, dtype: DType) -> Result<DType> {
        let ordered = matches!(self, Fold::Minimum | Fold::Maximum | Fold::ArgMinimum | Fold::ArgMaximum);
        if dtype.is_storage_only() || ordered && dtype.is_complex() {
            let wanted = match ordered {
                true => "a real dtype, or bool",
                false => "a dtype to compute in; cast it first, such as to f32",
            };
            let found = dtype.to_string();
            return Err(Error::DTypeMismatch { operation: self.name(), wanted: wanted.to_owned(), found });
        }
        if self == Fold::SumOfSquares && !(dtype.is_float() || dtype.is_complex()) {
            let (wanted, found) = ("a float or complex dtype".to_owned(), dtype.to_string());
            return Err(Error::DTypeMismatch { operation: self.name(), wanted, found });
        }
        Ok(match self {
            Fold::SumOfSquares if matches!(dtype, DType::F64 | DType::C128) => DType::F64,
            Fold::SumOfSquares => DType::F32,
            Fold::Any | Fold::All => DType::U8,
            Fold::Sum | Fold::Product if matches!(dtype, DType::F16 | DType::BF16) => DType::F32,
            Fold::Sum | Fold::Product => whole(dtype),
            // Predicate registers cannot be shuffled or stored.
            _ if dtype == DType::Bool => DType::U8,
            _ => dtype,
        })
    }

    /// Returns whether the bits of the result may depend on the order in which values are merged.
    pub(in crate::fuse) fn has_order(self) -> bool {
        !matches!(self, Fold::Minimum | Fold::Maximum | Fold::Any | Fold::All)
    }

    /// Returns whether merging two values in either order gives the same bits.
    pub(in crate::fuse) fn is_commutative(self) -> bool {
        self.is_sum() || !self.has_order()
    }

    /// Returns whether values are merged by addition.
    pub(in crate::fuse) fn is_sum(self) -> bool {
        matches!(self, Fold::Sum | Fold::SumOfSquares)
    }

    /// Returns whether a value includes its index.
    pub(in crate::fuse) fn has_index(self) -> bool {
        matches!(self, Fold::ArgMinimum | Fold::ArgMaximum)
    }
}

/// Returns the dtype of a sum.
fn whole(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::I64,
        DType::U64 => DType::U64,
        _ if dtype.is_integer() => DType::I64,
        _ => dtype,
    }
}

/// A fold of a dtype, compiled for both devices.
pub(in crate::fuse) struct FoldRules {
    /// The register kind of each part of a value.
    pub(in crate::fuse) kinds: Vec<RegisterKind>,
    /// The bits of the parts of a missing element.
    pub(in crate::fuse) identity: [u64; 2],
    /// The bits of the value of an empty reduction, in the accumulator's dtype.
    pub(in crate::fuse) empty: [u64; 2],
    /// Merges any two values in order: inputs 0 and 1.
    pub(in crate::fuse) merge: Program,
    /// Appends an element, which is not the identity, to a value of earlier elements.
    pub(in crate::fuse) append: Program,
    /// Converts a folded value, input 0, to the value that it represents, if the two differ.
    pub(in crate::fuse) restore: Option<Program>,
}

impl FoldRules {
    /// Compiles a fold for a dtype from [`Fold::accumulator`].
    pub(in crate::fuse) fn new(fold: Fold, dtype: DType) -> FoldRules {
        let kinds = match (fold.has_index(), parts(dtype)) {
            (true, _) => vec![kind_of(dtype), RegisterKind::Bits64],
            (false, count) => vec![kind_of(dtype); count],
        };
        let program = |append: bool| {
            let mut program = Program::default();
            let (left, right) = (side(&mut program, &kinds, 0), side(&mut program, &kinds, 1));
            let result = combine(&mut program, fold, dtype, left, right, append);
            program.outputs.push(result);
            program
        };
        let (merge, append) = (program(false), program(true));
        let can_overflow = dtype.is_float() || dtype.is_complex();
        let restore = (fold == Fold::Product && can_overflow).then(|| {
            let mut program = Program::default();
            let value = side(&mut program, &kinds, 0);
            let result = product::restored(&mut program, value);
            program.outputs.push(result);
            program
        });
        let identity = identity(fold, dtype);
        let empty = match fold {
            Fold::Sum => [0; 2],
            Fold::SumOfSquares => [0, RescalingBits::new(kinds[0]).one],
            _ => identity,
        };
        FoldRules { kinds, identity, empty, merge, append, restore }
    }

    /// Returns the bytes of a value.
    pub(in crate::fuse) fn bytes(&self) -> usize {
        self.kinds.iter().map(|kind| bytes(*kind)).sum()
    }
}

/// Loads the parts of an operand.
fn side(program: &mut Program, kinds: &[RegisterKind], input: u32) -> [Value; 2] {
    [0, kinds.len() - 1].map(|part| program.step(Step::Load { input, part: part as u32 }, kinds[part]))
}

/// Returns the bytes of a part in memory.
pub(in crate::fuse) fn bytes(kind: RegisterKind) -> usize {
    match kind {
        RegisterKind::Bits64 | RegisterKind::Float64 => 8,
        RegisterKind::Predicate | RegisterKind::Bits32 | RegisterKind::Float32 => 4,
    }
}

fn combine(
    program: &mut Program,
    fold: Fold,
    dtype: DType,
    left: [Value; 2],
    right: [Value; 2],
    append: bool,
) -> [Value; 2] {
    let both = [left, right];
    match fold {
        Fold::Sum | Fold::SumOfSquares => arithmetic::add(program, dtype, &both),
        Fold::Product => product::combined(program, dtype, left, right),
        Fold::Minimum => compare::minimum(program, dtype, &both),
        Fold::Maximum => compare::maximum(program, dtype, &both),
        Fold::Any => same(program.or(left[0], right[0])),
        Fold::All => same(program.and(left[0], right[0])),
        Fold::ArgMinimum | Fold::ArgMaximum => {
            let take = takes_right(program, fold, dtype, left, right, append);
            [program.choose(take, right[0], left[0]), program.choose(take, right[1], left[1])]
        }
    }
}

fn same(value: Value) -> [Value; 2] {
    [value, value]
}

/// Returns whether the right extreme precedes the left one in the order of the fold.
fn takes_right(
    program: &mut Program,
    fold: Fold,
    dtype: DType,
    left: [Value; 2],
    right: [Value; 2],
    append: bool,
) -> Value {
    let (x, y) = (left[0], right[0]);
    // The smaller and the larger operand, in this order.
    let (below, above) = if fold == Fold::ArgMaximum { (x, y) } else { (y, x) };
    let is_float = dtype.is_float();
    if append && is_float {
        // True if the new element is more extreme or NaN, unless the value is NaN already.
        let within = program.less_equal(above, below);
        let outside = program.not(within);
        let number = program.equal(x, x);
        return program.and(outside, number);
    }
    let further = compare::is_less(program, dtype, below, above);
    if append {
        return further;
    }
    let (mut further, mut level) = (further, program.equal(x, y));
    if is_float {
        let (no_left, no_right) = (program.is_nan(x), program.is_nan(y));
        let number = program.not(no_left);
        let first_nan = program.and(no_right, number);
        further = program.or(further, first_nan);
        let both_nan = program.and(no_left, no_right);
        level = program.or(level, both_nan);
    }
    let earlier = program.less_unsigned(right[1], left[1]);
    let level = program.and(level, earlier);
    program.or(further, level)
}

fn identity(fold: Fold, dtype: DType) -> [u64; 2] {
    let float = |x: f64| match kind_of(dtype) {
        RegisterKind::Float64 => x.to_bits(),
        _ => u64::from((x as f32).to_bits()),
    };
    let (width, signed) = (8 * dtype.size() as u32, dtype.is_signed_integer());
    let is_float = dtype.is_float();
    // As a register holds it: narrow integers are sign-extended.
    let register = |x: i128| match kind_of(dtype) {
        RegisterKind::Bits64 => x as u64,
        _ => u64::from(x as u32),
    };
    let least = || match (is_float, signed) {
        (true, _) => float(f64::NEG_INFINITY),
        (_, true) => register(-(1i128 << (width - 1))),
        _ => 0,
    };
    let most = || match (is_float, signed) {
        (true, _) => float(f64::INFINITY),
        (_, true) => register((1i128 << (width - 1)) - 1),
        _ => register((1i128 << width) - 1),
    };
    let fractional = is_float || dtype.is_complex();
    match fold {
        Fold::Sum | Fold::SumOfSquares if fractional => [float(-0.0); 2],
        Fold::Sum | Fold::SumOfSquares | Fold::Any => [0; 2],
        Fold::Product if fractional => [float(1.0), float(0.0)],
        Fold::Product | Fold::All => [1, 0],
        Fold::Minimum => [most(), 0],
        Fold::Maximum => [least(), 0],
        Fold::ArgMinimum => [most(), u64::MAX],
        Fold::ArgMaximum => [least(), u64::MAX],
    }
}
