//! [`Term`], a value with operators, for formulas in ordinary notation.
//!
//! Each operator is one instruction, and numbers beside a [`Term`] are constants of its register kind. The
//! text of a formula therefore also shows its instruction count.
//!
//! The operators are not inlined: formulas have some two thousand of them, and each runs once for a kernel.

use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Shl, Shr, Sub};

use super::coefficients::Fit;
use super::rounded;
use crate::fuse::ir::instruction::{Instruction, RegisterKind};
use crate::fuse::ir::program::{Program, Value, ValueParts};
use crate::types::DType;

/// A value of a program under construction.
#[derive(Clone, Copy)]
pub(super) struct Term<'p> {
    program: &'p RefCell<Program>,
    pub(super) value: Value,
}

/// Terms, and numbers that become constants as wide as the term beside them.
pub(super) trait Like<'p> {
    fn like(self, other: Term<'p>) -> Term<'p>;
}

impl<'p> Like<'p> for Term<'p> {
    fn like(self, _: Term<'p>) -> Term<'p> {
        self
    }
}

impl<'p> Like<'p> for f64 {
    fn like(self, other: Term<'p>) -> Term<'p> {
        other.write(|program| program.float(other.value, self))
    }
}

impl<'p> Like<'p> for i64 {
    fn like(self, other: Term<'p>) -> Term<'p> {
        other.write(|program| program.integer(other.value, self))
    }
}

// Not generic over the formula, so that they compile once for each number of values.

fn terms<'p, const N: usize>(program: &'p RefCell<Program>, values: [Value; N]) -> [Term<'p>; N] {
    values.map(|value| Term { program, value })
}

fn values<const N: usize>(terms: [Term<'_>; N]) -> [Value; N] {
    terms.map(|term| term.value)
}

fn real_parts<const N: usize>(operands: &[ValueParts]) -> [Value; N] {
    std::array::from_fn(|operand| operands[operand][0])
}

/// Applies a formula to values of a program.
pub(super) fn formula<const N: usize, const M: usize>(
    program: &mut Program,
    values: [Value; N],
    formula: impl for<'p> FnOnce([Term<'p>; N]) -> [Term<'p>; M],
) -> [Value; M] {
    let cell = RefCell::new(std::mem::take(program));
    let results = self::values(formula(terms(&cell, values)));
    *program = cell.into_inner();
    results
}

/// Applies a formula to the real operands of an operation on floats, and rounds the result to the dtype; see
/// [`formula`].
pub(super) fn real<const N: usize>(
    program: &mut Program,
    dtype: DType,
    operands: &[ValueParts],
    of: impl for<'p> FnOnce([Term<'p>; N]) -> Term<'p>,
) -> ValueParts {
    let [result] = formula(program, real_parts(operands), |terms| [of(terms)]);
    super::real_parts_of(rounded(program, dtype, result))
}

macro_rules! operators {
    ($($trait:ident $method:ident $instruction:ident;)*) => {$(
        impl<'p, T: Like<'p>> $trait<T> for Term<'p> {
            type Output = Term<'p>;

            #[inline(never)]
            fn $method(self, right: T) -> Term<'p> {
                let right = right.like(self).value;
                self.write(|program| program.$instruction(self.value, right))
            }
        }
    )*};
}

operators! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
    BitAnd bitand and;
    BitOr bitor or;
    BitXor bitxor xor;
}

impl<'p> Neg for Term<'p> {
    type Output = Term<'p>;

    #[inline(never)]
    fn neg(self) -> Term<'p> {
        self.write(|program| program.negate(self.value))
    }
}

impl<'p> Not for Term<'p> {
    type Output = Term<'p>;

    #[inline(never)]
    fn not(self) -> Term<'p> {
        self.write(|program| program.not(self.value))
    }
}

impl<'p> Shl<u32> for Term<'p> {
    type Output = Term<'p>;

    #[inline(never)]
    fn shl(self, count: u32) -> Term<'p> {
        self.write(|program| {
            let count = program.bits32(count);
            program.shift_left(self.value, count)
        })
    }
}

/// A logical shift.
impl<'p> Shr<u32> for Term<'p> {
    type Output = Term<'p>;

    #[inline(never)]
    fn shr(self, count: u32) -> Term<'p> {
        self.write(|program| {
            let count = program.bits32(count);
            program.shift_right_unsigned(self.value, count)
        })
    }
}

macro_rules! of_one {
    ($($name:ident)*) => {$(
        #[inline(never)]
        pub(super) fn $name(self) -> Term<'p> {
            self.write(|program| program.$name(self.value))
        }
    )*};
}

