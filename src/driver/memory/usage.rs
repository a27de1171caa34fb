//! The streams that use a block, and the waits that order them.
//!
//! The rule: an operation that reads waits for the last writer; one that writes waits for the writer and all readers.
//! Each then registers its stream as a user. Most blocks only ever meet one stream, so that case is one atomic compare:
//! while `sole` holds a stream's key, every operation on the block was that stream's, and its own order is enough.
//!
//! No event belongs to a use. An event is recorded when another stream first has to wait, behind all work issued to the
//! stream so far. An operation registers *before* its driver call; if the call fails, the only effect is an unnecessary
//! wait. An event is therefore certain to be behind an earlier operation only if that operation's call has certainly
//! returned. Rust's borrows guarantee this for a **whole** block: the owner of `&mut` or `&` to a buffer knows that no
//! other thread is in the middle of writing it. They do not for **parts**: the halves of a split buffer are exclusive
//! on their own, and two threads may register at once. For writes of parts, streams are therefore only added, never
//! forgotten, and every later use waits for all work issued to them so far, until the whole block is used again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::driver::event::EventCell;
use crate::driver::stream::StreamState;
use crate::error::{Error, Result};

/// How an operation uses a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// No part of the block can be written meanwhile.
    Read,
    /// Another part may be written meanwhile.
    ReadPart,
    /// Nobody else can use any part meanwhile.
    Write,
    /// Another part may be read or written meanwhile.
    WritePart,
}

impl Access {
    pub(crate) fn read(whole: bool) -> Access {
        if whole { Access::Read } else { Access::ReadPart }
    }

    pub(crate) fn write(whole: bool) -> Access {
        if whole { Access::Write } else { Access::WritePart }
    }

    /// A use of the whole block.
    pub(crate) fn of(writes: bool) -> Access {
        if writes { Access::Write } else { Access::Read }
    }

    pub(crate) fn writes(self) -> bool {
        matches!(self, Access::Write | Access::WritePart)
    }
}

/// Counts every use in the process that took more than one compare. While the count is unchanged, no block has changed
/// its users, so a set of blocks that was found to belong to one stream need not be checked again.
static CHANGES: AtomicU64 = AtomicU64::new(1);

/// The count of changes so far; never 0.
#[inline]
pub(crate) fn changes() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// The streams that use a block. The field that every operation reads comes first.
#[repr(C)]
pub(crate) struct Usage {
    /// The [`key`] of the only stream that uses the block, with its lowest bit clear if it only reads; otherwise 0.
    sole: AtomicU64,
    streams: Mutex<Streams>,
}

type Users = Vec<Arc<StreamState>>;

/// Small, because every block has one; rare states are boxed.
enum Streams {
    /// Nothing was issued to a stream. These events are from earlier uses of the memory.
    Idle(Vec<Arc<EventCell>>),
    /// The home stream wrote, which the allocation knows: it is [settled](Usage::settle) before it is read.
    Home,
    /// One stream, and true if it wrote.
    Sole(Arc<StreamState>, bool),
    /// Several readers.
    Shared(Box<Shared>),
    /// Parts are written.
    Parts(Box<PartUsers>),
}

/// Readers, each ordered behind the events of the last writes. `earlier` holds users from before, which may be behind
/// only some of the writes: they do not count as readers, but a writer waits for them.
struct Shared {
    writes: Vec<Arc<EventCell>>,
    readers: Users,
    earlier: Users,
}

/// Writers, which may write at any moment, each ordered behind its overlapping uses, and readers.
struct PartUsers {
    writers: Users,
    readers: Users,
}

/// A stream's id with the lowest bit set.
#[inline]
fn key(stream: &StreamState) -> u64 {
    stream.id << 1 | 1
}

fn contains(users: &Users, stream: &StreamState) -> bool {
    users.iter().any(|user| user.id == stream.id)
}

fn union(one: &Users, other: &Users) -> Users {
    one.iter().chain(other.iter().filter(|user| !contains(one, user))).cloned().collect()
}

