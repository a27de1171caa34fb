//! [`ReduceOp`] and its computation, in the order of ranks.

use half::{bf16, f16};

use crate::error::{Error, Result};
use crate::types::{DType, Element};

/// The operation of a reduction over ranks. Operands are combined in the order of ranks.
///
/// 16-bit floats are computed in f32 and rounded once. Integers wrap, and their mean is rounded towards zero, as in NCCL. A NaN of
/// any rank gives NaN; -0 is less than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum.
    Sum,
    /// The sum divided by the number of ranks.
    Mean,
    /// The product.
    Product,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
}

impl ReduceOp {
    /// Every operation.
    pub const ALL: [ReduceOp; 5] =
        [ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max];

    pub(super) fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Mean => "mean",
            ReduceOp::Product => "product",
            ReduceOp::Min => "min",
            ReduceOp::Max => "max",
        }
    }
}

/// A real number that ranks reduce.
trait Number: Element {
    /// The type of the computation.
    type Wide: Copy + Send + Sync;

    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn combine(op: ReduceOp, left: Self::Wide, right: Self::Wide) -> Self::Wide;
    /// Returns the sum of so many ranks divided by their number.
    fn mean(sum: Self::Wide, ranks: usize) -> Self::Wide;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            type Wide = $type;

            #[inline(always)]
            fn widen(self) -> $type {
                self
            }

            #[inline(always)]
            fn narrow(wide: $type) -> $type {
                wide
            }

            #[inline(always)]
            fn combine(op: ReduceOp, left: $type, right: $type) -> $type {
                match op {
                    ReduceOp::Sum | ReduceOp::Mean => left.wrapping_add(right),
                    ReduceOp::Product => left.wrapping_mul(right),
                    ReduceOp::Min => left.min(right),
                    ReduceOp::Max => left.max(right),
                }
            }

            fn mean(sum: $type, ranks: usize) -> $type {
                (i128::from(sum) / ranks as i128) as $type
            }
        }
    )*};
}

integers!(u8 i8 u16 i16 u32 i32 u64 i64);

macro_rules! floats {
    ($($type:ty: $wide:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Number for $type {
            type Wide = $wide;

            #[inline(always)]
            fn widen(self) -> $wide {
                $widen(self)
            }

            #[inline(always)]
            fn narrow(wide: $wide) -> $type {
                $narrow(wide)
            }

            #[inline(always)]
            fn combine(op: ReduceOp, left: $wide, right: $wide) -> $wide {
                let is_less = left < right || left == right && left.is_sign_negative();
                match op {
                    ReduceOp::Sum | ReduceOp::Mean => left + right,
                    ReduceOp::Product => left * right,
                    // A sum with a NaN is NaN.
                    _ if left.is_nan() || right.is_nan() => left + right,
                    ReduceOp::Min => if is_less { left } else { right },
                    ReduceOp::Max => if is_less { right } else { left },
                }
            }

            fn mean(sum: $wide, ranks: usize) -> $wide {
                sum / ranks as $wide
            }
        }
    )*};
}

floats! {
    f16: f32, f16::to_f32, f16::from_f32;
    bf16: f32, bf16::to_f32, bf16::from_f32;
    f32: f32, std::convert::identity, std::convert::identity;
    f64: f64, std::convert::identity, std::convert::identity;
}

/// Evaluates an expression with the type that a dtype is reduced in, and the numbers of an element.
macro_rules! with_number {
    ($dtype:expr, $type:ident => $body:expr) => {{
        macro_rules! with {
            ($number:ty) => {{
                type $type = $number;
                Some($body)
            }};
        }
        match $dtype {
            DType::U8 => with!(u8),
            DType::I8 => with!(i8),
            DType::U16 => with!(u16),
            DType::I16 => with!(i16),
            DType::U32 => with!(u32),
            DType::I32 => with!(i32),
            DType::U64 => with!(u64),
            DType::I64 => with!(i64),
            DType::F16 => with!(f16),
            DType::BF16 => with!(bf16),
            DType::F32 | DType::C64 => with!(f32),
            DType::F64 | DType::C128 => with!(f64),
            _ => None,
        }
    }};
}

