//! Runs one product of the shared table by an engine, and compares it with the definition.

use num_complex::Complex;
use selvedge::driver::Stream;
use selvedge::gemm::{Choice, DeviceProperties, GemmAlgorithm, Operation, Plan, Product, gemm, gemm_host};
use selvedge::types::DType;

use super::cases::Case;
use super::definition::Wholes;
use super::numbers::{Number, ResultOf, Whole, same};
use crate::support::{Numbers, Outcome};

/// A matrix as it is stored, on the host.
struct Matrix {
    rows: usize,
    columns: usize,
    leading: usize,
    stride: usize,
    start: usize,
    operation: Operation,
    values: Vec<Whole>,
}

impl Matrix {
    fn place(&self, matrix: usize, row: usize, column: usize) -> usize {
        self.start + matrix * self.stride + row * self.leading + column
    }

    /// Returns the element that the product reads at a row and column.
    fn at(&self, matrix: usize, row: usize, column: usize) -> Whole {
        let (row, column) = if self.operation.transposes() { (column, row) } else { (row, column) };
        let value = self.values[self.place(matrix, row, column)];
        if self.operation.conjugates() { value.conj() } else { value }
    }

    fn length(&self, batch: usize) -> usize {
        if self.rows * self.columns * batch == 0 {
            self.start
        } else {
            self.place(batch - 1, self.rows - 1, self.columns - 1) + 1
        }
    }

    fn places(&self, batch: usize) -> Vec<usize> {
        let mut places = Vec::new();
        for matrix in 0..batch {
            for row in 0..self.rows {
                for column in 0..self.columns {
                    places.push(self.place(matrix, row, column));
                }
            }
        }
        places
    }

    /// The elements on the device: poison, but for those of the matrices.
    fn elements<T: Number>(&self, batch: usize) -> Vec<T> {
        let mut elements = vec![T::poison(); self.length(batch) + 3];
        for place in self.places(batch) {
            elements[place] = T::of(self.values[place]);
        }
        elements
    }
}

/// Returns whether the product has the kernel configuration that it asks for on the stream's device.
#[allow(dead_code, reason = "not every suite forces one")]
pub fn has_algorithm(
    stream: &Stream,
    product: &Product,
    (operand, result): (DType, DType),
) -> selvedge::Result<bool> {
    let plan = Plan::explain(product, operand, result, DeviceProperties::from_device(&stream.device())?);
    Ok(plan.err().is_none_or(|error| !error.to_string().contains("it does not have '")))
}

impl Case {
    fn matrix(
        &self,
        numbers: &mut Numbers,
        seen: fn(Whole) -> Whole,
        (rows, columns): (usize, usize),
        operation: Operation,
        (gap, start, shared): (usize, usize, bool),
    ) -> Matrix {
        let (rows, columns) = if operation.transposes() { (columns, rows) } else { (rows, columns) };
        let leading = columns.next_multiple_of(self.multiple) + gap;
        let stride = if shared { 0 } else { rows * leading + self.multiple };
        let mut matrix = Matrix { rows, columns, leading, stride, start, operation, values: Vec::new() };
        matrix.values = (0..matrix.length(self.batch) + 3)
            .map(|_| {
                let mut part = || numbers.below(5) as i64 - 2;
                seen(Complex::new(part(), part()))
            })
            .collect();
        matrix
    }

    fn matrices<T: Number>(&self) -> [Matrix; 3] {
        let ((m, n, k), (of_a, of_b)) = (self.size, self.operations);
        let mut numbers = Numbers((m * 1009 + n * 31 + k) as u64);
        let a = self.matrix(&mut numbers, T::seen, (m, k), of_a, (self.gaps.0, self.starts.0, self.shared.0));
        let b = self.matrix(&mut numbers, T::seen, (k, n), of_b, (self.gaps.1, self.starts.1, self.shared.1));
        let (gap, start) = (self.gaps.2, self.starts.2);
        let mut c = self.matrix(&mut numbers, T::seen, (m, n), Operation::None, (gap, start, false));
        if self.interleaved {
            let width = n.next_multiple_of(self.multiple);
            c = Matrix { stride: width, leading: width * self.batch + gap, ..c };
            c.values = vec![Complex::new(1, 0); c.length(self.batch) + 3];
        }
        [a, b, c]
    }

    fn described(&self, a: &Matrix, b: &Matrix, c: &Matrix) -> Product {
        let (m, n, k) = self.size;
        Product::new(m, n, k)
            .a(self.operations.0)
            .b(self.operations.1)
            .leading(a.leading, b.leading, c.leading)
            .batch(self.batch, a.stride, b.stride, c.stride)
    }

