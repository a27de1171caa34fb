//! A slot: an object, and one atomic word that says who uses it.
//!
//! The word holds, from its low bits on, the pins (11 bits), the exclusive bit, the references (28 bits) and the generation
//! (24 bits). A slot is live while it has references. A pin is a thread that reads the object where it is; the exclusive bit
//! is a thread that changes it, as soon as no pin is left. A release that drops the last reference ends the slot for every
//! later use, and whoever uses it last empties it: the release itself, the last unpin, or the end of the exclusive use.
//!
//! # Invariants
//!
//! - Every change of a live slot is a compare-and-swap that saw references, or takes back what its thread added. A slot without
//!   references therefore only loses pins and the exclusive bit, so one thread alone sees it become unused. That thread owns the
//!   slot until it is on a free list, as does the thread that takes it from there, and both may use plain stores.
//! - No two objects have the same slot and generation, so a word that a compare-and-swap finds again is of the same object.
//! - Orderings are those of `Arc`. A filled slot is stored with `Release` and pinned with `Acquire`; each end of a use is a
//!   `Release`, and whoever takes the object alone, to change or to drop it, is behind an `Acquire` of the last end. Changes in
//!   between are read-modify-writes, which carry a `Release` on.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const PIN: u64 = 1;
const PINS: u64 = EXCLUSIVE - 1;
const EXCLUSIVE: u64 = 1 << 11;
const REFERENCE: u64 = 1 << 12;
const REFERENCES: u64 = GENERATION - REFERENCE;
const GENERATION: u64 = 1 << 40;

/// The most references of an object.
pub(super) const MAX_REFERENCES: u64 = REFERENCES / REFERENCE;
/// Generations end before this number, and begin with 1.
pub(super) const GENERATIONS: u32 = 1 << 24;

/// The outcome of an attempt to use a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The slot is the caller's to use, until it says that the use is over.
    Taken,
    /// Another thread changes the object, or too many use it.
    Busy,
    /// The object of this generation was released.
    Stale,
}

/// The outcome of a retain or a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// The count has changed, and the object is there or ends with its last use.
    Done,
    /// The caller dropped the last reference of an unused object, and empties the slot.
    Unused,
    /// The object has as many references as a slot counts.
    Full,
    /// The object of this generation was released.
    Stale,
}

pub(super) struct Slot<T> {
    state: AtomicU64,
    /// The free slot after this one, plus one, or 0.
    pub(super) next: AtomicU32,
    /// Initialized while there are references, pins or the exclusive bit.
    object: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: pins give `&T` to several threads, the exclusive bit `&mut T` to one, and any thread may drop the object.
unsafe impl<T: Send + Sync> Sync for Slot<T> {}

/// Returns whether a state is of a live object of this generation.
#[inline]
fn is_live(state: u64, generation: u32) -> bool {
    state / GENERATION == u64::from(generation) && state & REFERENCES != 0
}

/// Returns whether nobody refers to the object nor uses it.
#[inline]
fn is_unused(state: u64) -> bool {
    state & (REFERENCES | EXCLUSIVE | PINS) == 0
}

impl<T> Slot<T> {
    /// Returns an empty slot of the first generation.
    pub(super) fn new() -> Slot<T> {
        Slot {
            state: AtomicU64::new(GENERATION),
            next: AtomicU32::new(0),
            object: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Puts an object with one reference into the slot and returns its generation.
    ///
    /// # Safety
    ///
    /// The slot is empty, and the caller took it from where no other thread could.
    #[inline]
    pub(super) unsafe fn fill(&self, object: T) -> u32 {
        // SAFETY: nobody else touches an empty slot's object.
        unsafe { (*self.object.get()).write(object) };
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state + REFERENCE, Ordering::Release);
        (state / GENERATION) as u32
    }

    /// Drops the object and returns whether the slot has another generation.
    ///
    /// # Safety
    ///
    /// A call of [`unpin`](Self::unpin), [`end_exclusive`](Self::end_exclusive), [`release`](Self::release) or
    /// [`abandon`](Self::abandon) reported to the caller that the slot is unused, and the caller empties it once.
    #[inline]
    pub(super) unsafe fn empty(&self) -> bool {
        // SAFETY: the object was there until now, and the caller alone has the slot.
        unsafe { (*self.object.get()).assume_init_drop() };
        let state = self.state.load(Ordering::Relaxed);
        let is_usable = state / GENERATION + 1 < u64::from(GENERATIONS);
        if is_usable {
            self.state.store(state + GENERATION, Ordering::Relaxed);
        }
        is_usable
    }

    /// Pins the object of this generation.
    #[inline]
    pub(super) fn pin(&self, generation: u32) -> Attempt {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if !is_live(state, generation) {
                return Attempt::Stale;
            }
            if state & EXCLUSIVE != 0 || state & PINS == PINS {
                return Attempt::Busy;
            }
            match self.state.compare_exchange_weak(state, state + PIN, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Attempt::Taken,
                Err(found) => state = found,
            }
        }
    }

    /// Returns the object.
    ///
    /// # Safety
    ///
    /// The caller has pinned the slot, and ends the pin after `'a`.
    #[inline]
    pub(super) unsafe fn object(&self) -> &T {
        // SAFETY: a pinned slot has an object, which nobody changes.
        unsafe { (*self.object.get()).assume_init_ref() }
    }

    /// Ends a pin. Returns whether the slot is unused now and the caller empties it.
    ///
    /// # Safety
    ///
    /// The pin is the caller's.
    #[inline]
    pub(super) unsafe fn unpin(&self) -> bool {
        self.end(PIN)
    }

