//! The distributions: an element generator of random words for each.
//!
//! Invariants: how many words an element takes follows from the distribution and the dtype alone; a draw that is
//! refused takes nothing from the stream.

use num_complex::Complex;

use super::super::device::Device;
use super::super::element_generator::ElementGenerator;
use super::super::operand::TensorOperand;
use super::super::tensor::Tensor;
use super::{Generator, refuse_draw_on_host, seed_and_offset_of_draw};
use crate::error::{Error, Result};
use crate::fuse::{Expr, Graph, HostOutput, largest, limits};
use crate::types::{DType, Layout, Shape};

/// The dtype in which a distribution over fractions is computed: its parts are f32 or f64.
///
/// # Errors
///
/// [`Error::DTypeMismatch`] for dtypes that have no fractions to compute with.
fn part_of(operation: &'static str, dtype: DType) -> Result<DType> {
    match dtype.part() {
        DType::F16 | DType::BF16 | DType::F32 => Ok(DType::F32),
        DType::F64 => Ok(DType::F64),
        _ => Err(Error::DTypeMismatch {
            operation,
            wanted: "f16, bf16, f32, f64, c64 or c128".to_owned(),
            found: format!("{dtype}, to which the numbers can be cast"),
        }),
    }
}

/// The blocks that so many elements take.
fn blocks(shape: &Shape, words: usize) -> u64 {
    ((shape.count() as u128 * words as u128).div_ceil(4)) as u64
}

/// Words of an element that takes a number of bits as wide as each part of the dtype.
fn words(dtype: DType) -> usize {
    let part = if dtype.part() == DType::F64 { 2 } else { 1 };
    if dtype.is_complex() { 2 * part } else { part }
}

/// An element of the dtype, of random bits for each of its parts, which `number` makes a number of f32 or f64.
fn of_bits<'g>(
    graph: &'g Graph,
    dtype: DType,
    [seed, offset]: [Expr<'g>; 2],
    number: impl Fn(Expr<'g>) -> Expr<'g>,
) -> Expr<'g> {
    let bits = if dtype.part() == DType::F64 { DType::U64 } else { DType::U32 };
    if !dtype.is_complex() {
        let [bits] = graph.random(bits, seed, offset);
        return number(bits);
    }
    let [real, imaginary] = graph.random(bits, seed, offset).map(|bits| number(bits).cast(dtype));
    // Exact, since the other parts are 0.
    real + imaginary * Complex::new(0.0f64, 1.0)
}

