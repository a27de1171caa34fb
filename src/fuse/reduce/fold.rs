//! What a reduction does with two values: the one list of folds, as instructions.
//!
//! A fold keeps one value of at most two parts: a number, the parts of a complex one, or an extreme and where it was. What
//! must stay true: [`Rules::identity`] beside any value gives that value bit for bit (but for a NaN's own bits), since
//! missing elements are it on a device and left out on the CPU. Why -0 for sums: 0 would turn -0 into 0.

use super::super::instruction::Kind;
use super::super::lower::{arithmetic, compare, product};
use super::super::program::{Program, Step, Value, kind_of, parts};
use crate::error::{Error, Result};
use crate::types::DType;

/// How a reduction makes one value of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fold {
    /// x + y. Integers and bools become i64 (u64 stays), f16 and bf16 are added in f32 and rounded at the end.
    Sum,
    /// x · y, in the dtypes of a sum. A zero makes it 0 whatever overflows on the way; with an infinity or NaN among the
    /// elements it makes NaN.
    Product,
    /// The least; NaN where one is, and -0 is less than 0.
    Minimum,
    /// The greatest; NaN where one is, and 0 is greater than -0.
    Maximum,
    /// Where the least is, the first of equal ones; a NaN is less than all numbers, and zeros are equal.
    ArgMinimum,
    /// Where the greatest is, the first of equal ones; a NaN is greater than all numbers, and zeros are equal.
    ArgMaximum,
    /// Whether one is not 0, which a NaN is not.
    Any,
    /// Whether none is 0.
    All,
}

impl Fold {
    /// Every fold.
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

    /// The name, as errors have it.
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
        }
    }

    /// Whether nothing has a value: the sum, the product and the tests of no elements do, extremes do not.
    pub const fn has_empty(self) -> bool {
        matches!(self, Fold::Sum | Fold::Product | Fold::Any | Fold::All)
    }

    /// The dtype of the result for elements of a dtype.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for dtypes that have no order or none of the arithmetic.
    pub fn result(self, dtype: DType) -> Result<DType> {
        self.accumulator(dtype)?;
        Ok(match self {
            Fold::ArgMinimum | Fold::ArgMaximum => DType::I64,
            Fold::Any | Fold::All => DType::Bool,
            Fold::Sum | Fold::Product => whole(dtype),
            Fold::Minimum | Fold::Maximum => dtype,
        })
    }

    /// The dtype that elements of a dtype are folded in.
    ///
    /// # Errors
    ///
    /// As [`result`](Self::result).
    pub(super) fn accumulator(self, dtype: DType) -> Result<DType> {
        let ordered = matches!(self, Fold::Minimum | Fold::Maximum | Fold::ArgMinimum | Fold::ArgMaximum);
        if dtype.is_storage_only() || ordered && dtype.is_complex() {
            let wanted = match ordered {
                true => "a real dtype, or bool",
                false => "a dtype to compute in; cast it first, such as to f32",
            };
            let found = dtype.to_string();
            return Err(Error::DTypeMismatch { operation: self.name(), wanted: wanted.to_owned(), found });
        }
        Ok(match self {
            Fold::Any | Fold::All => DType::U8,
            Fold::Sum | Fold::Product if matches!(dtype, DType::F16 | DType::BF16) => DType::F32,
            Fold::Sum | Fold::Product => whole(dtype),
            // A truth value is no register that can be handed around.
            _ if dtype == DType::Bool => DType::U8,
            _ => dtype,
        })
    }

    /// Whether a value has its place beside it.
    pub(super) fn has_index(self) -> bool {
        matches!(self, Fold::ArgMinimum | Fold::ArgMaximum)
    }
}

/// A sum's dtype.
fn whole(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::I64,
        DType::U64 => DType::U64,
        _ if dtype.is_integer() => DType::I64,
        _ => dtype,
    }
}

/// A fold of a dtype, ready for both devices.
pub(super) struct Rules {
    /// What each part of a value is kept in.
    pub(super) kinds: Vec<Kind>,
    /// The bits of a missing element's parts.
    pub(super) identity: [u64; 2],
    /// The bits of the value of nothing, in the dtype of the accumulator.
    pub(super) empty: [u64; 2],
    /// Of two values in their order, whatever they are: inputs 0 and 1.
    pub(super) merge: Program,
    /// As `merge`, where the right one is an element that comes after all of the left one, which is none of the identity.
    pub(super) append: Program,
    /// Of a folded value, which is input 0: the value that it stands for, where those differ.
    pub(super) restore: Option<Program>,
}

impl Rules {
    /// For a dtype that [`Fold::accumulator`] gave.
    pub(super) fn new(fold: Fold, dtype: DType) -> Rules {
        let kinds = match (fold.has_index(), parts(dtype)) {
            (true, _) => vec![kind_of(dtype), Kind::Bits64],
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
        let empty = if fold == Fold::Sum { [0; 2] } else { identity };
        Rules { kinds, identity, empty, merge, append, restore }
    }

    /// The bytes of a value.
    pub(super) fn bytes(&self) -> usize {
        self.kinds.iter().map(|kind| bytes(*kind)).sum()
    }
}

/// The parts of an operand of a rule.
fn side(program: &mut Program, kinds: &[Kind], input: u32) -> [Value; 2] {
    [0, kinds.len() - 1].map(|part| program.step(Step::Load { input, part: part as u32 }, kinds[part]))
}

/// The bytes that a part takes in memory.
pub(super) fn bytes(kind: Kind) -> usize {
    match kind {
        Kind::Bits64 | Kind::Float64 => 8,
        Kind::Predicate | Kind::Bits32 | Kind::Float32 => 4,
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
        Fold::Sum => arithmetic::add(program, dtype, &both),
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

/// Whether the right extreme stands before the left one.
fn takes_right(
    program: &mut Program,
    fold: Fold,
    dtype: DType,
    left: [Value; 2],
    right: [Value; 2],
    append: bool,
) -> Value {
    let (x, y) = (left[0], right[0]);
    // Of the lesser and the greater, in this order.
    let (below, above) = if fold == Fold::ArgMaximum { (x, y) } else { (y, x) };
    let is_float = dtype.is_float();
    if append && is_float {
        // Further out or a NaN, unless there is one already.
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
        Kind::Float64 => x.to_bits(),
        _ => u64::from((x as f32).to_bits()),
    };
    let (width, signed) = (8 * dtype.size() as u32, dtype.is_signed_integer());
    let is_float = dtype.is_float();
    // As a register holds it: narrow integers extended by their sign.
    let register = |x: i128| match kind_of(dtype) {
        Kind::Bits64 => x as u64,
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
        Fold::Sum if fractional => [float(-0.0); 2],
        Fold::Sum | Fold::Any => [0; 2],
        Fold::Product if fractional => [float(1.0), float(0.0)],
        Fold::Product | Fold::All => [1, 0],
        Fold::Minimum => [most(), 0],
        Fold::Maximum => [least(), 0],
        Fold::ArgMinimum => [most(), u64::MAX],
        Fold::ArgMaximum => [least(), u64::MAX],
    }
}