/// Adds a stream unless it is there already. Returns streams that nobody holds any more and that are idle, which
/// long-lived blocks would otherwise hold for ever. The caller drops them outside of locks.
fn add(users: &mut Users, stream: &Arc<StreamState>) -> Users {
    if contains(users, stream) {
        return Vec::new();
    }
    let gone = |user: &Arc<StreamState>| {
        user.device.was_finished() || user.is_closed() && user.is_idle().unwrap_or(false)
    };
    let (thrown_out, kept) = std::mem::take(users).into_iter().partition(gone);
    *users = kept;
    users.push(stream.clone());
    thrown_out
}

/// Waits for all work issued to the users so far.
fn wait_for_all(stream: &StreamState, users: &Users) -> Result<()> {
    users.iter().try_for_each(|user| stream.wait_for(user))
}

/// As [`wait_for_all`], for an overwrite: users that were lost with their context need no wait.
fn wait_for_living(stream: &StreamState, users: &Users) -> Result<()> {
    users.iter().try_for_each(|user| stream.wait_for_living(user))
}

/// Returns events behind all work issued to the writers, for a reader. A device that was reset with all of its work
/// done needs no event.
fn marks(writers: &[Arc<StreamState>], reader: &StreamState) -> Result<Vec<Arc<EventCell>>> {
    writers
        .iter()
        .filter(|writer| !writer.device.was_finished())
        .map(|writer| writer.mark_for(reader))
        .collect()
}

impl Usage {
    /// A block that nothing uses, such as a module's code.
    pub(crate) fn idle() -> Usage {
        Usage::after(Vec::new())
    }

    /// A block whose first user must wait for the events.
    pub(crate) fn after(events: Vec<Arc<EventCell>>) -> Usage {
        Usage { sole: AtomicU64::new(0), streams: Mutex::new(Streams::Idle(events)) }
    }

    /// A block that its home stream owns. Earlier uses of the memory count as the stream's write. The usage does not
    /// hold the stream: the allocation does, and settles the usage before another stream uses the block.
    pub(super) fn owned_by_home(home: &StreamState) -> Usage {
        Usage { sole: AtomicU64::new(key(home)), streams: Mutex::new(Streams::Home) }
    }

    /// Sets the home stream.
    #[cold]
    pub(super) fn settle(&self, home: &Arc<StreamState>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Streams::Home = *streams {
            *streams = Streams::Sole(home.clone(), true);
        }
    }

    /// Returns whether the stream may use the block without further checks.
    #[inline]
    pub(super) fn has_entered(&self, stream: &StreamState, access: Access) -> bool {
        // A stale hit is harmless: the thread that has just ended the sole use keeps this stream among the users.
        let sole = self.sole.load(Ordering::Acquire);
        let reads = matches!(access, Access::Read | Access::ReadPart);
        (if reads { sole | 1 } else { sole }) == key(stream)
    }

    /// Makes the stream wait for earlier conflicting uses, and registers it as a user.
    #[inline]
    pub(crate) fn enter(&self, stream: &Arc<StreamState>, access: Access) -> Result<()> {
        if self.has_entered(stream, access) { Ok(()) } else { self.enter_slow(stream, access) }
    }

    #[cold]
    fn enter_slow(&self, stream: &Arc<StreamState>, access: Access) -> Result<()> {
        CHANGES.fetch_add(1, Ordering::AcqRel);
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let mut thrown_out = Vec::new();
        if let Streams::Idle(after) = &*streams {
            after.iter().try_for_each(|event| stream.wait_event(event))?;
        }
        let next = match access {
            Access::Read | Access::ReadPart => {
                streams.read(stream, access == Access::Read, &mut thrown_out)?
            }
            Access::Write => {
                wait_for_living(stream, &streams.users())?;
                Some(Streams::Sole(stream.clone(), true))
            }
            Access::WritePart => streams.write_part(stream, &mut thrown_out)?,
        };
        let Some(next) = next else {
            drop(streams);
            return Ok(());
        };
        let sole = match &next {
            Streams::Sole(owner, wrote) => key(owner) & !u64::from(!wrote),
            _ => 0,
        };
        self.sole.store(sole, Ordering::Release);
        let old = std::mem::replace(&mut *streams, next);
        // Dropping the last reference destroys a stream, which may call the user's error hook. The lock is released
        // first.
        drop(streams);
        drop((old, thrown_out));
        Ok(())
    }

