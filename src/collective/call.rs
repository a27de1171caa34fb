//! The call that a frame belongs to. Ranks compare theirs, so that calls that do not match are errors, not wrong data.

use super::reduction::ReduceOp;
use crate::types::DType;

/// The operations of a communicator, in the order of their codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    AllReduce,
    Reduce,
    Broadcast,
    AllGather,
    ReduceScatter,
    AllToAll,
    AllToAllUneven,
    Gather,
    Scatter,
    Barrier,
    Split,
    Send,
}

impl Operation {
    const ALL: [Operation; 12] = [
        Operation::AllReduce,
        Operation::Reduce,
        Operation::Broadcast,
        Operation::AllGather,
        Operation::ReduceScatter,
        Operation::AllToAll,
        Operation::AllToAllUneven,
        Operation::Gather,
        Operation::Scatter,
        Operation::Barrier,
        Operation::Split,
        Operation::Send,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Operation::AllReduce => "all_reduce",
            Operation::Reduce => "reduce",
            Operation::Broadcast => "broadcast",
            Operation::AllGather => "all_gather",
            Operation::ReduceScatter => "reduce_scatter",
            Operation::AllToAll => "all_to_all",
            Operation::AllToAllUneven => "all_to_all_uneven",
            Operation::Gather => "gather",
            Operation::Scatter => "scatter",
            Operation::Barrier => "barrier",
            Operation::Split => "split",
            Operation::Send => "send",
        }
    }
}

/// A call of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) operation: Operation,
    pub(super) dtype: DType,
    pub(super) op: Option<ReduceOp>,
    pub(super) root: Option<usize>,
    /// The elements of the call's argument; 0 where ranks may have different ones.
    pub(super) count: usize,
}

impl Call {
    pub(super) fn new(operation: Operation, dtype: DType, count: usize) -> Call {
        Call { operation, dtype, op: None, root: None, count }
    }

    /// Describes the call in an error.
    pub(super) fn describe(&self) -> String {
        let mut text = self.operation.name().to_owned();
        if self.operation != Operation::Barrier && self.operation != Operation::Split {
            text += &match self.count {
                0 => format!(" of {}", self.dtype),
                count => format!(" of {count} {}", self.dtype),
            };
        }
        if let Some(op) = self.op {
            text += &format!(" with {}", op.name());
        }
        if let Some(root) = self.root {
            text += &format!(" with root {root}");
        }
        text
    }
}

/// Bytes of a frame's header.
pub(super) const HEADER: usize = 40;
const MAGIC: u32 = u32::from_le_bytes(*b"SVC1");

/// The head of a frame: the call, its number in its order, the phase of the call, and the bytes that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) call: Call,
    pub(super) phase: u8,
    pub(super) sequence: u64,
    pub(super) bytes: usize,
}

impl Header {
    pub(super) fn to_bytes(self) -> [u8; HEADER] {
        let Header { call, phase, sequence, bytes } = self;
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4] = call.operation as u8;
        header[5] = DType::ALL.iter().position(|dtype| *dtype == call.dtype).unwrap_or_default() as u8;
        header[6] = call
            .op
            .and_then(|op| ReduceOp::ALL.iter().position(|other| *other == op))
            .map_or(0, |at| at as u8 + 1);
        header[7] = phase;
        header[8..16].copy_from_slice(&call.root.map_or(0, |root| root as u64 + 1).to_le_bytes());
        header[16..24].copy_from_slice(&(call.count as u64).to_le_bytes());
        header[24..32].copy_from_slice(&sequence.to_le_bytes());
        header[32..].copy_from_slice(&(bytes as u64).to_le_bytes());
        header
    }

    /// Reads a header; `None` for bytes that are none.
    pub(super) fn from_bytes(header: &[u8; HEADER]) -> Option<Header> {
        let word = |at: usize| header[at..].first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
        let size = |at: usize| word(at).and_then(|word| usize::try_from(word).ok());
        if header.first_chunk::<4>() != Some(&MAGIC.to_le_bytes()) {
            return None;
        }
        let op = match header[6] {
            0 => None,
            code => Some(*ReduceOp::ALL.get(code as usize - 1)?),
        };
        let call = Call {
            operation: *Operation::ALL.get(header[4] as usize)?,
            dtype: *DType::ALL.get(header[5] as usize)?,
            op,
            root: size(8)?.checked_sub(1),
            count: size(16)?,
        };
        Some(Header { call, phase: header[7], sequence: word(24)?, bytes: size(32)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_were_written() {
        for operation in Operation::ALL {
            for (op, root) in [(None, None), (Some(ReduceOp::Max), Some(0)), (Some(ReduceOp::Sum), Some(7))] {
                let call = Call { op, root, ..Call::new(operation, DType::BF16, 12) };
                let header = Header { call, phase: 1, sequence: 1 << 40, bytes: 24 };
                assert_eq!(Header::from_bytes(&header.to_bytes()), Some(header));
            }
        }
        let mut wrong =
            Header { call: Call::new(Operation::Send, DType::U8, 1), phase: 0, sequence: 0, bytes: 1 }
                .to_bytes();
        wrong[4] = 99;
        assert_eq!(Header::from_bytes(&wrong), None);
        assert_eq!(Header::from_bytes(&[0; HEADER]), None);
    }

    #[test]
    fn calls_say_what_they_are() {
        let call =
            Call { op: Some(ReduceOp::Mean), root: Some(2), ..Call::new(Operation::Reduce, DType::F32, 8) };
        assert_eq!(call.describe(), "reduce of 8 f32 with mean with root 2");
        assert_eq!(Call::new(Operation::Barrier, DType::U8, 0).describe(), "barrier");
    }
}
