//! Operations of tensors in a trace: a range with the name, the operands' shapes and dtypes, and the device.
//!
//! The hooks are where operations come together: elementwise runs, runs of kernels, products, attention and indexing. An
//! operation that is made of others encloses their ranges.

use super::kernel::OutputTarget;
use super::tensor::Tensor;
use crate::trace::{self, Range};

/// The range of an operation on these tensors, into these targets if they exist already.
#[inline(always)]
pub(super) fn operation<'a>(
    name: &'static str,
    inputs: impl Iterator<Item = &'a Tensor>,
    targets: &[OutputTarget<'_>],
) -> Range {
    trace::span("operation", || {
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
        let mut arguments = Vec::with_capacity(4);
        if let Some(target) = targets.first() {
            device.get_or_insert_with(|| target.memory.device());
            arguments.push(("result", format!("{} {}", target.dtype, target.layout().shape()).into()));
        }
        arguments.extend([("shapes", shapes.into()), ("dtypes", dtypes.into())]);
        if let Some(device) = device {
            arguments.push(("on", device.to_string().into()));
        }
        (name.into(), arguments)
    })
}
