//! How far the last uses of free memory are: events behind places in the orders of streams.
//!
//! A free block says of which stream and behind how many of its operations. An event is recorded only when somebody wants
//! to know, and is behind everything that the stream had been given by then; so one event answers for many blocks. A
//! closed stream leaves its last event. Blocks of graphs have a group of events instead of a stream.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use super::front::{Front, Registered};
use super::heap::Heap;
use crate::driver::context::gone;
use crate::driver::event::EventCell;
use crate::driver::stream::StreamState;
use crate::error::{Error, Result};

/// The place of blocks behind a group of events.
pub(crate) const OF_GROUP: u64 = 1;

/// What is known of one owner's order.
#[derive(Default)]
struct Order {
    stream: Weak<StreamState>,
    /// Events behind places, in order.
    marks: VecDeque<(u64, Arc<EventCell>)>,
    /// All of these instead.
    group: Vec<Arc<EventCell>>,
    done: u64,
}

/// The orders of everybody who has free blocks.
#[derive(Default)]
pub(crate) struct Orders(HashMap<u64, Order>);

/// Whether what the event is behind is over, which for another device's is so when that was reset; one that is only lost
/// never is.
fn is_complete(event: &EventCell, here: &'static crate::driver::device::DeviceState) -> Result<bool> {
    match event.has_let_go() {
        Err(error) if gone(&error) && !here.is_lost() => Ok(false),
        result => result,
    }
}

impl Orders {
    /// A stream's blocks come to the heap; where it is closed, so does its last event.
    pub(crate) fn note(&mut self, entry: &Registered, last: Option<&(Arc<EventCell>, u64)>) {
        let Registered { front, stream } = entry;
        let order = self.0.entry(front.id).or_default();
        if order.stream.strong_count() == 0 {
            order.stream = stream.clone();
        }
        if let Some((event, place)) = last {
            if order.marks.back().is_none_or(|(newest, _)| newest < place) && *place > order.done {
                order.marks.push_back((*place, event.clone()));
            }
        }
    }

    /// A new group of events, by the number of its owner.
    pub(crate) fn add_group(&mut self, owner: u64, events: Vec<Arc<EventCell>>) {
        self.0.insert(owner, Order { group: events, ..Order::default() });
    }

    /// Up to which place the owner's order is done. Streams that are used on the way go to `held`, to be dropped outside
    /// of locks.
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
            order.done = OF_GROUP;
        }
        if order.marks.is_empty() {
            if let Some(stream) = order.stream.upgrade() {
                if stream.issued() > order.done {
                    match idle_place(&stream)? {
                        Some(place) => order.done = place,
                        // For whoever asks later.
                        None => {
                            let (event, place) = stream.mark_placed()?;
                            order.marks.push_back((place, event));
                        }
                    }
                }
                held.push(stream);
            }
        }
        while let Some((place, event)) = order.marks.front() {
            if !is_complete(event, here)? {
                break;
            }
            order.done = order.done.max(*place);
            order.marks.pop_front();
        }
        Ok(order.done)
    }

    /// Everything of this owner up to this place is done: its device was idle since.
    pub(crate) fn settle(&mut self, owner: u64, place: u64) {
        // Also one that was forgotten meanwhile: a block may have come back after that.
        let order = self.0.entry(owner).or_default();
        if order.group.is_empty() {
            order.done = order.done.max(place);
        }
    }

    /// Whether there is, or can be, an event behind everything of this owner.
    pub(crate) fn can_wait(&self, owner: u64) -> bool {
        self.0.get(&owner).is_some_and(|order| {
            let can_wait = |event: &Arc<EventCell>| !event.device().is_lost();
            (!order.group.is_empty() && order.group.iter().all(can_wait))
                || !order.marks.is_empty()
                || order.stream.strong_count() > 0
        })
    }

    /// What must be waited for before a block free behind this place is used.
    pub(crate) fn events(
        &mut self,
        owner: u64,
        place: u64,
        held: &mut Vec<Arc<StreamState>>,
    ) -> Result<Vec<Arc<EventCell>>> {
        let Some(order) = self.0.get_mut(&owner) else { return Err(unknown(owner)) };
        if !order.group.is_empty() {
            return Ok(order.group.clone());
        }
        if place <= order.done {
            return Ok(Vec::new());
        }
        if let Some((_, event)) = order.marks.iter().find(|(behind, _)| *behind >= place) {
            return Ok(vec![event.clone()]);
        }
        let Some(stream) = order.stream.upgrade() else { return Err(unknown(owner)) };
        let marked = stream.mark_placed();
        held.push(stream);
        let (event, behind) = marked?;
        order.marks.push_back((behind, event.clone()));
        Ok(vec![event])
    }

    /// The events of all groups.
    pub(crate) fn group_events(&self) -> Vec<Arc<EventCell>> {
        self.0.values().flat_map(|order| order.group.iter().cloned()).collect()
    }

    /// How many owners are known.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the owners that nothing can be added to any more and that have no blocks: each closed stream and each block
    /// of a graph that ended was one.
    pub(crate) fn forget_ended(&mut self, heap: &mut Heap) {
        self.0.retain(|&owner, order| order.stream.strong_count() > 0 || !heap.forget_owner(owner));
    }
}

/// How many operations the stream was given, where all of them are done.
fn idle_place(stream: &StreamState) -> Result<Option<u64>> {
    // No capture begins meanwhile, which a question would spoil.
    let marker = stream.lock_marker();
    let place = stream.issued();
    Ok(stream.is_idle_with(&marker)?.then_some(place))
}

/// Takes everything out of a stream's lists, for the heap.
pub(crate) fn empty_front(
    entry: &Registered,
    orders: &mut Orders,
    returned: &mut Vec<super::backing::Returned>,
) {
    let front: &Front = &entry.front;
    let mut state = front.lock();
    let last = state.last.take();
    if state.lists.bytes > 0 || last.is_some() {
        orders.note(entry, last.as_ref());
        state.lists.drain(front.id, returned);
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
