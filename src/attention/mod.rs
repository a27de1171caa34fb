//! Attention that stores no scores: softmax(scale Q Kᵀ) V and its gradients, on memory and layouts.
//!
//! The module knows dtypes, layouts and slices, not tensors. [`forward`] also writes the logarithm of each row's sum of exponentials
//! (LSE), from which [`backward`] computes the probabilities again. So memory grows with the length, not with its square.
//!
//! | engine | computes |
//! |---|---|
//! | tensor cores of compute capability 9.0: `hopper.rs`, `csrc/kernels/attention_forward.cu` and `attention_backward.cu` | f16 and bf16, head dimensions that are multiples of 8: to 256 in [`forward`], to 128 in [`backward`] |
//! | `mma.sync` from compute capability 8.0 on: `decode.rs`, `csrc/kernels/attention_decode.cu` | f16 and bf16, head dimensions that are multiples of 8 to 256, one to eight queries against a cache ([`decode`]) |
//! | the CPU: `host/`, [`forward_host`] and [`backward_host`] | f16, bf16, f32 and f64 |
//!
//! [`unsupported`] returns the reason why the first one does not compute a problem, without a device's help; the caller then uses products
//! and a softmax. [`Plan`] says which kernels would run. A launch that fails after that is an error, not a reason to compute otherwise.
//!
//! Layouts are read and written where they are: a packed tensor of queries, keys and values needs no copy, and its gradient is
//! written once.
//!
//! Positions: the last query and the last key are at the same position. A query at position i reads the keys of a [`Band`]: from
//! i - `before` to i + `after`. A causal mask is an `after` of 0.
//!
//! A length that does not fit is limited to its array, and is a device-side error of the pass.
//!
//! Invariants: results have the same bits on every run, because additions have a fixed order. Each launch of [`forward`] and [`backward`]
//! has a workspace of its own, which is freed on the launch's stream, so launches share no counter. [`decode`] takes a
//! [`DecodeWorkspace`], which is entered as written, so two streams do not use it at a time.
//!
//! Tests: in the files, `tests/nn/attention.rs` (the CPU), `tests/fake/emulated/attention.rs`, `tests/gpu/attention.rs`.

mod decode;
mod hopper;
mod host;
mod plan;
mod planned_kernel;
mod problem;
mod unsupported;

pub use decode::{DecodeOperands, DecodeWorkspace, NewPositions, RotaryAngles, decode, decode_unsupported};
pub(crate) use hopper::is_mapped;
pub use hopper::{Gradients, backward, forward};
pub use host::{HostElement, HostGradients, HostOperands, backward_host, forward_host};
pub use plan::Plan;
pub use planned_kernel::PlannedKernel;
pub(crate) use problem::Sizes;
pub use problem::{Band, Dropout, MAX_DECODE_QUERIES, Operands, Problem, Sequences};
pub use unsupported::Unsupported;

use crate::images::DeviceProperties;
use crate::types::DType;

/// The computation of a problem: its result alone, or its gradients too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// [`forward`].
    Forward,
    /// [`forward`] and [`backward`].
    Backward,
}

/// Returns the reason why the CPU does not compute a problem, and `None` if it does.
pub fn unsupported_on_host(problem: &Problem) -> Option<Unsupported> {
    match problem.dtype {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
            problem.sizes().map_err(Unsupported::Shapes).err()
        }
        dtype => Some(Unsupported::Type(dtype)),
    }
}

/// Returns the reason why no engine computes a problem on such a device, and `None` if one does.
pub fn unsupported(problem: &Problem, pass: Pass, properties: DeviceProperties) -> Option<Unsupported> {
    hopper::unsupported(problem, pass, properties)
}
