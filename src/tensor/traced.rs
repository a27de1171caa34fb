//! Operations of tensors in a trace: a range with the name, the operands' shapes and dtypes, and the device.
//!
//! The hooks are where operations come together: elementwise runs, runs of kernels, products, attention and indexing. An
//! operation that is made of others encloses their ranges. Runs move each element once, so theirs have the number of bytes.

use super::tensor::Tensor;
use crate::trace::{self, Arguments, Range};
use crate::types::{DType, Layout};

/// The range of an operation on these tensors, with the result's elements if they are known.
#[inline(always)]
pub(super) fn operation<'a>(
    name: &'static str,
    inputs: impl Iterator<Item = &'a Tensor>,
    result: Option<(DType, &Layout)>,
) -> Range {
    trace::span("operation", || (name.into(), describe(inputs, result)))
}

/// As [`operation`], of a run that moves these elements once each: those that it reads and those that it writes.
#[inline(always)]
pub(super) fn run<'a, 'b>(
    name: &'static str,
    inputs: impl Iterator<Item = &'a Tensor>,
    result: Option<(DType, &Layout)>,
    moved: impl Iterator<Item = (DType, &'b Layout)>,
) -> Range {
    trace::span("operation", || {
        let mut arguments = describe(inputs, result);
        let moved: f64 = moved.map(|(dtype, layout)| bytes(dtype, layout)).sum();
        arguments.push(("bytes", moved.into()));
        (name.into(), arguments)
    })
}

/// Records that no engine computes an operation in one kernel, and why.
#[inline(always)]
pub(super) fn unplanned(name: &'static str, reason: &dyn std::fmt::Display) {
    trace::instant("engine", || (name.into(), vec![("reasons", reason.to_string().into())]));
}

/// The result, and shapes, dtypes and the device of operands.
#[cold]
fn describe<'a>(inputs: impl Iterator<Item = &'a Tensor>, result: Option<(DType, &Layout)>) -> Arguments {
    let mut arguments = Arguments::with_capacity(5);
    if let Some((dtype, layout)) = result {
        arguments.push(("result", format!("{dtype} {}", layout.shape()).into()));
    }
    let (mut shapes, mut dtypes, mut device) = (String::new(), String::new(), None);
    let mut add = |shape: String, dtype: String| {
        for (list, next) in [(&mut shapes, shape), (&mut dtypes, dtype)] {
            if !list.is_empty() {
                list.push_str(", ");
            }
            list.push_str(&next);
        }
    };
    for tensor in inputs {
        device.get_or_insert_with(|| tensor.device());
        add(tensor.shape().to_string(), tensor.dtype().to_string());
    }
    arguments.extend([("shapes", shapes.into()), ("dtypes", dtypes.into())]);
    if let Some(device) = device {
        arguments.push(("on", device.to_string().into()));
    }
    arguments
}

/// The bytes of a layout's elements, of which a broadcast dimension has one.
fn bytes(dtype: DType, layout: &Layout) -> f64 {
    let sizes = layout.dimensions().map(|(size, stride)| if stride == 0 { size.min(1) } else { size });
    sizes.map(|size| size as f64).product::<f64>() * dtype.size() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcast_dimensions_are_read_once() {
        let rows = Layout::contiguous(&[1, 5]).unwrap();
        let shape = crate::types::Shape::new(&[3, 5]).unwrap();
        for (layout, wanted) in [
            (Layout::contiguous(&[3, 5]).unwrap(), 60.0),
            (rows.expand(&shape).unwrap(), 20.0),
            (Layout::contiguous(&[0, 5]).unwrap(), 0.0),
            (Layout::contiguous(&[]).unwrap(), 4.0),
        ] {
            assert_eq!(bytes(DType::F32, &layout), wanted, "{layout:?}");
        }
    }
}