    /// Begins an exclusive use of the object of this generation: no pin begins from now on. The caller waits until
    /// [`is_pinned`](Self::is_pinned) is false.
    pub(super) fn begin_exclusive(&self, generation: u32) -> Attempt {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if !is_live(state, generation) {
                return Attempt::Stale;
            }
            if state & EXCLUSIVE != 0 {
                return Attempt::Busy;
            }
            let next = state | EXCLUSIVE;
            match self.state.compare_exchange_weak(state, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Attempt::Taken,
                Err(found) => state = found,
            }
        }
    }

    /// Returns whether there are pins.
    pub(super) fn is_pinned(&self) -> bool {
        self.state.load(Ordering::Acquire) & PINS != 0
    }

    /// Returns the object, to be changed.
    ///
    /// # Safety
    ///
    /// The caller has begun the exclusive use, saw that no pin was left, has no other reference, and ends the use after `'a`.
    #[allow(clippy::mut_from_ref, reason = "the exclusive bit is the right to it")]
    pub(super) unsafe fn object_mut(&self) -> &mut T {
        // SAFETY: nobody else uses the object.
        unsafe { (*self.object.get()).assume_init_mut() }
    }

    /// Ends the exclusive use. Returns whether the slot is unused now and the caller empties it.
    ///
    /// # Safety
    ///
    /// The exclusive use is the caller's.
    pub(super) unsafe fn end_exclusive(&self) -> bool {
        self.end(EXCLUSIVE)
    }

    #[inline]
    fn end(&self, share: u64) -> bool {
        if !is_unused(self.state.fetch_sub(share, Ordering::Release) - share) {
            return false;
        }
        // The ends of all other uses come before what the caller does. A load and not a fence, which ThreadSanitizer does not see.
        self.state.load(Ordering::Acquire);
        true
    }

    /// Adds a reference.
    pub(super) fn retain(&self, generation: u32) -> Counted {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if !is_live(state, generation) {
                return Counted::Stale;
            }
            if state & REFERENCES == REFERENCES {
                return Counted::Full;
            }
            let next = state + REFERENCE;
            match self.state.compare_exchange_weak(state, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Counted::Done,
                Err(found) => state = found,
            }
        }
    }

    /// Drops a reference.
    #[inline]
    pub(super) fn release(&self, generation: u32) -> Counted {
        let next = |state: u64| is_live(state, generation).then(|| state - REFERENCE);
        self.drop_references(next)
    }

    /// Drops all references.
    pub(super) fn abandon(&self) -> Counted {
        self.drop_references(|state| (state & REFERENCES != 0).then_some(state & !REFERENCES))
    }

    #[inline]
    fn drop_references(&self, next: impl Fn(u64) -> Option<u64>) -> Counted {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let Some(next) = next(state) else { return Counted::Stale };
            match self.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if is_unused(next) => return Counted::Unused,
                Ok(_) => return Counted::Done,
                Err(found) => state = found,
            }
        }
    }

    /// Sets the generation of an empty slot.
    #[cfg(test)]
    pub(super) fn set_generation(&self, generation: u32) {
        self.state.store(u64::from(generation) * GENERATION, Ordering::Relaxed);
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        if !is_unused(*self.state.get_mut()) {
            // SAFETY: nobody else has the slot, and it has an object.
            unsafe { self.object.get_mut().assume_init_drop() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_emptied_by_its_last_use() {
        let slot = Slot::new();
        // SAFETY: the slot is empty, each end below is of a use above it, and each slot is emptied once.
        unsafe {
            assert_eq!(slot.fill(7), 1);
            assert_eq!(
                (slot.pin(1), slot.pin(1), slot.pin(2)),
                (Attempt::Taken, Attempt::Taken, Attempt::Stale)
            );
            assert_eq!((slot.retain(1), slot.release(1)), (Counted::Done, Counted::Done));
            assert_eq!((slot.release(1), slot.release(1)), (Counted::Done, Counted::Stale));
            assert_eq!((slot.pin(1), slot.retain(1)), (Attempt::Stale, Counted::Stale));
            assert_eq!((*slot.object(), slot.unpin(), slot.unpin()), (7, false, true));
            assert!(slot.empty());

            assert_eq!(slot.fill(8), 2);
            assert_eq!((slot.pin(2), slot.begin_exclusive(2)), (Attempt::Taken, Attempt::Taken));
            assert_eq!((slot.pin(2), slot.begin_exclusive(2)), (Attempt::Busy, Attempt::Busy));
            assert!(slot.is_pinned() && !slot.unpin() && !slot.is_pinned());
            assert_eq!(slot.release(2), Counted::Done);
            assert!(slot.end_exclusive() && slot.empty());

            slot.fill(9);
            assert_eq!((slot.retain(3), slot.abandon()), (Counted::Done, Counted::Unused));
            assert!(slot.empty());
        }
    }

    #[test]
    fn counts_of_a_slot_do_not_overflow() {
        let slot = Slot::new();
        // SAFETY: the slot is empty.
        unsafe { slot.fill(7) };
        for _ in 0..PINS {
            assert_eq!(slot.pin(1), Attempt::Taken);
        }
        assert_eq!(slot.pin(1), Attempt::Busy);
        slot.state.store(GENERATION | REFERENCES, Ordering::Relaxed);
        assert_eq!(
            (slot.retain(1), slot.release(1), slot.retain(1)),
            (Counted::Full, Counted::Done, Counted::Done)
        );
    }
}
