//! [`GoldenTensor`], batches of elements of Z\[φ\] on any device.

use std::sync::LazyLock;

use super::super::PHI;
use super::super::checked::Checked;
use super::GoldenInteger;
use crate::error::{Error, Result};
use crate::fuse::Expr;
use crate::tensor::{Device, Fused, Tensor};
use crate::types::DType;

/// A tensor of a + bφ: two tensors of i64, with one shape and device.
///
/// Operations are fused expressions in 128 bits, so the overflow of each element is exact; see [`Checked`]. Operands
/// broadcast as tensors do.
///
/// ```
/// use selvedge::srt::{GoldenInteger, GoldenTensor};
/// use selvedge::tensor::Device;
/// let x = GoldenTensor::from_slice(&[(2, 3).into(), (0, 1).into()], &[2], &Device::best())?;
/// let y = GoldenTensor::from_slice(&[(1, -1).into()], &[1], &Device::best())?;
/// assert_eq!(x.mul(&y)?.check()?.to_vec()?, [(-1, -2), (-1, 0)].map(GoldenInteger::from));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GoldenTensor {
    a: Tensor,
    b: Tensor,
}

/// A signed integer of 128 bits in two registers; it wraps.
#[derive(Clone, Copy)]
struct Double<'g> {
    high: Expr<'g>,
    low: Expr<'g>,
}

impl<'g> Double<'g> {
    fn from(x: Expr<'g>) -> Double<'g> {
        Double { high: (x >> 63i64).cast(DType::U64), low: x.cast(DType::U64) }
    }

    fn product(x: Expr<'g>, y: Expr<'g>) -> Double<'g> {
        let (bits_x, bits_y) = (x.cast(DType::U64), y.cast(DType::U64));
        let masked = |sign: Expr<'g>, other: Expr<'g>| (sign >> 63i64).cast(DType::U64) & other;
        let high = bits_x.mul_high(bits_y) - masked(x, bits_y) - masked(y, bits_x);
        Double { high, low: bits_x * bits_y }
    }

    fn add(self, other: Double<'g>) -> Double<'g> {
        let low = self.low + other.low;
        Double { high: self.high + other.high + low.lt(self.low).cast(DType::U64), low }
    }

    fn sub(self, other: Double<'g>) -> Double<'g> {
        let borrow = self.low.lt(other.low).cast(DType::U64);
        Double { high: self.high - other.high - borrow, low: self.low - other.low }
    }

    fn value(self) -> Expr<'g> {
        self.low.cast(DType::I64)
    }

    /// True where i64 does not hold the number.
    fn overflows(self) -> Expr<'g> {
        self.high.cast(DType::I64).ne(self.value() >> 63i64)
    }
}

/// The results and flag of a pair.
fn pair<'g>(a: Double<'g>, b: Double<'g>) -> [Expr<'g>; 3] {
    [a.value(), b.value(), a.overflows().logical_or(b.overflows())]
}

fn number(x: Double<'_>) -> [Expr<'_>; 2] {
    [x.value(), x.overflows()]
}

