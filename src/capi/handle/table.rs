//! [`Table`], the slots of one kind of objects, and the lists of those that are free.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::slot::{Attempt, Counted, GENERATIONS, MAX_REFERENCES, Slot};
use super::{Object, foreign, stale};
use crate::capi::error::{Failure, Result};
use crate::capi::{guard, status};

/// Slots of the first chunk; each further chunk is twice as large.
const FIRST_CHUNK: usize = 64;
const CHUNKS: usize = 26;
/// The most free slots of a kind that a thread has for itself.
const SPARES: usize = 8;

/// The objects of one kind.
pub(in crate::capi) struct Table<T> {
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    /// The slot that was emptied last, plus one, or 0: the head of a list through `Slot::next`. The upper 32 bits count the
    /// changes, so that a thread which was held up does not take an old head for the present one.
    free: AtomicU64,
    /// The number of slots that were ever used.
    used: AtomicU32,
}

/// A use of an object where it is. Threads that change the object wait for its end.
struct Pin<'a, T: Object> {
    table: &'a Table<T>,
    slot: &'a Slot<T>,
    index: u32,
}

impl<T: Object> Deref for Pin<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the slot is pinned until the drop.
        unsafe { self.slot.object() }
    }
}

impl<T: Object> Drop for Pin<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the pin is this one's, and an unused slot is emptied here alone.
        unsafe {
            if self.slot.unpin() {
                self.table.empty(self.slot, self.index);
            }
        }
    }
}

/// Pins of several objects, some of which have begun. It stays where it is made: a move would read back its pointers with a
/// stall.
struct Pins<'a, T: Object, const COUNT: usize> {
    table: &'a Table<T>,
    handles: &'a [u64; COUNT],
    slots: [Option<&'a Slot<T>>; COUNT],
}

impl<T: Object, const COUNT: usize> Drop for Pins<'_, T, COUNT> {
    #[inline]
    fn drop(&mut self) {
        for (slot, handle) in self.slots.iter().zip(self.handles) {
            // SAFETY: the pin is this one's, and an unused slot is emptied here alone.
            unsafe {
                if let Some(slot) = slot
                    && slot.unpin()
                {
                    self.table.empty(slot, *handle as u32);
                }
            }
        }
    }
}

/// An exclusive use of an object that has begun; the holder waits for pins before it touches the object.
struct Exclusive<'a, T: Object> {
    table: &'a Table<T>,
    slot: &'a Slot<T>,
    index: u32,
}

impl<T: Object> Drop for Exclusive<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the exclusive use is this one's, and an unused slot is emptied here alone.
        unsafe {
            if self.slot.end_exclusive() {
                self.table.empty(self.slot, self.index);
            }
        }
    }
}

/// Free slots of the table of a kind that one thread has for itself, so that an object made and released again takes no
/// atomic operation of the table's list. They go to that list when the thread ends.
pub(in crate::capi) struct Spares<T: Object> {
    count: Cell<usize>,
    slots: [Cell<u32>; SPARES],
    /// The slots are those of `T::table()`.
    kind: std::marker::PhantomData<fn(T)>,
}

impl<T: Object> Spares<T> {
    pub(in crate::capi) const fn new() -> Spares<T> {
        Spares {
            count: Cell::new(0),
            slots: [const { Cell::new(0) }; SPARES],
            kind: std::marker::PhantomData,
        }
    }

    #[inline]
    fn take(&self) -> Option<u32> {
        let last = self.count.get().checked_sub(1)?;
        let index = self.slots.get(last)?.get();
        self.count.set(last);
        Some(index)
    }

    /// Keeps a slot, unless there are enough.
    #[inline]
    fn keep(&self, index: u32) -> bool {
        let count = self.count.get();
        let Some(slot) = self.slots.get(count) else { return false };
        slot.set(index);
        self.count.set(count + 1);
        true
    }
}

impl<T: Object> Drop for Spares<T> {
    fn drop(&mut self) {
        while let Some(index) = self.take() {
            T::table().list(index);
        }
    }
}

/// A wait for other threads: for a moment by spinning, then by giving up the processor, then by short sleeps.
#[derive(Default)]
struct Wait(u32);

impl Wait {
    /// Waits a little.
    ///
    /// # Errors
    ///
    /// For a thread that is in a callback of a call which uses an object: it may wait for itself. In a forked child, after a
    /// second, because the other thread may be one of the parent's.
    #[cold]
    fn once(&mut self, name: &str) -> Result<()> {
        const SPINS: u32 = 32;
        const YIELDS: u32 = 64;
        const MOMENT: Duration = Duration::from_micros(100);
        const MOMENTS_IN_A_CHILD: u32 = 10_000;
        if guard::is_in_callback_of_a_use() {
            let found = "an object that is in use, in a callback of a call that uses objects";
            return Err(Failure::argument(name, found, "an object that nobody uses"));
        }
        match self.0 {
            0..SPINS => (0..16).for_each(|_| std::hint::spin_loop()),
            SPINS..YIELDS => std::thread::yield_now(),
            _ => std::thread::sleep(MOMENT),
        }
        self.0 = self.0.saturating_add(1);
        if self.0 > YIELDS + MOMENTS_IN_A_CHILD {
            crate::driver::check_not_forked()?;
        }
        Ok(())
    }
}

