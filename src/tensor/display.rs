//! Tensors as text, as NumPy writes arrays: aligned columns, the fewest digits that tell numbers apart, and of a large
//! tensor only its edges, which alone are read from the device.
//!
//! Invariants: a formatter returns no error and does not panic. The text of a tensor that cannot be read is the error.

use std::fmt;

use num_complex::Complex;

use super::evaluate::{OperandSource, evaluate_into};
use super::format::{ColumnFormat, plain};
use super::kernel::{Output, OutputTarget};
use super::tensor::Tensor;
use crate::error::Result;
use crate::fuse::Graph;
use crate::types::{Bool, DType, Element, Layout, Shape};

/// More elements than this are shortened.
const MAX_ELEMENTS: usize = 1000;
/// Elements that a shortened dimension shows of each end.
const EDGE: usize = 3;
/// Columns of a line.
const WIDTH: usize = 75;

impl Tensor {
    /// The elements that are shown, and for each dimension whether some are left out in its middle.
    fn edges(&self) -> Result<(Tensor, Vec<bool>)> {
        let mut shown = self.clone();
        let mut cut = vec![false; self.rank()];
        if self.count() <= MAX_ELEMENTS {
            return Ok((shown, cut));
        }
        // The longest first, so that little is copied.
        let mut axes: Vec<usize> = (0..self.rank()).filter(|&axis| self.shape()[axis] > 2 * EDGE).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(self.shape()[axis]));
        for axis in axes {
            let mut sizes = shown.shape().to_vec();
            sizes[axis] = 2 * EDGE;
            let shape = Shape::new(&sizes)?;
            let mut fresh = Output::of_shape(&self.device(), self.dtype(), &shape)?;
            let graph = Graph::new();
            let copy = graph.expression(&[graph.input(self.dtype())])?;
            let size = shown.shape()[axis];
            for (from, to) in [(0, 0), (size - EDGE, EDGE)] {
                let part = shown.narrow(axis as isize, from, EDGE)?;
                let layout = Layout::from_shape(shape).narrow(axis as isize, to, EDGE)?;
                evaluate_into(
                    &copy,
                    &[OperandSource::Tensor(&part)],
                    &[],
                    &mut [OutputTarget::part(&mut fresh, &layout)],
                )?;
            }
            shown = fresh.into_tensor();
            cut[axis] = true;
        }
        Ok((shown, cut))
    }

    /// The elements' texts, all of one width.
    fn words(&self, precision: Option<usize>) -> Result<Vec<String>> {
        fn each<T: Element>(tensor: &Tensor, text: impl Fn(T) -> String) -> Result<Vec<String>> {
            Ok(tensor.to_vec::<T>()?.into_iter().map(text).collect())
        }
        let single = self.rank() == 0;
        let real = |values: Vec<f64>, dtype: DType| -> Vec<String> {
            if single {
                return values.into_iter().map(|value| plain(value, dtype, precision)).collect();
            }
            let columns = ColumnFormat::of(values.iter().copied(), dtype, precision);
            values.into_iter().map(|value| columns.text(value, false)).collect()
        };
        let complex = |values: Vec<Complex<f64>>, part: DType| -> Vec<String> {
            let columns = ColumnFormat::of(values.iter().map(|value| value.re), part, precision);
            let imaginary = ColumnFormat::of(values.iter().map(|value| value.im), part, precision);
            let text = |value: Complex<f64>| {
                let (re, im) = (columns.text(value.re, false), imaginary.text(value.im, true));
                // The unit stands behind the number, before what aligns it.
                let digits = im.trim_end();
                format!("{re}{digits}j{}", " ".repeat(im.len() - digits.len()))
            };
            values.into_iter().map(text).collect()
        };
        let words = match self.dtype() {
            DType::Bool => each::<Bool>(self, |value| value.get().to_string())?,
            DType::U8 => each::<u8>(self, |value| value.to_string())?,
            DType::I8 => each::<i8>(self, |value| value.to_string())?,
            DType::U16 => each::<u16>(self, |value| value.to_string())?,
            DType::I16 => each::<i16>(self, |value| value.to_string())?,
            DType::U32 => each::<u32>(self, |value| value.to_string())?,
            DType::I32 => each::<i32>(self, |value| value.to_string())?,
            DType::U64 => each::<u64>(self, |value| value.to_string())?,
            DType::I64 => each::<i64>(self, |value| value.to_string())?,
            DType::F64 => real(self.to_vec::<f64>()?, DType::F64),
            // Every one of the narrower floats is one of f64.
            DType::F16 | DType::BF16 | DType::F32 => real(self.cast(DType::F64)?.to_vec()?, self.dtype()),
            DType::F8E4M3 | DType::F8E5M2 => real(self.cast(DType::F64)?.to_vec()?, DType::F32),
            DType::C64 => complex(self.cast(DType::C128)?.to_vec()?, DType::F32),
            DType::C128 => complex(self.to_vec()?, DType::F64),
        };
        let width = words.iter().map(String::len).max().unwrap_or(0);
        Ok(words.into_iter().map(|word| format!("{word:>width$}")).collect())
    }

    fn text(
        &self,
        separator: &'static str,
        prefix: usize,
        width: usize,
        precision: Option<usize>,
    ) -> Result<String> {
        let (shown, cut) = self.edges()?;
        let words = shown.words(precision)?;
        if self.count() == 0 {
            return Ok("[]".to_owned());
        }
        let page = Page { words, sizes: *shown.shape(), cut, separator };
        Ok(page.text(0, 0, &" ".repeat(prefix + 1), width))
    }
}