/// The number from 0 to 1 that has as many bits as a float of the dtype tells apart there.
fn unit(dtype: DType, bits: Expr<'_>) -> Expr<'_> {
    let (mantissa_bits, all, float) = match dtype {
        DType::F16 => (11, 32, DType::F32),
        DType::BF16 => (8, 32, DType::F32),
        DType::F64 => (53, 64, DType::F64),
        _ => (24, 32, DType::F32),
    };
    (bits >> (all - mantissa_bits)).cast(float) * 2f64.powi(-mantissa_bits)
}

impl Generator {
    /// Returns uniform random numbers in [0, 1): multiples of 2⁻¹¹ of f16, 2⁻⁸ of bf16, 2⁻²⁴ of f32, 2⁻⁵³ of f64, the upper
    /// bits of one word an element (two of f64). Of complex numbers, both parts.
    ///
    /// # Errors
    ///
    /// [`Error::DTypeMismatch`] for bool, integers and 8-bit floats, and as [`Tensor::zeros`].
    pub fn rand(&self, shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
        let compute = part_of("rand", dtype)?;
        let shape = Shape::new(shape)?;
        ElementGenerator { operation: "rand", dtype, compute, operands: [] }.draw(
            &shape,
            device,
            (self, blocks(&shape, words(dtype))),
            [],
            |graph, [], stream, []| of_bits(graph, dtype, stream, |bits| unit(dtype.part(), bits)),
        )
    }

    /// Returns uniform random numbers in [`low`, `high`), which are scalars or tensors that broadcast to the shape: `low` + u ·
    /// (`high` - `low`) with u of [`rand`](Self::rand) and one fma; a result that rounds up to `high` becomes `low`. If the
    /// difference overflows, half of the ends are used, and the result is doubled. Elements of tensors that are past the largest
    /// number of the dtype count as that number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where `low` is a number above `high`, or one of them is not finite or not held by the
    /// dtype; complex dtypes are
    /// refused too, otherwise as [`rand`](Self::rand); [`Error::DeviceMismatch`] for tensors elsewhere.
    pub fn uniform<'a>(
        &self,
        low: impl Into<TensorOperand<'a>>,
        high: impl Into<TensorOperand<'a>>,
        shape: &[usize],
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        const OPERATION: &str = "uniform";
        let compute = part_of(OPERATION, dtype)?;
        let operands = [low.into(), high.into()];
        real(OPERATION, dtype, &operands)?;
        if let [Some(low), Some(high)] = operands.each_ref().map(number)
            && (low > high || !(low.is_finite() && high.is_finite()))
        {
            let found = format!("numbers from {low} to {high}");
            return Err(Error::invalid(OPERATION, found, "finite ends, the lower one first"));
        }
        check_representable(OPERATION, dtype, &operands)?;
        let shape = Shape::new(shape)?;
        let most = largest(dtype);
        ElementGenerator { operation: OPERATION, dtype, compute, operands }.draw(
            &shape,
            device,
            (self, blocks(&shape, words(dtype))),
            [],
            |graph, ends, stream, []| {
                let [low, high] = ends.map(|end| end.cast(compute).clamp(-most, most));
                let unit = of_bits(graph, dtype, stream, |bits| unit(dtype, bits));
                let (width, halves) = (high - low, [low, high].map(|end| end * 0.5));
                let of_halves = unit.fma(halves[1] - halves[0], halves[0]) * 2.0;
                let value = width.is_infinite().choose(of_halves, unit.fma(width, low)).cast(dtype);
                value.lt(high.cast(dtype)).choose(value, low.cast(dtype))
            },
        )
    }

    /// Returns normally distributed random numbers of mean 0 and variance 1: the quantile at (bits + 1/2) / 2³² of one word
    /// (2⁶⁴ of two of f64), within 3 units in the last place ([`Expr::normal`]). f16 and bf16 are those of f32, rounded. Of
    /// complex numbers, both parts have variance 1/2.
    ///
    /// # Errors
    ///
    /// As [`rand`](Self::rand).
    pub fn randn(&self, shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
        let compute = part_of("randn", dtype)?;
        let shape = Shape::new(shape)?;
        ElementGenerator { operation: "randn", dtype, compute, operands: [] }.draw(
            &shape,
            device,
            (self, blocks(&shape, words(dtype))),
            [],
            |graph, [], stream, []| {
                of_bits(graph, dtype, stream, |bits| match dtype.is_complex() {
                    true => bits.normal() * std::f64::consts::FRAC_1_SQRT_2,
                    false => bits.normal(),
                })
            },
        )
    }

    /// Returns normally distributed random numbers. Mean and standard deviation are scalars or tensors that broadcast to the
    /// shape: z · `deviation` + `mean` with z of [`randn`](Self::randn) and one fma.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a negative number or NaN as deviation, and for a number that the dtype does not hold;
    /// complex dtypes are refused too, otherwise as
    /// [`rand`](Self::rand); [`Error::DeviceMismatch`] for tensors elsewhere.
    pub fn normal<'a>(
        &self,
        mean: impl Into<TensorOperand<'a>>,
        deviation: impl Into<TensorOperand<'a>>,
        shape: &[usize],
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        const OPERATION: &str = "normal";
        let compute = part_of(OPERATION, dtype)?;
        let operands = [mean.into(), deviation.into()];
        real(OPERATION, dtype, &operands)?;
        if let Some(deviation) =
            number(&operands[1]).filter(|deviation| deviation.is_nan() || *deviation < 0.0)
        {
            let found = format!("a standard deviation of {deviation}");
            return Err(Error::invalid(OPERATION, found, "one that is not negative"));
        }
        check_representable(OPERATION, dtype, &operands)?;
        let shape = Shape::new(shape)?;
        ElementGenerator { operation: OPERATION, dtype, compute, operands }.draw(
            &shape,
            device,
            (self, blocks(&shape, words(dtype))),
            [],
            |graph, operands, stream, []| {
                let [mean, deviation] = operands.map(|operand| operand.cast(compute));
                of_bits(graph, dtype, stream, Expr::normal).fma(deviation, mean)
            },
        )
    }

    /// Returns uniform random integers in [`low`, `high`): `low` + the upper half of the product of the count and 64 random
    /// bits (two words; 128 bits, four words, where there are more than 2³² integers). The likelihoods of two of them differ by
    /// less than 2⁻³² of themselves.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] where there are no such integers or the dtype does not hold them, [`Error::DTypeMismatch`]
    /// for a dtype that is none of integers, and as [`Tensor::zeros`].
    pub fn randint(
        &self,
        low: impl Into<i128>,
        high: impl Into<i128>,
        shape: &[usize],
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let (low, high) = (low.into(), high.into());
        if !dtype.is_integer() {
            return Err(Error::DTypeMismatch {
                operation: "randint",
                wanted: "a dtype of integers".to_owned(),
                found: format!("{dtype}, to which they can be cast"),
            });
        }
        let (least, most) = limits(dtype);
        if low >= high || low < least || high - 1 > most {
            let found = format!("integers from {low} to below {high} of {dtype}");
            let wanted = format!("at least one, and all from {least} to {most}");
            return Err(Error::invalid("randint", found, wanted));
        }
        let shape = Shape::new(shape)?;
        // 2^64 is 0 here.
        let count = (high - low) as u64;
        let wide = high - low > 1 << 32;
        // Each width has a generator of its own.
        let operation = if wide { "randint of more than 2^32 integers" } else { "randint" };
        ElementGenerator { operation, dtype, compute: DType::U64, operands: [] }.draw(
            &shape,
            device,
            (self, blocks(&shape, if wide { 4 } else { 2 })),
            [count, low as u64],
            |graph, [], [seed, offset], [count, low]| {
                let value = if wide {
                    let [rest, bits] = graph.random(DType::U64, seed, offset);
                    // The carry of the lower half of the bits.
                    let (sum, below) = (bits * count + rest.mul_high(count), bits * count);
                    let carry = sum.lt(below).cast(DType::U64);
                    count.eq(0).choose(bits, bits.mul_high(count) + carry)
                } else {
                    let [bits] = graph.random(DType::U64, seed, offset);
                    bits.mul_high(count)
                };
                low + value
            },
        )
    }

    /// Returns ones with a probability (a scalar or a tensor that broadcasts to the shape), and zeros otherwise: a word is
    /// below the probability times 2³², rounded up. Of a tensor's elements, what is below 0 or NaN counts as 0, what is above 1
    /// as 1.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a number that is not from 0 to 1, [`Error::DTypeMismatch`] for a tensor of another
    /// dtype than f16, bf16, f32 and f64, [`Error::DeviceMismatch`] for one elsewhere, and as [`Tensor::zeros`].
    pub fn bernoulli<'a>(
        &self,
        probability: impl Into<TensorOperand<'a>>,
        shape: &[usize],
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        const OPERATION: &str = "bernoulli";
        let probability = probability.into();
        real(OPERATION, DType::F64, &[probability])?;
        if let Some(number) = number(&probability).filter(|number| !(0.0..=1.0).contains(number)) {
            return Err(Error::invalid(OPERATION, format!("a probability of {number}"), "one from 0 to 1"));
        }
        let of = match probability.tensor() {
            Some(tensor) => part_of("bernoulli's probabilities", tensor.dtype())?,
            None => DType::F64,
        };
        let shape = Shape::new(shape)?;
        ElementGenerator { operation: OPERATION, dtype, compute: DType::F64, operands: [probability] }.draw(
            &shape,
            device,
            (self, blocks(&shape, 1)),
            [],
            |graph, [probability], [seed, offset], []| {
                let [word] = graph.random(DType::U32, seed, offset);
                // Exact: a power of 2 only moves the exponent. Past the range of u64 it saturates.
                let limit = (probability.cast(of) * 2f64.powi(32)).ceil().cast(DType::U64);
                word.cast(DType::U64).lt(limit)
            },
        )
    }

    /// A random permutation of the integers in [0, `count`), as i64.
    ///
    /// No memory is shuffled: where each goes is computed, by a keyed bijection ([`Expr::permuted`]) of 64 random bits (one
    /// block of the stream). So at most 2⁶⁴ of the orders appear, which for 21 integers and more are not all.
    ///
    /// # Errors
    ///
    /// As [`Tensor::zeros`].
    pub fn permutation(&self, count: usize, device: &Device) -> Result<Tensor> {
        let shape = Shape::new(&[count])?;
        let generator = ElementGenerator {
            operation: "permutation",
            dtype: DType::I64,
            compute: DType::U64,
            operands: [],
        };
        refuse_draw_on_host("permutation", device)?;
        let key = || {
            let [seed, offset] = seed_and_offset_of_draw("permutation", self, 1)?;
            Ok([count as u64, first_word(seed, offset)?])
        };
        generator.make(&shape, device, key, |graph, [], [count, key]| graph.position().permuted(count, key))
    }
}