macro_rules! of_two {
    ($($name:ident)*) => {$(
        #[inline(never)]
        pub(super) fn $name(self, other: impl Like<'p>) -> Term<'p> {
            let other = other.like(self).value;
            self.write(|program| program.$name(self.value, other))
        }
    )*};
}

impl Fit {
    /// Returns the coefficients for terms of this register kind.
    pub(super) fn of(&self, like: Term<'_>) -> &'static [f64] {
        if like.is_double() { self.double } else { self.single }
    }
}

impl<'p> Term<'p> {
    /// Applies a function of the program to the term.
    pub(super) fn write(self, function: impl FnOnce(&mut Program) -> Value) -> Term<'p> {
        Term { program: self.program, value: function(&mut self.program.borrow_mut()) }
    }

    /// Applies a function of the program and another value to the term.
    pub(super) fn then(self, function: impl FnOnce(&mut Program, Value) -> Value) -> Term<'p> {
        self.write(|program| function(program, self.value))
    }

    /// Wraps another value of the same program.
    pub(super) fn beside(self, value: Value) -> Term<'p> {
        Term { value, ..self }
    }

    of_one! { square_root absolute truncate round is_nan bits_of float_of }
    of_two! { minimum maximum equal less less_equal less_signed less_unsigned unordered shift_right_signed shift_left
    shift_right_unsigned divide_unsigned }

    pub(super) fn kind(self) -> RegisterKind {
        self.program.borrow().kind(self.value)
    }

    pub(super) fn is_double(self) -> bool {
        self.kind() == RegisterKind::Float64
    }

    /// Applies an instruction to this term and others.
    pub(super) fn apply(self, instruction: Instruction, others: &[Term<'p>]) -> Term<'p> {
        let mut operands = vec![self.value];
        operands.extend(others.iter().map(|other| other.value));
        self.write(|program| program.apply(instruction, &operands))
    }

    /// Returns a constant of the term's register kind.
    pub(super) fn constant(self, number: f64) -> Term<'p> {
        number.like(self)
    }

    /// Returns one constant beside f32 and another beside f64.
    pub(super) fn by_precision(self, single: f64, double: f64) -> Term<'p> {
        self.constant(if self.is_double() { double } else { single })
    }

    /// Returns the constant at which a unit in the last place is 1, so that adding it rounds to an integer in the last bits.
    pub(super) fn rounding_constant(self) -> Term<'p> {
        self.by_precision(1.5 * 2f64.powi(23), 1.5 * 2f64.powi(52))
    }

    /// Returns a constant of 32 bits.
    #[inline(never)]
    pub(super) fn bits32(self, bits: u32) -> Term<'p> {
        self.write(|program| program.bits32(bits))
    }

    /// Returns self · factor + summand, rounded once.
    #[inline(never)]
    pub(super) fn fma(self, factor: impl Like<'p>, summand: impl Like<'p>) -> Term<'p> {
        let (factor, summand) = (factor.like(self).value, summand.like(self).value);
        self.write(|program| program.multiply_add(self.value, factor, summand))
    }

    /// Selects `yes` if this truth value holds, otherwise `no`.
    #[inline(never)]
    pub(super) fn select(self, yes: Term<'p>, no: impl Like<'p>) -> Term<'p> {
        let no = no.like(yes).value;
        self.write(|program| program.choose(self.value, yes.value, no))
    }

    /// Returns `usual`, or the results of a rare body if this truth value holds. Only elements that need the
    /// body run it.
    pub(super) fn rarely<const N: usize>(
        self,
        usual: [Term<'p>; N],
        body: impl FnOnce() -> [Term<'p>; N],
    ) -> [Term<'p>; N] {
        let number = self.program.borrow_mut().open_rare(self.value);
        let rare = body();
        self.close_rare(number, usual, rare)
    }

    fn close_rare<const N: usize>(
        self,
        number: u32,
        usual: [Term<'p>; N],
        rare: [Term<'p>; N],
    ) -> [Term<'p>; N] {
        let results = std::array::from_fn(|result| [usual[result].value, rare[result].value]);
        self.program.borrow_mut().close_rare(number, results).map(|value| self.beside(value))
    }

    /// c[0] + x (c[1] + x (c[2] + …)).
    pub(super) fn polynomial(self, fit: &Fit) -> Term<'p> {
        self.series(fit.of(self))
    }

    /// Evaluates a polynomial whose coefficients are terms.
    pub(super) fn series(self, coefficients: &[f64]) -> Term<'p> {
        let mut terms = coefficients.iter().rev();
        let first = terms.next().map_or(0.0, |&last| last);
        terms.fold(self.constant(first), |sum, &coefficient| sum.fma(self, coefficient))
    }

    /// Returns the magnitude with the sign of another term.
    pub(super) fn with_sign(self, sign: Term<'p>) -> Term<'p> {
        let low = if self.is_double() { i64::MAX } else { i64::from(i32::MAX) };
        ((self.bits_of() & low) | (sign.bits_of() & !low)).float_of()
    }

    /// Negates the term if the other is negative.
    pub(super) fn by_sign(self, sign: Term<'p>) -> Term<'p> {
        let high = if self.is_double() { i64::MIN } else { i64::from(i32::MIN) };
        (self.bits_of() ^ (sign.bits_of() & high)).float_of()
    }

    /// Returns whether the sign bit is set.
    pub(super) fn is_negative(self) -> Term<'p> {
        self.bits_of().less_signed(0)
    }

    /// Returns the result, or this term if it is NaN.
    pub(super) fn unless_nan(self, result: Term<'p>) -> Term<'p> {
        self.is_nan().select(self, result)
    }
}