/// Words to be laid out.
struct Page {
    words: Vec<String>,
    sizes: Shape,
    cut: Vec<bool>,
    separator: &'static str,
}

impl Page {
    /// The part whose first `axis` positions lead to word `first`; further lines begin with `indent`.
    fn text(&self, axis: usize, first: usize, indent: &str, width: usize) -> String {
        let Some((&size, inner)) = self.sizes.get(axis..).and_then(<[usize]>::split_first) else {
            return self.words.get(first).cloned().unwrap_or_default();
        };
        let step: usize = inner.iter().product();
        let cut = self.cut.get(axis).copied().unwrap_or(false);
        let mut items: Vec<String> = Vec::with_capacity(size + 1);
        let deeper = format!("{indent} ");
        for index in 0..size {
            if cut && index == EDGE {
                items.push("...".to_owned());
            }
            items.push(self.text(axis + 1, first + index * step, &deeper, width.saturating_sub(1)));
        }
        let mut text = String::from("[");
        if inner.is_empty() {
            let mut column = indent.len();
            for (index, item) in items.iter().enumerate() {
                // Room for a bracket, and for the separator's sign.
                if column > indent.len() && column + item.len() > width.saturating_sub(1) {
                    text.truncate(text.trim_end().len());
                    text.push('\n');
                    text.push_str(indent);
                    column = indent.len();
                }
                text.push_str(item);
                column += item.len();
                if index + 1 < items.len() {
                    text.push_str(self.separator);
                    column += self.separator.len();
                }
            }
        } else {
            let lines = "\n".repeat(inner.len());
            let between = format!("{}{lines}{indent}", self.separator.trim_end());
            text.push_str(&items.join(&between));
        }
        text.push(']');
        text
    }
}

impl fmt::Display for Tensor {
    /// Writes the elements as NumPy's `str` does. A precision, as in `{:.2}`, is the number of digits after the point of
    /// floats and complex numbers.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text(" ", 0, WIDTH, formatter.precision()) {
            Ok(text) => formatter.write_str(&text),
            Err(error) => write!(formatter, "<a tensor that cannot be read: {error}>"),
        }
    }
}

impl fmt::Debug for Tensor {
    /// Writes the elements as NumPy's `repr` does, with the device.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PREFIX: &str = "Tensor(";
        let text = match self.text(", ", PREFIX.len(), WIDTH - 1, formatter.precision()) {
            Ok(text) => text,
            Err(error) => format!("<cannot be read: {error}>"),
        };
        write!(formatter, "{PREFIX}{text}, ")?;
        if self.count() == 0 || self.count() > MAX_ELEMENTS {
            write!(formatter, "shape={}, ", self.shape())?;
        }
        write!(formatter, "dtype={}, device={})", self.dtype(), self.device())
    }
}