/// Methods that are one expression of both operands' coefficients.
macro_rules! operations {
    ($($(#[doc = $doc:literal])* $name:ident($($other:ident)?) -> $result:ident $operation:literal
        |[$($coefficient:ident),*]| $expression:expr;)*) => {
        impl GoldenTensor {$(
            $(#[doc = $doc])*
            ///
            /// # Errors
            ///
            /// [`Error::DeviceMismatch`], [`Error::InvalidArgument`] for shapes that do not broadcast; those of a fused run.
            pub fn $name(&self $(, $other: &GoldenTensor)?) -> Result<Checked<operations!(@type $result)>> {
                operations!(@static $result [$($coefficient),*] $expression);
                let outputs = EXPRESSION.run_all([&self.a, &self.b $(, &$other.a, &$other.b)?])?;
                Ok(operations!(@result $result $operation outputs))
            }
        )*}
    };
    (@type pair) => { GoldenTensor };
    (@type number) => { Tensor };
    (@static pair [$($coefficient:ident),*] $expression:expr) => {
        static EXPRESSION: LazyLock<Fused<{ [$(stringify!($coefficient)),*].len() }, 3>> =
            LazyLock::new(|| Fused::with_outputs(|[$($coefficient),*]| $expression));
    };
    (@static number [$($coefficient:ident),*] $expression:expr) => {
        static EXPRESSION: LazyLock<Fused<{ [$(stringify!($coefficient)),*].len() }, 2>> =
            LazyLock::new(|| Fused::with_outputs(|[$($coefficient),*]| $expression));
    };
    (@result pair $operation:literal $outputs:ident) => {{
        let [a, b, overflow] = $outputs;
        Checked::new($operation, GoldenTensor { a, b }, overflow)
    }};
    (@result number $operation:literal $outputs:ident) => {{
        let [values, overflow] = $outputs;
        Checked::new($operation, values, overflow)
    }};
}

operations! {
    /// Returns self + other.
    add(other) -> pair "a sum in Z[φ]" |[a1, b1, a2, b2]| {
        let double = Double::from;
        pair(double(a1).add(double(a2)), double(b1).add(double(b2)))
    };
    /// Returns self - other.
    sub(other) -> pair "a difference in Z[φ]" |[a1, b1, a2, b2]| {
        let double = Double::from;
        pair(double(a1).sub(double(a2)), double(b1).sub(double(b2)))
    };
    /// Returns self · other.
    mul(other) -> pair "a product in Z[φ]" |[a1, b1, a2, b2]| {
        let (product, both) = (Double::product, Double::product(b1, b2));
        pair(product(a1, a2).add(both), product(a1, b2).add(product(a2, b1)).add(both))
    };
    /// Returns -self.
    neg() -> pair "a negation in Z[φ]" |[a, b]| {
        let zero = Double::from(a.bit_and(0i64));
        pair(zero.sub(Double::from(a)), zero.sub(Double::from(b)))
    };
    /// Returns the conjugates a + b - bφ.
    conjugate() -> pair "a conjugate in Z[φ]" |[a, b]| {
        let (a, b, zero) = (Double::from(a), Double::from(b), Double::from(a.bit_and(0i64)));
        pair(a.add(b), zero.sub(b))
    };
    /// Returns the golden recursion φ · self = b + (a + b) φ.
    recursion() -> pair "the golden recursion" |[a, b]| {
        let (a, b) = (Double::from(a), Double::from(b));
        pair(b, a.add(b))
    };
    /// Returns the inverse of the [`recursion`](Self::recursion), self / φ = b - a + aφ.
    recursion_inverse() -> pair "the inverse golden recursion" |[a, b]| {
        let (a, b) = (Double::from(a), Double::from(b));
        pair(b.sub(a), a)
    };
    /// Returns the norms a² + ab - b².
    norm() -> number "a norm in Z[φ]" |[a, b]| {
        let product = Double::product;
        number(product(a, a).add(product(a, b)).sub(product(b, b)))
    };
    /// Returns the traces 2a + b.
    trace() -> number "a trace in Z[φ]" |[a, b]| {
        let (a, b) = (Double::from(a), Double::from(b));
        number(a.add(a).add(b))
    };
}

impl GoldenTensor {
    /// Creates a + bφ of two tensors.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for a dtype other than i64, [`Error::InvalidArgument`] for two shapes,
    /// [`Error::DeviceMismatch`] for two devices.
    pub fn new(a: Tensor, b: Tensor) -> Result<GoldenTensor> {
        const OPERATION: &str = "a tensor of Z[φ]";
        for part in [&a, &b] {
            if part.dtype() != DType::I64 {
                let (wanted, found) = ("coefficients of i64".to_owned(), part.dtype().to_string());
                return Err(Error::DTypeMismatch { operation: OPERATION, wanted, found });
            }
        }
        if a.shape() != b.shape() {
            let found = format!("coefficients of shapes {} and {}", a.shape(), b.shape());
            return Err(Error::invalid(OPERATION, found, "one shape"));
        }
        if a.device() != b.device() {
            let (left, right) = (a.device().to_string(), b.device().to_string());
            return Err(Error::DeviceMismatch { operation: OPERATION, left, right });
        }
        Ok(GoldenTensor { a, b })
    }

    /// Creates a tensor of numbers in row-major order.
    ///
    /// # Errors
    ///
    /// As [`Tensor::from_slice`].
    pub fn from_slice(numbers: &[GoldenInteger], shape: &[usize], device: &Device) -> Result<GoldenTensor> {
        let part = |part: fn(&GoldenInteger) -> i64| {
            Tensor::from_vec(numbers.iter().map(part).collect::<Vec<i64>>(), shape, device)
        };
        Ok(GoldenTensor { a: part(|number| number.a)?, b: part(|number| number.b)? })
    }

    /// Returns the numbers in row-major order. Waits for the device.
    ///
    /// # Errors
    ///
    /// As [`Tensor::to_vec`].
    pub fn to_vec(&self) -> Result<Vec<GoldenInteger>> {
        let pairs = self.a.to_vec::<i64>()?.into_iter().zip(self.b.to_vec::<i64>()?);
        Ok(pairs.map(GoldenInteger::from).collect())
    }

    /// Returns the multiples of 1.
    pub fn a(&self) -> &Tensor {
        &self.a
    }

    /// Returns the multiples of φ.
    pub fn b(&self) -> &Tensor {
        &self.b
    }

    /// Returns the [`value`](GoldenInteger::value) of each number in f64.
    ///
    /// # Errors
    ///
    /// The errors of a fused run.
    pub fn values(&self) -> Result<Tensor> {
        static EXPRESSION: LazyLock<Fused<2>> = LazyLock::new(|| Fused::new(|[a, b]| value(a, b)));
        EXPRESSION.run([&self.a, &self.b])
    }
}

/// a + b · φ in f64, each step rounded.
pub(in crate::srt) fn value<'g>(a: Expr<'g>, b: Expr<'g>) -> Expr<'g> {
    a.cast(DType::F64) + b.cast(DType::F64) * PHI
}

/// x + y in i64, and true where i64 does not hold it.
pub(in crate::srt) fn sum<'g>(x: Expr<'g>, y: Expr<'g>) -> [Expr<'g>; 2] {
    number(Double::from(x).add(Double::from(y)))
}
