//! The reasons why a row is not in registers, and why it is not in shared memory, in words.

use std::fmt;

use super::rows_limits::{
    MAX_COMPUTE_BOUND_SEGMENTS, MAX_LOADED_BYTES, MAX_REGISTER_INSTRUCTIONS, MAX_REGISTER_SEGMENTS,
    MAX_UNALIGNED_SEGMENTS,
};

/// The reasons for the memory that holds a row. Both are `None` for a row in registers, the second for one in shared memory.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::fuse) struct RowStorageReasons {
    pub(super) not_registers: Option<NotInRegisters>,
    pub(super) not_shared: Option<NotInShared>,
}

/// The reason why the registers of threads do not hold a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotInRegisters {
    /// A row of several segments without vector accesses.
    Unaligned {
        segments: usize,
        access: UnalignedAccess,
    },
    /// A row of 16-bit elements whose instructions take as long as their memory.
    ComputeBound {
        segments: usize,
        element_instructions: usize,
    },
    Segments(usize),
    Instructions(usize),
    Registers {
        registers: usize,
        most: usize,
    },
    LoadedBytes(usize),
    /// Shared memory holds fewer bytes, because a value takes the place of several operands.
    FewerSharedBytes {
        register_bytes: usize,
        shared_bytes: usize,
    },
}

/// The reason why accesses are not vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnalignedAccess {
    /// An operand with strides, or with spans that vectors would cross.
    Strided,
    /// An operand or a row of it begins between two vectors.
    Misaligned,
}

/// The reason why shared memory does not hold a row that registers do not hold either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotInShared {
    /// No two stages read an operand that varies from row to row, and none saves a value.
    ReadOnce,
    TooLarge,
}

impl fmt::Display for NotInRegisters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            NotInRegisters::Unaligned { segments, access } => {
                let access = match access {
                    UnalignedAccess::Strided => "an operand is read element by element",
                    UnalignedAccess::Misaligned => "an operand is not aligned to a vector",
                };
                write!(
                    formatter,
                    "{access} and the row has {segments} segments (most: {MAX_UNALIGNED_SEGMENTS})"
                )
            }
            NotInRegisters::ComputeBound { segments, element_instructions } => write!(
                formatter,
                "a 16-bit element takes {element_instructions} instructions and the row has {segments} segments \
                 (most: {MAX_COMPUTE_BOUND_SEGMENTS})"
            ),
            NotInRegisters::Segments(segments) => {
                write!(formatter, "the row has {segments} segments (most: {MAX_REGISTER_SEGMENTS})")
            }
            NotInRegisters::Instructions(count) => {
                write!(
                    formatter,
                    "a thread would execute {count} instructions (most: {MAX_REGISTER_INSTRUCTIONS})"
                )
            }
            NotInRegisters::Registers { registers, most } => {
                write!(formatter, "a thread would need {registers} registers (most: {most})")
            }
            NotInRegisters::LoadedBytes(bytes) => {
                write!(formatter, "a thread would load {bytes} bytes (most: {MAX_LOADED_BYTES})")
            }
            NotInRegisters::FewerSharedBytes { register_bytes, shared_bytes } => {
                write!(
                    formatter,
                    "the row takes {shared_bytes} bytes of shared memory, but {register_bytes} of registers"
                )
            }
        }
    }
}

impl fmt::Display for NotInShared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            NotInShared::ReadOnce => "no two stages read an operand that varies from row to row",
            NotInShared::TooLarge => "it exceeds the shared memory of the blocks of a row",
        })
    }
}

/// Writes a clause for each reason, to follow a schedule.
impl fmt::Display for RowStorageReasons {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = self.not_registers {
            write!(formatter, "; registers do not hold it, because {reason}")?;
        }
        if let Some(reason) = self.not_shared {
            write!(formatter, "; shared memory does not, because {reason}")?;
        }
        Ok(())
    }
}