    /// Every stream whose work must be done before the block is free.
    pub(crate) fn streams(&self) -> Vec<Arc<StreamState>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).users()
    }

    /// Makes the stream wait for every other user, and adds it as one more. No user is forgotten: others may register
    /// at the same time.
    pub(crate) fn enter_after_all(&self, stream: &Arc<StreamState>) -> Result<()> {
        self.enter(stream, Access::Read)?;
        wait_for_all(stream, &self.streams())
    }

    /// Returns whether this stream alone uses the block.
    pub(crate) fn is_sole(&self, stream: &StreamState) -> bool {
        self.sole.load(Ordering::Acquire) | 1 == key(stream)
    }
}

/// The error for a use that cannot be ordered.
#[cold]
fn unsettled() -> Error {
    Error::invalid("ordering a use", "a block whose home stream is not known", "one that was settled first")
}

impl Streams {
    fn users(&self) -> Users {
        match self {
            Streams::Idle(_) | Streams::Home => Vec::new(),
            Streams::Sole(owner, _) => vec![owner.clone()],
            Streams::Shared(shared) => union(&shared.readers, &shared.earlier),
            Streams::Parts(parts) => union(&parts.writers, &parts.readers),
        }
    }

    /// Waits for the writers. Returns the next state if it differs.
    fn read(
        &mut self,
        stream: &Arc<StreamState>,
        whole: bool,
        thrown_out: &mut Users,
    ) -> Result<Option<Streams>> {
        Ok(match self {
            Streams::Home => return Err(unsettled()),
            // The next user must follow everything that this one has waited for, as after a write.
            Streams::Idle(after) => Some(Streams::Sole(stream.clone(), !after.is_empty())),
            Streams::Sole(owner, _) if owner.id == stream.id => None,
            Streams::Sole(owner, wrote) if whole => {
                let writes = if *wrote { marks(std::slice::from_ref(owner), stream)? } else { Vec::new() };
                for event in &writes {
                    stream.wait_event(event)?;
                }
                let readers = vec![owner.clone(), stream.clone()];
                Some(Streams::Shared(Box::new(Shared { writes, readers, earlier: Vec::new() })))
            }
            Streams::Sole(owner, _) => {
                stream.wait_for(owner)?;
                let (writers, readers) = (vec![owner.clone()], vec![stream.clone()]);
                Some(Streams::Parts(Box::new(PartUsers { writers, readers })))
            }
            Streams::Shared(shared) => {
                let Shared { writes, readers, .. } = &mut **shared;
                if !contains(readers, stream) {
                    for event in writes.iter() {
                        stream.wait_event(event)?;
                    }
                    *thrown_out = add(readers, stream);
                }
                None
            }
            Streams::Parts(parts) if whole => {
                let writers = &parts.writers;
                // No part is being written any more, so an event recorded now is behind all writes.
                let writes = marks(writers, stream)?;
                wait_for_all(stream, writers)?;
                let (readers, earlier) = (vec![stream.clone()], self.users());
                Some(Streams::Shared(Box::new(Shared { writes, readers, earlier })))
            }
            Streams::Parts(parts) => {
                wait_for_all(stream, &parts.writers)?;
                *thrown_out = add(&mut parts.readers, stream);
                None
            }
        })
    }

    /// Waits for every other user. Returns the next state if it differs.
    fn write_part(&mut self, stream: &Arc<StreamState>, thrown_out: &mut Users) -> Result<Option<Streams>> {
        wait_for_living(stream, &self.users())?;
        Ok(match self {
            Streams::Home => return Err(unsettled()),
            Streams::Idle(_) => Some(Streams::Sole(stream.clone(), true)),
            Streams::Sole(owner, true) if owner.id == stream.id => None,
            Streams::Sole(owner, _) => {
                let (writers, readers) = (vec![owner.clone(), stream.clone()], Vec::new());
                Some(Streams::Parts(Box::new(PartUsers { writers, readers })))
            }
            Streams::Shared(_) => {
                let (writers, readers) = (vec![stream.clone()], self.users());
                Some(Streams::Parts(Box::new(PartUsers { writers, readers })))
            }
            Streams::Parts(parts) => {
                *thrown_out = add(&mut parts.writers, stream);
                None
            }
        })
    }
}