/// Checks that an operation of a dtype exists. Complex numbers have sums and means.
pub(super) fn check(operation: &'static str, dtype: DType, op: ReduceOp) -> Result<()> {
    let is_complex = matches!(dtype, DType::C64 | DType::C128);
    let is_reduced = with_number!(dtype, T => size_of::<T>() > 0).is_some();
    if !is_reduced || is_complex && !matches!(op, ReduceOp::Sum | ReduceOp::Mean) {
        let wanted = match is_complex {
            true => "the operation sum or mean for complex numbers",
            false => "an integer, a float of 16 bits or more, or a complex number",
        };
        let found = format!("{dtype} with the operation {}", op.name());
        return Err(Error::DTypeMismatch { operation, wanted: wanted.to_owned(), found });
    }
    Ok(())
}

/// A reduction in progress: the operands of the ranks so far.
pub(super) struct Accumulator {
    dtype: DType,
    op: ReduceOp,
    ranks: usize,
    /// The wide numbers of all elements, as words of the largest alignment.
    wide: Vec<u64>,
    is_empty: bool,
}

impl Accumulator {
    /// Starts a reduction of as many bytes of elements.
    pub(super) fn new(
        operation: &'static str,
        dtype: DType,
        op: ReduceOp,
        bytes: usize,
    ) -> Result<Accumulator> {
        let words = with_number!(dtype, T => bytes / size_of::<T>() * size_of::<<T as Number>::Wide>())
            .unwrap_or_default()
            .div_ceil(8);
        let mut wide = Vec::new();
        wide.try_reserve_exact(words).map_err(|_| Error::host_memory(words * 8, operation))?;
        wide.resize(words, 0);
        Ok(Accumulator { dtype, op, ranks: 0, wide, is_empty: true })
    }

    /// Combines the bytes of a rank's elements from the byte `start` on. All bytes of a rank come before the next rank's.
    pub(super) fn add(&mut self, start: usize, bytes: &[u8]) {
        with_number!(self.dtype, T => {
            let wide: &mut [<T as Number>::Wide] = bytemuck::cast_slice_mut(&mut self.wide);
            let wide = &mut wide[start / size_of::<T>()..];
            let numbers = bytes.chunks_exact(size_of::<T>()).map(|bytes| bytemuck::pod_read_unaligned::<T>(bytes));
            match self.is_empty {
                true => wide.iter_mut().zip(numbers).for_each(|(wide, x)| *wide = x.widen()),
                // The operation is chosen once, and each loop is one of vectors.
                false => match self.op {
                    ReduceOp::Sum | ReduceOp::Mean => combine::<T>(ReduceOp::Sum, wide, numbers),
                    ReduceOp::Product => combine::<T>(ReduceOp::Product, wide, numbers),
                    ReduceOp::Min => combine::<T>(ReduceOp::Min, wide, numbers),
                    ReduceOp::Max => combine::<T>(ReduceOp::Max, wide, numbers),
                },
            }
        });
    }

    /// Ends the operands of a rank.
    pub(super) fn end_rank(&mut self) {
        self.is_empty = false;
        self.ranks += 1;
    }

    /// Writes the results as bytes.
    pub(super) fn finish(&self, to: &mut [u8]) {
        with_number!(self.dtype, T => {
            let wide: &[<T as Number>::Wide] = bytemuck::cast_slice(&self.wide);
            for (to, &wide) in to.chunks_exact_mut(size_of::<T>()).zip(wide) {
                let value = if self.op == ReduceOp::Mean { T::mean(wide, self.ranks) } else { wide };
                to.copy_from_slice(bytemuck::bytes_of(&T::narrow(value)));
            }
        });
    }
}

