//! The progress of the last uses of free memory, by events at positions in the orders of streams.
//!
//! A free block stores its stream and the number of operations that it is behind. An event is recorded only on demand,
//! behind all work issued to the stream so far, so one event covers many blocks. A closed stream leaves its last event.
//! Blocks of graphs have a group of events instead of a stream.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use super::heap::Heap;
use super::thread_cache::{RegisteredCache, ThreadCache};
use crate::driver::context::gone;
use crate::driver::event::EventCell;
use crate::driver::stream::StreamState;
use crate::error::{Error, Result};

/// The position of blocks behind a group of events.
pub(crate) const GROUP_POSITION: u64 = 1;

/// The known state of one owner's order.
#[derive(Default)]
struct Order {
    stream: Weak<StreamState>,
    /// Events and their positions, in order.
    marks: VecDeque<(u64, Arc<EventCell>)>,
    /// A group of events, used instead of `marks`.
    group: Vec<Arc<EventCell>>,
    done: u64,
}

/// The orders of all owners of free blocks.
#[derive(Default)]
pub(crate) struct Orders(HashMap<u64, Order>);

/// Returns whether the work behind the event is over. Another device's work is over once the device was reset, but not
/// if it is merely lost.
fn is_complete(event: &EventCell, here: &'static crate::driver::device::DeviceState) -> Result<bool> {
    match event.is_released() {
        Err(error) if gone(&error) && !here.is_lost() => Ok(false),
        result => result,
    }
}

impl Orders {
    /// Records that a stream's blocks return to the heap, with its last event if it is closed.
    pub(crate) fn record_return(&mut self, entry: &RegisteredCache, last: Option<&(Arc<EventCell>, u64)>) {
        let RegisteredCache { cache, stream } = entry;
        let order = self.0.entry(cache.id).or_default();
        if order.stream.strong_count() == 0 {
            order.stream = stream.clone();
        }
        if let Some((event, position)) = last
            && order.marks.back().is_none_or(|(newest, _)| newest < position)
            && *position > order.done
        {
            order.marks.push_back((*position, event.clone()));
        }
    }

    /// Adds a group of events under a new owner's number.
    pub(crate) fn add_group(&mut self, owner: u64, events: Vec<Arc<EventCell>>) {
        self.0.insert(owner, Order { group: events, ..Order::default() });
    }

    /// Returns the position up to which the owner's order is done. Pushes the streams it uses to `held`, to be dropped
    /// outside of locks.
    pub(crate) fn done(
        &mut self,
        owner: u64,
        here: &'static crate::driver::device::DeviceState,
        held: &mut Vec<Arc<StreamState>>,
    ) -> Result<u64> {
        let Some(order) = self.0.get_mut(&owner) else { return Ok(0) };
        if !order.group.is_empty() {
            while let Some(event) = order.group.last() {
                if !is_complete(event, here)? {
                    return Ok(0);
                }
                order.group.pop();
            }
            order.done = GROUP_POSITION;
        }
        if order.marks.is_empty()
            && let Some(stream) = order.stream.upgrade()
        {
            if stream.issued() > order.done {
                match idle_position(&stream)? {
                    Some(position) => order.done = position,
                    // Recorded for the next query.
                    None => {
                        let (event, position) = stream.mark_at()?;
                        order.marks.push_back((position, event));
                    }
                }
            }
            held.push(stream);
        }
        while let Some((position, event)) = order.marks.front() {
            if !is_complete(event, here)? {
                break;
            }
            order.done = order.done.max(*position);
            order.marks.pop_front();
        }
        Ok(order.done)
    }

    /// Marks everything of this owner up to this position as done: its device was idle since.
    pub(crate) fn settle(&mut self, owner: u64, position: u64) {
        // The owner may have been forgotten meanwhile, and a block may have returned after that.
        let order = self.0.entry(owner).or_default();
        if order.group.is_empty() {
            order.done = order.done.max(position);
        }
    }

    /// Returns whether there is, or can be, an event behind everything of this owner.
    pub(crate) fn can_wait(&self, owner: u64) -> bool {
        self.0.get(&owner).is_some_and(|order| {
            let can_wait = |event: &Arc<EventCell>| !event.device().is_lost();
            (!order.group.is_empty() && order.group.iter().all(can_wait))
                || !order.marks.is_empty()
                || order.stream.strong_count() > 0
        })
    }

    /// Returns the events to wait for before a block that is free behind this position is used.
    pub(crate) fn events(
        &mut self,
        owner: u64,
        position: u64,
        held: &mut Vec<Arc<StreamState>>,
    ) -> Result<Vec<Arc<EventCell>>> {
        let Some(order) = self.0.get_mut(&owner) else { return Err(unknown(owner)) };
        if !order.group.is_empty() {
            return Ok(order.group.clone());
        }
        if position <= order.done {
            return Ok(Vec::new());
        }
        if let Some((_, event)) = order.marks.iter().find(|(behind, _)| *behind >= position) {
            return Ok(vec![event.clone()]);
        }
        let Some(stream) = order.stream.upgrade() else { return Err(unknown(owner)) };
        let marked = stream.mark_at();
        held.push(stream);
        let (event, behind) = marked?;
        order.marks.push_back((behind, event.clone()));
        Ok(vec![event])
    }

    /// The events of all groups.
    pub(crate) fn group_events(&self) -> Vec<Arc<EventCell>> {
        self.0.values().flat_map(|order| order.group.iter().cloned()).collect()
    }

    /// The number of known owners.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the owners without blocks that cannot get any more: closed streams, and blocks of graphs that ended.
    pub(crate) fn forget_ended(&mut self, heap: &mut Heap) {
        self.0.retain(|&owner, order| order.stream.strong_count() > 0 || !heap.forget_owner(owner));
    }
}

/// Returns the number of operations issued to the stream, if all of them are done.
fn idle_position(stream: &StreamState) -> Result<Option<u64>> {
    // No capture begins meanwhile, which the query would invalidate.
    let marker = stream.lock_marker();
    let position = stream.issued();
    Ok(stream.is_idle_with(&marker)?.then_some(position))
}

/// Moves all blocks of a stream's lists to the heap.
pub(crate) fn drain_cache(
    entry: &RegisteredCache,
    orders: &mut Orders,
    returned: &mut Vec<super::backing::ReturnedBlock>,
) {
    let cache: &ThreadCache = &entry.cache;
    let mut state = cache.lock();
    let last = state.last.take();
    if state.lists.bytes > 0 || last.is_some() {
        orders.record_return(entry, last.as_ref());
        state.lists.drain(cache.id, returned);
    }
}

fn unknown(owner: u64) -> Error {
    Error::invalid("ordering memory", format!("stream {owner}, which left no event"), "a trim of the device")
}

#[cfg(test)]
mod tests {
    use super::{Heap, Orders};

    #[test]
    fn owners_that_have_ended_are_not_kept() {
        let (mut heap, mut orders) = (Heap::new(1 << 40, None), Orders::default());
        for owner in 1..1000 {
            orders.add_group(owner, Vec::new());
        }
        orders.forget_ended(&mut heap);
        assert_eq!(orders.len(), 0);
    }
}