/// The first 64 bits of a block.
fn first_word(seed: u64, offset: u64) -> Result<u64> {
    let graph = Graph::new();
    let [seed, offset] = [seed, offset].map(|word| graph.number(word, DType::U64));
    let [word] = graph.random(DType::U64, seed, offset);
    let mut found = [0u64];
    let output = HostOutput::new(&mut found, Layout::from_shape(Shape::SCALAR))?;
    graph.expression(&[word])?.run_host(&[], &[], &mut [output])?;
    Ok(found[0])
}

/// # Errors
///
/// [`Error::DTypeMismatch`] where the result or an operand is complex.
fn real(operation: &'static str, dtype: DType, operands: &[TensorOperand<'_>]) -> Result<()> {
    let complex = |operand: &TensorOperand<'_>| match operand {
        TensorOperand::Tensor(tensor) => tensor.dtype().is_complex(),
        TensorOperand::Number(number) => matches!(number, crate::fuse::Number::Complex(_)),
    };
    if dtype.is_complex() || operands.iter().any(complex) {
        let (wanted, found) = ("real numbers".to_owned(), "complex ones".to_owned());
        return Err(Error::DTypeMismatch { operation, wanted, found });
    }
    Ok(())
}

/// # Errors
///
/// [`Error::InvalidArgument`] for a number among operands that the dtype does not hold.
fn check_representable(operation: &'static str, dtype: DType, operands: &[TensorOperand<'_>]) -> Result<()> {
    let numbers = operands.iter().filter_map(|operand| match operand {
        TensorOperand::Number(number) => Some(*number),
        TensorOperand::Tensor(_) => None,
    });
    numbers.into_iter().try_for_each(|number| number.check(operation, dtype))
}

