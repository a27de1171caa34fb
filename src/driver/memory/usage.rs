//! Which streams use a block, and the waits that keep them apart.
//!
//! The rule: an operation that reads waits for the last writer; one that writes waits for the writer and all readers;
//! then it enters itself. Most blocks only ever meet one stream, so that case is one atomic compare: while `sole` holds
//! a stream's id, every operation on the block was that stream's, and its own order is enough.
//!
//! No event belongs to a use. One is recorded when another stream first has to wait, behind everything that the stream
//! has been given by then: later than needed at times, never too early, because Rust's borrows put the earlier
//! operation's call before the later one's. An operation enters *before* its driver call; should the call fail, a wait
//! too many is all that remains.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::driver::event::EventCell;
use crate::driver::stream::StreamState;
use crate::error::Result;

/// How an operation uses a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The streams that use a block.
pub(crate) struct Usage {
    /// The [`key`] of the only stream that uses the block, its lowest bit clear where it only reads; else 0.
    sole: AtomicU64,
    streams: Mutex<Streams>,
}

enum Streams {
    /// Nothing was issued that must be waited for.
    Idle,
    /// One stream, and whether it wrote.
    Sole(Arc<StreamState>, bool),
    /// Several readers, each of which is ordered behind the event of the last write, where there was one.
    Shared { write: Option<Arc<EventCell>>, readers: Vec<Arc<StreamState>> },
}

/// A stream's id with the lowest bit set.
#[inline]
fn key(stream: &StreamState) -> u64 {
    stream.id << 1 | 1
}

impl Usage {
    /// A block that nothing uses, such as a module's code.
    pub(crate) fn idle() -> Usage {
        Usage { sole: AtomicU64::new(0), streams: Mutex::new(Streams::Idle) }
    }

    /// A block that a stream owns; what the block's earlier life left behind counts as its write.
    pub(crate) fn owned_by(stream: &Arc<StreamState>) -> Usage {
        Usage { sole: AtomicU64::new(key(stream)), streams: Mutex::new(Streams::Sole(stream.clone(), true)) }
    }

    /// Makes the stream wait for the uses that this one must come after, and enters it.
    #[inline]
    pub(crate) fn enter(&self, stream: &Arc<StreamState>, access: Access) -> Result<()> {
        // A stale hit is harmless: whoever has just ended the sole use keeps this stream among the readers.
        let sole = self.sole.load(Ordering::Acquire);
        let sole = if access == Access::Read { sole | 1 } else { sole };
        if sole == key(stream) { Ok(()) } else { self.enter_slow(stream, access) }
    }

    #[cold]
    fn enter_slow(&self, stream: &Arc<StreamState>, access: Access) -> Result<()> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let written = access == Access::Write;
        let next = match &mut *streams {
            Streams::Idle => Streams::Sole(stream.clone(), written),
            Streams::Sole(owner, wrote) if owner.id == stream.id => {
                if *wrote || !written {
                    return Ok(());
                }
                Streams::Sole(stream.clone(), true)
            }
            Streams::Sole(owner, wrote) => match access {
                Access::Write => {
                    stream.wait_for(owner)?;
                    Streams::Sole(stream.clone(), true)
                }
                Access::Read => {
                    let write = if *wrote { Some(owner.mark()?) } else { None };
                    if let Some(event) = &write {
                        stream.wait_event(event)?;
                    }
                    Streams::Shared { write, readers: vec![owner.clone(), stream.clone()] }
                }
            },
            Streams::Shared { write, readers } => match access {
                Access::Read => {
                    if !readers.iter().any(|reader| reader.id == stream.id) {
                        if let Some(event) = write {
                            stream.wait_event(event)?;
                        }
                        // Long-lived blocks would keep every stream that ever read them.
                        readers.retain(|reader| !(reader.is_closed() && reader.is_idle().unwrap_or(false)));
                        readers.push(stream.clone());
                    }
                    return Ok(());
                }
                Access::Write => {
                    for reader in readers.iter() {
                        stream.wait_for(reader)?;
                    }
                    Streams::Sole(stream.clone(), true)
                }
            },
        };
        self.replace(&mut streams, next);
        Ok(())
    }

    fn replace(&self, streams: &mut Streams, next: Streams) {
        let sole = match &next {
            Streams::Sole(owner, wrote) => key(owner) & !u64::from(!wrote),
            _ => 0,
        };
        self.sole.store(sole, Ordering::Release);
        *streams = next;
    }

    /// Every stream whose work must be done before the block is free.
    pub(crate) fn streams(&self) -> Vec<Arc<StreamState>> {
        match &*self.streams.lock().unwrap_or_else(PoisonError::into_inner) {
            Streams::Idle => Vec::new(),
            Streams::Sole(owner, _) => vec![owner.clone()],
            Streams::Shared { readers, .. } => readers.clone(),
        }
    }

    /// Makes the stream wait for every other user, and enters it as one more. Nobody is forgotten: others may enter at
    /// the same time.
    pub(crate) fn enter_after_all(&self, stream: &Arc<StreamState>) -> Result<()> {
        self.enter(stream, Access::Read)?;
        self.streams().iter().try_for_each(|other| stream.wait_for(other))
    }

    /// Whether this stream alone uses the block.
    pub(crate) fn is_sole(&self, stream: &StreamState) -> bool {
        self.sole.load(Ordering::Acquire) | 1 == key(stream)
    }
}