impl<T: Object> Table<T> {
    /// Returns an empty table.
    pub(in crate::capi) const fn new() -> Table<T> {
        Table {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: AtomicU64::new(0),
            used: AtomicU32::new(0),
        }
    }

    /// Enters an object with one reference and returns its handle.
    #[inline]
    pub(in crate::capi) fn insert(&self, object: T) -> Result<u64> {
        self.try_insert(object).map_or_else(|| Err(self.full()), |handle| Ok(handle.get()))
    }

    /// As [`insert`](Self::insert); none is the failure [`full`](Self::full). The result is in a register: a `Result` is in memory, and is read back with a stall.
    pub(in crate::capi) fn try_insert(&self, object: T) -> Option<NonZeroU64> {
        let index = self.take_slot()?;
        let slot = self.at(index)?;
        // SAFETY: a free slot is empty, and it is on no list now.
        let generation = unsafe { slot.fill(object) };
        NonZeroU64::new((T::KIND as u64) << 56 | u64::from(generation) << 32 | u64::from(index))
    }

    /// Returns the failure of a table without a free slot.
    #[cold]
    pub(in crate::capi) fn full(&self) -> Failure {
        let message = format!("all handles of the kind {} are in use", T::KIND.name());
        Failure { status: status::SV_ERROR_OUT_OF_MEMORY, message }
    }

    /// Returns a reference to the object of a handle. `name` is the argument's name, for the message.
    pub(in crate::capi) fn get(&self, handle: u64, name: &str) -> Result<T> {
        self.with(handle, name, T::clone)
    }

    /// Runs `read` on the object itself, which is short: threads that change the object wait meanwhile.
    #[inline]
    pub(in crate::capi) fn with<R>(&self, handle: u64, name: &str, read: impl FnOnce(&T) -> R) -> Result<R> {
        let (slot, generation) = self.find(handle).ok_or_else(|| foreign(handle, name, T::KIND))?;
        let mut wait = Wait::default();
        loop {
            match slot.pin(generation) {
                Attempt::Taken => return Ok(read(&Pin { table: self, slot, index: handle as u32 })),
                Attempt::Busy => wait.once(name)?,
                Attempt::Stale => return Err(stale(handle, name, T::KIND)),
            }
        }
    }

    /// Runs `work` on the objects of handles where they are. Returns none without a call if one is not there or the caller would
    /// wait for it: a caller with several pins therefore waits for nobody. Work that may call back is behind [`guard::in_use`].
    #[inline]
    pub(in crate::capi) fn with_pins<const COUNT: usize, R>(
        &self,
        handles: &[u64; COUNT],
        work: impl FnOnce(&[Option<&T>; COUNT]) -> R,
    ) -> Option<R> {
        let mut pins = Pins { table: self, handles, slots: [None; COUNT] };
        for (pin, handle) in pins.slots.iter_mut().zip(handles) {
            let (slot, generation) = self.find(*handle)?;
            if slot.pin(generation) != Attempt::Taken {
                return None;
            }
            *pin = Some(slot);
        }
        // SAFETY: the slots are pinned until `pins` ends, which is after `work`.
        Some(work(&pins.slots.map(|slot| slot.map(|slot| unsafe { slot.object() }))))
    }

    /// Runs `work` on the object itself. Other threads that use the handle wait meanwhile, so `work` may replace it. A caller
    /// that is in the `work` of other handles took them in one order with all others.
    pub(in crate::capi) fn with_mut<R>(
        &self,
        handle: u64,
        name: &str,
        work: impl FnOnce(&mut T) -> Result<R>,
    ) -> Result<R> {
        let (slot, generation) = self.find(handle).ok_or_else(|| foreign(handle, name, T::KIND))?;
        let mut wait = Wait::default();
        let exclusive = loop {
            match slot.begin_exclusive(generation) {
                Attempt::Taken => break Exclusive { table: self, slot, index: handle as u32 },
                Attempt::Busy => wait.once(name)?,
                Attempt::Stale => return Err(stale(handle, name, T::KIND)),
            }
        };
        while exclusive.slot.is_pinned() {
            wait.once(name)?;
        }
        // SAFETY: no pin is left, and the reference ends before the use.
        guard::in_use(|| work(unsafe { exclusive.slot.object_mut() }))
    }