/// A number among operands.
fn number(operand: &TensorOperand<'_>) -> Option<f64> {
    match operand {
        TensorOperand::Number(number) => Some(number.real()),
        TensorOperand::Tensor(_) => None,
    }
}

macro_rules! of_the_device {
    ($($doc:literal $name:ident[$($lifetime:lifetime)?]($($argument:ident: $type:ty),*);)*) => {
        /// Draws from the device's own generator ([`Device::generator`]).
        impl Tensor {$(
            #[doc = $doc]
            #[doc = concat!("See [`Generator::", stringify!($name), "`].")]
            ///
            /// # Errors
            ///
            #[doc = concat!("As [`Generator::", stringify!($name), "`].")]
            pub fn $name$(<$lifetime>)?($($argument: $type,)* device: &Device) -> Result<Tensor> {
                device.generator().$name($($argument,)* device)
            }
        )*}
    };
}

of_the_device! {
    "Numbers evenly from 0 to below 1." rand[](shape: &[usize], dtype: DType);
    "Numbers evenly from `low` to below `high`."
    uniform['a](low: impl Into<TensorOperand<'a>>, high: impl Into<TensorOperand<'a>>, shape: &[usize], dtype: DType);
    "Normally distributed numbers of mean 0 and variance 1." randn[](shape: &[usize], dtype: DType);
    "Normally distributed numbers with a mean and a standard deviation."
    normal['a](mean: impl Into<TensorOperand<'a>>, deviation: impl Into<TensorOperand<'a>>, shape: &[usize], dtype: DType);
    "Integers evenly from `low` to below `high`."
    randint[](low: impl Into<i128>, high: impl Into<i128>, shape: &[usize], dtype: DType);
    "Ones with a probability, and zeros." bernoulli['a](probability: impl Into<TensorOperand<'a>>, shape: &[usize], dtype: DType);
    "The integers from 0 to below `count` in a random order." permutation[](count: usize);
}