#[inline(always)]
fn combine<T: Number>(op: ReduceOp, wide: &mut [T::Wide], numbers: impl Iterator<Item = T>) {
    wide.iter_mut().zip(numbers).for_each(|(wide, x)| *wide = T::combine(op, *wide, x.widen()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce<T: Element>(op: ReduceOp, ranks: &[&[T]]) -> Vec<T> {
        let bytes = size_of_val(ranks[0]);
        let mut accumulator = Accumulator::new("reduce", T::DTYPE, op, bytes).unwrap();
        for rank in ranks {
            let rank: &[u8] = bytemuck::cast_slice(rank);
            // In two calls, of which the first has one element.
            let (first, rest) = rank.split_at(size_of::<T>());
            accumulator.add(0, first);
            accumulator.add(first.len(), rest);
            accumulator.end_rank();
        }
        let mut results = ranks[0].to_vec();
        accumulator.finish(bytemuck::cast_slice_mut(&mut results));
        results
    }

    #[test]
    fn sums_of_16_bits_are_rounded_once() {
        let one = bf16::from_f32(1.0);
        let small = bf16::from_f32(1.0 / 256.0);
        // Rounded after each rank, the sum would stay 1.
        assert_eq!(reduce(ReduceOp::Sum, &[&[one; 2], &[small; 2], &[small; 2]])[0].to_f32(), 1.0078125);
    }

    #[test]
    fn sums_begin_with_rank_0() {
        let ranks = [[1e30f32, 1.0], [-1e30, 1.0], [1.0, 1.0]];
        assert_eq!(reduce(ReduceOp::Sum, &[&ranks[0], &ranks[1], &ranks[2]]), [1.0, 3.0]);
        assert_eq!(reduce(ReduceOp::Sum, &[&ranks[2], &ranks[1], &ranks[0]]), [0.0, 3.0]);
    }

    #[test]
    fn integers_wrap_and_their_means_are_rounded_towards_zero() {
        assert_eq!(reduce(ReduceOp::Sum, &[&[200u8, 1], &[100, 1]]), [44, 2]);
        assert_eq!(reduce(ReduceOp::Product, &[&[-3i32, 7], &[5, 6]]), [-15, 42]);
        assert_eq!(reduce(ReduceOp::Mean, &[&[-3i64, 3], &[0, 0]]), [-1, 1]);
        assert_eq!(reduce(ReduceOp::Mean, &[&[u64::MAX, 4], &[0, 1]]), [u64::MAX / 2, 2]);
    }

    #[test]
    fn extremes_have_the_nan_of_any_rank_and_an_order_of_zeros() {
        let ranks: [&[f64]; 2] = [&[f64::NAN, 1.0, -0.0], &[0.0, f64::NAN, 0.0]];
        for op in [ReduceOp::Min, ReduceOp::Max] {
            let results = reduce(op, &ranks);
            assert!(results[0].is_nan() && results[1].is_nan());
            assert_eq!(results[2].is_sign_negative(), op == ReduceOp::Min);
            let swapped = reduce(op, &[ranks[1], ranks[0]]);
            assert_eq!(swapped[2].is_sign_negative(), op == ReduceOp::Min);
        }
    }

    #[test]
    fn dtypes_without_an_operation_are_refused() {
        let check = |dtype, op| check("all_reduce", dtype, op).map_err(|error| error.to_string());
        assert!(check(DType::C64, ReduceOp::Mean).is_ok());
        assert!(check(DType::C64, ReduceOp::Max).unwrap_err().contains("sum or mean"));
        assert!(check(DType::Bool, ReduceOp::Sum).unwrap_err().contains("bool"));
        assert!(check(DType::F8E4M3, ReduceOp::Sum).is_err());
        for dtype in [DType::U8, DType::I16, DType::F16, DType::BF16, DType::F64] {
            ReduceOp::ALL.iter().for_each(|op| check(dtype, *op).unwrap());
        }
    }
}