    /// Runs it on the device by the engine, and holds every element of C's buffer against the definition.
    pub fn check<T: Number, C: ResultOf<T>>(&self, stream: &Stream, choice: Choice) -> Outcome {
        self.check_as::<T, C>(stream, &choice.to_string(), |product| product.by(choice))
    }

    /// As `check`, with this kernel configuration. A product without it (too few steps of k to divide) is skipped.
    #[allow(dead_code, reason = "not every suite does")]
    pub fn check_in<T: Number, C: ResultOf<T>>(&self, stream: &Stream, algorithm: GemmAlgorithm) -> Outcome {
        let [a, b, c] = self.matrices::<T>();
        let product = self.described(&a, &b, &c).with_algorithm(algorithm);
        if !has_algorithm(stream, &product, (T::DTYPE, C::DTYPE))? {
            return Ok(());
        }
        self.check_as::<T, C>(stream, &algorithm.to_string(), |product| product.with_algorithm(algorithm))
    }

    fn check_as<T: Number, C: ResultOf<T>>(
        &self,
        stream: &Stream,
        name: &str,
        asked: impl FnOnce(Product) -> Product,
    ) -> Outcome {
        self.check_by::<T, C>(name, |product, alpha, a, b, beta, c| {
            let (device_a, device_b) = (stream.upload(a)?, stream.upload(b)?);
            // All of C's buffer, its start too, which the product must leave alone.
            let mut device_c = stream.upload(c)?;
            gemm::<T, C>(
                stream,
                &asked(*product),
                alpha,
                &device_a.slice(self.starts.0..)?,
                &device_b.slice(self.starts.1..)?,
                beta,
                &mut device_c.slice_mut(self.starts.2..)?,
            )?;
            c.copy_from_slice(&stream.download(&device_c)?);
            Ok(())
        })
    }

    /// Runs it on the CPU, and holds every element of C's slice against the definition.
    #[allow(dead_code, reason = "the suite of the device does not")]
    pub fn check_host<T: Number, C: ResultOf<T>>(&self) -> Outcome {
        let (of_a, of_b, of_c) = self.starts;
        self.check_by::<T, C>("the CPU", |product, alpha, a, b, beta, c| {
            gemm_host::<T, C>(product, alpha, &a[of_a..], &b[of_b..], beta, &mut c[of_c..])
        })
    }

    /// Runs it by a function of the product, the factors and the buffers, which begin at their start; and holds every
    /// element of C's buffer against the definition: those of the matrices exactly, the others as they were.
    fn check_by<T: Number, C: ResultOf<T>>(
        &self,
        name: &str,
        multiply: impl FnOnce(&Product, T::Scalar, &[T], &[T], T::Scalar, &mut [C]) -> selvedge::Result<()>,
    ) -> Outcome {
        let [a, b, c] = self.matrices::<T>();
        let (alpha, beta) = (
            T::seen(Complex::new(self.alpha.0, self.alpha.1)),
            T::seen(Complex::new(self.beta.0, self.beta.1)),
        );
        let zero = Complex::new(0, 0);
        let [on_a, on_b] = [&a, &b].map(|matrix| {
            // With an alpha of 0 the operands are not read.
            let elements = matrix.elements::<T>(self.batch);
            if alpha == zero { vec![T::poison(); elements.len()] } else { elements }
        });
        let before: Vec<C> =
            if beta == zero { vec![C::poison(); c.length(self.batch) + 3] } else { c.elements(self.batch) };
        let mut wanted = before.clone();
        let ((m, n, k), mut places) = (self.size, c.places(self.batch).into_iter());
        for matrix in 0..self.batch {
            let left = Wholes::new((m, k), |row, depth| a.at(matrix, row, depth));
            let right = Wholes::new((k, n), |depth, column| b.at(matrix, depth, column));
            for sum in left.times(&right) {
                let place = places.next().ok_or("as many places as elements")?;
                wanted[place] = C::of(alpha * sum + beta * c.values[place]);
            }
        }

        let mut found = before;
        multiply(&self.described(&a, &b, &c), T::scalar(alpha), &on_a, &on_b, T::scalar(beta), &mut found)
            .map_err(|error| format!("{self:?} of {}: {error}", T::DTYPE))?;
        for (place, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            if !same(*found, *wanted) {
                let what = format!("{} into {} by {name}: {self:?}", T::DTYPE, C::DTYPE);
                return Err(format!("{what}: element {place} is {found:?}, wanted {wanted:?}").into());
            }
        }
        Ok(())
    }
}