    /// Adds a reference.
    pub(in crate::capi) fn retain(&self, handle: u64, name: &str) -> Result<()> {
        let (slot, generation) = self.find(handle).ok_or_else(|| foreign(handle, name, T::KIND))?;
        match slot.retain(generation) {
            Counted::Done | Counted::Unused => Ok(()),
            Counted::Full => {
                let found = format!("{handle:#x}, of which there are {MAX_REFERENCES} references");
                Err(Failure::argument(name, found, "an object with fewer references"))
            }
            Counted::Stale => Err(stale(handle, name, T::KIND)),
        }
    }

    /// Drops a reference. The object ends with the last one, or with the last use of another thread.
    #[inline]
    pub(in crate::capi) fn release(&self, handle: u64, name: &str) -> Result<()> {
        let (slot, generation) = self.find(handle).ok_or_else(|| foreign(handle, name, T::KIND))?;
        match slot.release(generation) {
            Counted::Done | Counted::Full => {}
            // SAFETY: the slot is unused, and emptied here alone.
            Counted::Unused => unsafe { self.empty(slot, handle as u32) },
            Counted::Stale => return Err(stale(handle, name, T::KIND)),
        }
        Ok(())
    }

    /// Drops all references to every object, for the shutdown. Returns the number of objects.
    pub(in crate::capi) fn clear(&self) -> usize {
        let slots = self.chunks.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter());
        let mut count = 0;
        for (index, slot) in (0u32..).zip(slots) {
            match slot.abandon() {
                Counted::Stale => continue,
                // SAFETY: the slot is unused, and emptied here alone.
                Counted::Unused => unsafe { self.empty(slot, index) },
                Counted::Done | Counted::Full => {}
            }
            count += 1;
        }
        count
    }

    /// Drops the object of an unused slot and gives the slot back.
    ///
    /// # Safety
    ///
    /// As [`Slot::empty`].
    #[inline]
    unsafe fn empty(&self, slot: &Slot<T>, index: u32) {
        let is_usable = slot.empty();
        let is_kept =
            || self.is_of_kind() && T::spares().try_with(|spares| spares.keep(index)).unwrap_or(false);
        if is_usable && !is_kept() {
            self.list(index);
        }
    }

    /// Takes a slot that is empty.
    #[inline]
    fn take_slot(&self) -> Option<u32> {
        let spare = match self.is_of_kind() {
            true => T::spares().try_with(Spares::take).unwrap_or(None),
            false => None,
        };
        spare.or_else(|| self.take_listed())
    }

    /// Takes a slot of the free list, or a new one.
    fn take_listed(&self) -> Option<u32> {
        let mut head = self.free.load(Ordering::Acquire);
        while let Some(index) = (head as u32).checked_sub(1) {
            let slot = self.at(index)?;
            let next = successor(head, slot.next.load(Ordering::Relaxed));
            match self.free.compare_exchange_weak(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(index),
                Err(found) => head = found,
            }
        }
        let next = |used: u32| used.checked_add(1);
        let index = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        let (chunk, _) = chunk_and_offset(index);
        let slots = || (0..FIRST_CHUNK << chunk).map(|_| Slot::new()).collect();
        self.chunks.get(chunk)?.get_or_init(slots);
        Some(index)
    }

    /// Puts an empty slot on the free list.
    fn list(&self, index: u32) {
        let Some(slot) = self.at(index) else { return };
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            slot.next.store(head as u32, Ordering::Relaxed);
            let next = successor(head, index + 1);
            match self.free.compare_exchange_weak(head, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => head = found,
            }
        }
    }

    /// Returns whether this is the table of all objects of its kind, of which threads have spare slots.
    #[inline]
    fn is_of_kind(&self) -> bool {
        std::ptr::eq(self, T::table())
    }

    #[inline]
    fn at(&self, index: u32) -> Option<&Slot<T>> {
        let (chunk, offset) = chunk_and_offset(index);
        self.chunks.get(chunk)?.get()?.get(offset)
    }

    /// Returns the slot and the generation of a handle.
    #[inline]
    fn find(&self, handle: u64) -> Option<(&Slot<T>, u32)> {
        if handle >> 56 != T::KIND as u64 {
            return None;
        }
        Some((self.at(handle as u32)?, (handle >> 32) as u32 & (GENERATIONS - 1)))
    }
}

/// Returns the head of the free list after `head`, with this first slot, plus one.
fn successor(head: u64, first: u32) -> u64 {
    (head >> 32).wrapping_add(1) << 32 | u64::from(first)
}

/// Returns the chunk and the offset in it of a slot.
#[inline]
fn chunk_and_offset(index: u32) -> (usize, usize) {
    let position = index as usize + FIRST_CHUNK;
    let chunk = (position.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, position - (FIRST_CHUNK << chunk))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
