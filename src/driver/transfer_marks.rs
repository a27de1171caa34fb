//! How far a stream's transfers are, by events that are recorded only when something follows one.
//!
//! What must stay true: a mark's event is behind every operation whose place is at most the mark's, which holds because places
//! are counted in the order in which driver calls return.

use std::collections::VecDeque;
use std::sync::Arc;

use super::event::EventCell;
use crate::error::Result;

/// How to know that a transfer is done.
pub(crate) enum TransferEnd {
    /// It is: an event behind it was seen complete.
    Done,
    /// When this event is complete.
    Event(Arc<EventCell>),
    /// When the stream is idle: nothing was issued behind it, as far as is known.
    Stream,
}

/// Events behind transfers, in the order of their places.
#[derive(Default)]
pub(super) struct TransferMarks {
    /// Every transfer up to this place is done.
    done: u64,
    marks: VecDeque<(u64, Arc<EventCell>)>,
}

impl TransferMarks {
    pub(super) fn add(&mut self, place: u64, event: Arc<EventCell>) -> Result<()> {
        // Marks that nobody waits for any more would pile up.
        const KEPT: usize = 16;
        while self.marks.len() >= KEPT {
            match self.marks.front() {
                Some((place, event)) if event.is_complete()? => self.done = *place,
                _ => break,
            }
            self.marks.pop_front();
        }
        self.marks.push_back((place, event));
        Ok(())
    }

    pub(super) fn end_of(&self, place: u64) -> TransferEnd {
        if place <= self.done {
            return TransferEnd::Done;
        }
        match self.marks.iter().find(|(behind, _)| *behind >= place) {
            Some((_, event)) => TransferEnd::Event(event.clone()),
            None => TransferEnd::Stream,
        }
    }
}
