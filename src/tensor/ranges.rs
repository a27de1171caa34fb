//! Tensors of evenly spaced numbers, and the identity matrix.
//!
//! Each element follows from its index alone, so no error adds up. Elements of floats and complex numbers are computed in f64 and
//! rounded to the dtype once more.

use super::device::Device;
use super::element_generator::ElementGenerator;
use super::tensor::Tensor;
use crate::error::{Error, Result};
use crate::fuse::{Number, limits};
use crate::types::{DType, Shape};

impl Tensor {
    /// Returns the numbers `start`, `start` + `step` and so on, as long as they are before `end`; none if `step` leads away from
    /// `end`.
    ///
    /// Integers are exact. For floats, element i is `start` + i · `step`, rounded once to f64 (fma) and then to the dtype. The
    /// count is (`end` - `start`) / `step`, rounded up. It can be one more than expected for a step that f64 does not hold, such
    /// as 0.1; [`linspace`](Self::linspace) takes the count instead. Elements of complex dtypes have an imaginary part of 0.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let cpu = Device::cpu();
    /// assert_eq!(Tensor::arange(0, 5, 1, DType::I64, &cpu)?.to_vec::<i64>()?, [0, 1, 2, 3, 4]);
    /// assert_eq!(Tensor::arange(1.0, 0.0, -0.25, DType::F32, &cpu)?.to_vec::<f32>()?, [1.0, 0.75, 0.5, 0.25]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a step of 0, numbers that are not finite or complex, an integer dtype with numbers
    /// that are none or elements that it does not hold, bool, or more elements than there can be; and as
    /// [`zeros`](Self::zeros).
    pub fn arange(
        start: impl Into<Number>,
        end: impl Into<Number>,
        step: impl Into<Number>,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        const OPERATION: &str = "arange";
        let numbers = [start.into(), end.into(), step.into()];
        let [start, end, step] = numbers;
        let found = || format!("{start} to {end} by {step} of {dtype}");
        let refuse = |wanted: &str| Error::invalid(OPERATION, found(), wanted);
        let whole = numbers.map(|number| match number {
            // Of 64 bits, as numbers are made of them: nothing below is past 128.
            Number::Integer(number) if number.unsigned_abs() < 1 << 64 => Some(number),
            _ => None,
        });
        if dtype == DType::Bool {
            return Err(refuse("a dtype of numbers"));
        }
        let too_many = || refuse(&format!("at most {} elements", isize::MAX));
        let count = if let [Some(start), Some(end), Some(step)] = whole {
            if step == 0 {
                return Err(refuse("a step that is not 0"));
            }
            let count = (end - start + step - step.signum()) / step;
            let count = usize::try_from(count.max(0)).map_err(|_| too_many())?;
            if let (true, Some(last)) = (dtype.is_integer(), count.checked_sub(1)) {
                let (low, high) = limits(dtype);
                if [start, start.saturating_add((last as i128).saturating_mul(step))]
                    .iter()
                    .any(|end| !(low..=high).contains(end))
                {
                    return Err(refuse(&format!("elements from {low} to {high}")));
                }
            }
            count
        } else {
            if dtype.is_integer() {
                return Err(refuse("integers, or a dtype of fractions"));
            }
            let [start, end, step] = real(numbers).ok_or_else(|| refuse("real numbers"))?;
            if step == 0.0 || ![start, end, step].iter().all(|number| number.is_finite()) {
                return Err(refuse("finite numbers and a step that is not 0"));
            }
            let count = match end - start {
                distance if distance.is_finite() => distance / step,
                _ => (end / 2.0 - start / 2.0) / step * 2.0,
            }
            .ceil();
            if count >= isize::MAX as f64 || count.is_nan() {
                return Err(too_many());
            }
            count.max(0.0) as usize
        };
        let shape = Shape::new(&[count])?;
        let compute = if dtype.is_integer() { DType::I64 } else { DType::F64 };
        let operands = match whole {
            // Modulo 2^64, in which the elements are computed.
            [Some(start), _, Some(step)] if dtype.is_integer() => {
                [start, step].map(|number| Number::Integer((number as i64).into()).into())
            }
            _ => [start, step].map(Into::into),
        };
        ElementGenerator { operation: OPERATION, dtype, compute, operands }.make(
            &shape,
            device,
            || Ok([]),
            |graph, [start, step], []| graph.position().cast(compute).fma(step, start),
        )
    }

