//! Handles: 64-bit numbers that stand for objects, with a reference count.
//!
//! A handle is the kind of its object (8 bits), a generation (24 bits) and a slot (32 bits). Each kind has a `Table` of
//! slots, which grows and never moves. A release that drops the last reference empties the slot and advances its
//! generation, so a handle kept too long is refused and never reaches the object that took its slot. A slot whose generations
//! are used up is not used again. 0 is no handle.

mod slot;
mod table;
mod types;

pub(super) use table::{Spares, Table};
pub use types::*;

use std::thread::LocalKey;

use super::error::Failure;
use super::status;

/// A handle of no object. `sv_operand_of(NULL)` has it, because an operand whose `tensor` is 0 is a number; every function refuses it
/// with `SV_ERROR_INVALID_HANDLE`.
pub const SV_NO_TENSOR: sv_tensor = u64::MAX;
/// A handle of no object. `sv_variable_operand_of(NULL)` has it, as `sv_operand_of(NULL)` has `SV_NO_TENSOR`.
pub const SV_NO_VARIABLE: sv_variable = u64::MAX;

/// The kinds of objects, as they stand in handles and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum HandleKind {
    Stream = 1,
    Event = 2,
    Buffer = 3,
    PinnedBuffer = 4,
    Module = 5,
    Function = 6,
    Program = 7,
    Graph = 8,
    ExecutableGraph = 9,
    Tensor = 10,
    Expression = 11,
    Fused = 12,
    Generator = 13,
    Epilogue = 14,
    Network = 15,
    Simulation = 16,
    Variable = 17,
    Model = 18,
    Optimizer = 19,
    Classifier = 20,
    Tokenizer = 21,
    Trainer = 22,
    Evolver = 23,
    DeviceNetwork = 24,
    Symbolic = 25,
    GaussianModel = 26,
    Decoder = 27,
}

impl HandleKind {
    const ALL: [HandleKind; 27] = [
        HandleKind::Stream,
        HandleKind::Event,
        HandleKind::Buffer,
        HandleKind::PinnedBuffer,
        HandleKind::Module,
        HandleKind::Function,
        HandleKind::Program,
        HandleKind::Graph,
        HandleKind::ExecutableGraph,
        HandleKind::Tensor,
        HandleKind::Expression,
        HandleKind::Fused,
        HandleKind::Generator,
        HandleKind::Epilogue,
        HandleKind::Network,
        HandleKind::Simulation,
        HandleKind::Variable,
        HandleKind::Model,
        HandleKind::Optimizer,
        HandleKind::Classifier,
        HandleKind::Tokenizer,
        HandleKind::Trainer,
        HandleKind::Evolver,
        HandleKind::DeviceNetwork,
        HandleKind::Symbolic,
        HandleKind::GaussianModel,
        HandleKind::Decoder,
    ];

    fn name(self) -> &'static str {
        match self {
            HandleKind::Stream => "stream",
            HandleKind::Event => "event",
            HandleKind::Buffer => "buffer",
            HandleKind::PinnedBuffer => "pinned buffer",
            HandleKind::Module => "module",
            HandleKind::Function => "function",
            HandleKind::Program => "program",
            HandleKind::Graph => "graph",
            HandleKind::ExecutableGraph => "executable graph",
            HandleKind::Tensor => "tensor",
            HandleKind::Expression => "expression",
            HandleKind::Fused => "fused function",
            HandleKind::Generator => "generator",
            HandleKind::Epilogue => "epilogue",
            HandleKind::Network => "network",
            HandleKind::Simulation => "simulation",
            HandleKind::Variable => "variable",
            HandleKind::Model => "model",
            HandleKind::Optimizer => "optimizer",
            HandleKind::Classifier => "classifier",
            HandleKind::Tokenizer => "tokenizer",
            HandleKind::Trainer => "trainer",
            HandleKind::Evolver => "evolver",
            HandleKind::DeviceNetwork => "device network",
            HandleKind::Symbolic => "symbolic expression",
            HandleKind::GaussianModel => "Gaussian model",
            HandleKind::Decoder => "decoder",
        }
    }

    /// Returns the kind in a handle.
    pub(super) fn of(handle: u64) -> Option<HandleKind> {
        // The codes begin with 1, in the order of the list.
        HandleKind::ALL.get(((handle >> 56) as usize).checked_sub(1)?).copied()
    }
}

/// An object that handles stand for. A clone is another reference to the same object.
pub(super) trait Object: Clone + Send + Sync + 'static {
    /// The kind of the object.
    const KIND: HandleKind;

    /// Returns the table of all objects of this kind.
    fn table() -> &'static Table<Self>;

    /// Returns this thread's spare slots of that table.
    fn spares() -> &'static LocalKey<Spares<Self>>;
}

/// Implements [`Object`] for a type with a table of its own.
macro_rules! object {
    ($type:ty, $kind:ident) => {
        impl $crate::capi::handle::Object for $type {
            const KIND: $crate::capi::handle::HandleKind = $crate::capi::handle::HandleKind::$kind;

            fn table() -> &'static $crate::capi::handle::Table<$type> {
                static TABLE: $crate::capi::handle::Table<$type> = $crate::capi::handle::Table::new();
                &TABLE
            }

            fn spares() -> &'static std::thread::LocalKey<$crate::capi::handle::Spares<$type>> {
                thread_local! {
                    static SPARES: $crate::capi::handle::Spares<$type> =
                        const { $crate::capi::handle::Spares::new() };
                }
                &SPARES
            }
        }
    };
}
pub(super) use object;

#[cold]
fn invalid(name: &str, found: String, wanted: HandleKind) -> Failure {
    let message = format!("{name}: found {found}; wanted the handle of a live {}", wanted.name());
    Failure { status: status::SV_ERROR_INVALID_HANDLE, message }
}

fn stale(handle: u64, name: &str, wanted: HandleKind) -> Failure {
    invalid(name, format!("{handle:#x}, which was released"), wanted)
}

fn foreign(handle: u64, name: &str, wanted: HandleKind) -> Failure {
    let found = match HandleKind::of(handle) {
        _ if handle == 0 => "0, which is no object".to_owned(),
        _ if handle == SV_NO_VARIABLE && wanted == HandleKind::Variable => "SV_NO_VARIABLE".to_owned(),
        _ if handle == SV_NO_TENSOR => "SV_NO_TENSOR".to_owned(),
        Some(kind) if kind != wanted => format!("{handle:#x}, the handle of a {}", kind.name()),
        _ => format!("{handle:#x}, which this library never gave"),
    };
    invalid(name, found, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_the_order_of_the_kinds() {
        for (at, kind) in HandleKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, HandleKind::of((kind as u64) << 56 | 7)), (at + 1, Some(kind)));
        }
        assert_eq!((HandleKind::of(0), HandleKind::of(u64::MAX)), (None, None));
    }
}
