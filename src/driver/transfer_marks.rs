//! The progress of a stream's transfers, by events that are recorded only before a later operation.
//!
//! Invariants: an event is behind every operation whose position is at most the event's. This holds because positions
//! are counted in the order in which driver calls return.

use std::collections::VecDeque;
use std::sync::Arc;

use super::event::EventCell;
use crate::error::Result;

/// How to detect the end of a transfer.
pub(crate) enum TransferEnd {
    /// The transfer is done: an event behind it was seen complete.
    Done,
    /// The transfer is done when this event is complete.
    Event(Arc<EventCell>),
    /// The transfer is done when the stream is idle: no operation is known to follow it.
    Stream,
}

/// Events behind transfers, in the order of their positions.
#[derive(Default)]
pub(super) struct TransferMarks {
    /// Every transfer up to this position is done.
    done: u64,
    marks: VecDeque<(u64, Arc<EventCell>)>,
}

impl TransferMarks {
    pub(super) fn add(&mut self, position: u64, event: Arc<EventCell>) -> Result<()> {
        // Drop events that nobody waits for any more.
        const KEPT: usize = 16;
        while self.marks.len() >= KEPT {
            match self.marks.front() {
                Some((position, event)) if event.is_complete()? => self.done = *position,
                _ => break,
            }
            self.marks.pop_front();
        }
        self.marks.push_back((position, event));
        Ok(())
    }

    pub(super) fn end_of(&self, position: u64) -> TransferEnd {
        if position <= self.done {
            return TransferEnd::Done;
        }
        match self.marks.iter().find(|(behind, _)| *behind >= position) {
            Some((_, event)) => TransferEnd::Event(event.clone()),
            None => TransferEnd::Stream,
        }
    }
}