    /// Returns `count` evenly spaced numbers from `start` to `end`, including both.
    ///
    /// With s = (`end` - `start`) / (`count` - 1), the first half is `start` + i · s and the second half `end` - i · s, counted
    /// from the other end: one fma each in f64, then rounded to the dtype. An element in the middle is halfway. So both ends
    /// are exact, and the numbers from `end` to `start` are the same in reverse. A single number is `start`.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let x = Tensor::linspace(-1.0, 1.0, 5, DType::F64, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<f64>()?, [-1.0, -0.5, 0.0, 0.5, 1.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a dtype of integers or bool, or ends that are not finite; and as
    /// [`zeros`](Self::zeros).
    pub fn linspace(start: f64, end: f64, count: usize, dtype: DType, device: &Device) -> Result<Tensor> {
        const OPERATION: &str = "linspace";
        let refuse = |wanted: &str| {
            let found = format!("{count} numbers from {start} to {end} of {dtype}");
            Error::invalid(OPERATION, found, wanted)
        };
        if dtype == DType::Bool || dtype.is_integer() {
            return Err(refuse("a dtype of fractions; arange makes integers"));
        }
        if !(start.is_finite() && end.is_finite()) {
            return Err(refuse("finite numbers"));
        }
        let shape = Shape::new(&[count])?;
        let steps = count.saturating_sub(1);
        let divisor = steps.max(1) as f64;
        // In half steps where a step, or all of them, is past the largest number.
        let (step, parts) = match end - start {
            distance if distance.is_finite() => (distance / divisor, 1),
            _ => ((end / 2.0 - start / 2.0) / divisor, 2),
        };
        let operands = [start, end, step].map(Into::into);
        ElementGenerator { operation: OPERATION, dtype, compute: DType::F64, operands }.make(
            &shape,
            device,
            || Ok([steps as u64, parts]),
            |graph, [start, end, step], [steps, parts]| {
                let index = graph.position();
                let rest = steps.cast(DType::I64) - index;
                let parts = parts.cast(DType::I64);
                let [from_start, from_end] = [index, rest].map(|index| (index * parts).cast(DType::F64));
                let first = from_start.fma(step, start);
                let second = (-from_end).fma(step, end);
                let near = index.lt(rest).choose(first, second);
                // The single number of a single one is in the middle too.
                let halfway = index.eq(0).choose(start, start * 0.5 + end * 0.5);
                index.eq(rest).choose(halfway, near)
            },
        )
    }

    /// Returns `count` powers of `base`, whose exponents are evenly spaced from `start` to `end` as in [`linspace`](Self::linspace).
    /// They are computed in f64.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let x = Tensor::logspace(0.0, 3.0, 4, 2.0, DType::F32, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 4.0, 8.0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`linspace`](Self::linspace).
    pub fn logspace(
        start: f64,
        end: f64,
        count: usize,
        base: f64,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        if dtype == DType::Bool || dtype.is_integer() {
            let found = format!("powers of {base} of {dtype}");
            return Err(Error::invalid("logspace", found, "a dtype of fractions"));
        }
        let exponents = Tensor::linspace(start, end, count, DType::F64, device)?;
        crate::tensor::fuse((base, &exponents), |[base, exponent]| base.pow(exponent))?.cast(dtype)
    }

    /// Returns a matrix with ones on the main diagonal and zeros elsewhere.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// use selvedge::types::DType;
    /// let x = Tensor::eye(2, 3, DType::I32, &Device::cpu())?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 0, 0, 0, 1, 0]);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    pub fn eye(rows: usize, columns: usize, dtype: DType, device: &Device) -> Result<Tensor> {
        let generator = ElementGenerator { operation: "eye", dtype, compute: dtype, operands: [] };
        let shape = Shape::new(&[rows, columns])?;
        generator.make(&shape, device, || Ok([]), |graph, [], []| graph.index(0).eq(graph.index(1)))
    }
}

fn real(numbers: [Number; 3]) -> Option<[f64; 3]> {
    let mut found = [0.0; 3];
    for (found, number) in found.iter_mut().zip(numbers) {
        *found = match number {
            Number::Integer(number) => number as f64,
            Number::Real(number) => number,
            Number::Bool(_) | Number::Complex(_) => return None,
        };
    }
    Some(found)
}
