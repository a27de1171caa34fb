//! Handles: 64-bit numbers that stand for objects, with a reference count.
//!
//! A handle is the kind of its object (8 bits), a generation (24 bits) and a slot (32 bits). Each kind has a `Table` of
//! slots, which grows and never moves. A release that drops the last reference empties the slot and advances its generation,
//! so a handle kept too long is refused and never reaches the object that took its slot. A slot whose generations are used up
//! is not used again. 0 is no handle.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::error::{Failure, Result};
use super::status;

/// Slots of the first chunk; each further chunk is twice as large.
const FIRST_CHUNK: usize = 64;
const CHUNKS: usize = 26;
const GENERATIONS: u32 = 1 << 24;

/// The kinds of objects, as they stand in handles and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Stream = 1,
    Event = 2,
    Buffer = 3,
    PinnedBuffer = 4,
    Module = 5,
    Function = 6,
    Program = 7,
    Graph = 8,
    ExecutableGraph = 9,
    Tensor = 10,
    Expression = 11,
    Fused = 12,
    Generator = 13,
    Epilogue = 14,
    Network = 15,
    Simulation = 16,
    Variable = 17,
    Model = 18,
    Optimizer = 19,
    Classifier = 20,
    Tokenizer = 21,
    Trainer = 22,
    Evolver = 23,
}

impl Kind {
    const ALL: [Kind; 23] = [
        Kind::Stream,
        Kind::Event,
        Kind::Buffer,
        Kind::PinnedBuffer,
        Kind::Module,
        Kind::Function,
        Kind::Program,
        Kind::Graph,
        Kind::ExecutableGraph,
        Kind::Tensor,
        Kind::Expression,
        Kind::Fused,
        Kind::Generator,
        Kind::Epilogue,
        Kind::Network,
        Kind::Simulation,
        Kind::Variable,
        Kind::Model,
        Kind::Optimizer,
        Kind::Classifier,
        Kind::Tokenizer,
        Kind::Trainer,
        Kind::Evolver,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Stream => "stream",
            Kind::Event => "event",
            Kind::Buffer => "buffer",
            Kind::PinnedBuffer => "pinned buffer",
            Kind::Module => "module",
            Kind::Function => "function",
            Kind::Program => "program",
            Kind::Graph => "graph",
            Kind::ExecutableGraph => "executable graph",
            Kind::Tensor => "tensor",
            Kind::Expression => "expression",
            Kind::Fused => "fused function",
            Kind::Generator => "generator",
            Kind::Epilogue => "epilogue",
            Kind::Network => "network",
            Kind::Simulation => "simulation",
            Kind::Variable => "variable",
            Kind::Model => "model",
            Kind::Optimizer => "optimizer",
            Kind::Classifier => "classifier",
            Kind::Tokenizer => "tokenizer",
            Kind::Trainer => "trainer",
            Kind::Evolver => "evolver",
        }
    }

    /// Returns the kind in a handle.
    pub(super) fn of(handle: u64) -> Option<Kind> {
        // The codes begin with 1, in the order of the list.
        Kind::ALL.get(((handle >> 56) as usize).checked_sub(1)?).copied()
    }
}

/// An object that handles stand for. A clone is another reference to the same object.
pub(super) trait Object: Clone + Send + Sync + 'static {
    /// The kind of the object.
    const KIND: Kind;

    /// Returns the table of all objects of this kind.
    fn table() -> &'static Table<Self>;
}

/// Implements [`Object`] for a type with a table of its own.
macro_rules! object {
    ($type:ty, $kind:ident) => {
        impl $crate::capi::handle::Object for $type {
            const KIND: $crate::capi::handle::Kind = $crate::capi::handle::Kind::$kind;

            fn table() -> &'static $crate::capi::handle::Table<$type> {
                static TABLE: $crate::capi::handle::Table<$type> = $crate::capi::handle::Table::new();
                &TABLE
            }
        }
    };
}
pub(super) use object;

/// The objects of one kind.
pub(super) struct Table<T> {
    chunks: [OnceLock<Chunk<T>>; CHUNKS],
    /// The slot that was emptied last, plus one, or 0: the head of a list through `Entry::next`. The upper 32 bits count the
    /// changes, so that a thread which was held up does not take an old head for the present one.
    free: AtomicU64,
    /// The number of slots that were ever used.
    used: AtomicU32,
}

type Chunk<T> = Box<[Entry<T>]>;

struct Entry<T> {
    /// The free slot after this one, plus one, or 0.
    next: AtomicU32,
    slot: Mutex<Slot<T>>,
}

struct Slot<T> {
    generation: u32,
    references: u64,
    object: Option<T>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Object> Table<T> {
    /// Returns an empty table.
    pub(super) const fn new() -> Table<T> {
        Table {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: AtomicU64::new(0),
            used: AtomicU32::new(0),
        }
    }

    /// Enters an object with one reference and returns its handle.
    pub(super) fn insert(&self, object: T) -> Result<u64> {
        let index = self.take_slot()?;
        let entry = self.entry(index).ok_or_else(|| self.full())?;
        let mut slot = lock(&entry.slot);
        slot.references = 1;
        slot.object = Some(object);
        Ok((T::KIND as u64) << 56 | u64::from(slot.generation) << 32 | u64::from(index))
    }

    /// Takes a slot that is empty.
    fn take_slot(&self) -> Result<u32> {
        let mut head = self.free.load(Ordering::Acquire);
        while let Some(index) = (head as u32).checked_sub(1) {
            let entry = self.entry(index).ok_or_else(|| self.full())?;
            let next = successor(head, entry.next.load(Ordering::Relaxed));
            match self.free.compare_exchange_weak(head, next, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Ok(index),
                Err(found) => head = found,
            }
        }
        let next = |used: u32| used.checked_add(1);
        let index =
            self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_err(|_| self.full())?;
        let chunk = self.chunks.get(place(index).0).ok_or_else(|| self.full())?;
        chunk.get_or_init(|| {
            let slot = || Mutex::new(Slot { generation: 1, references: 0, object: None });
            let entry = || Entry { next: AtomicU32::new(0), slot: slot() };
            (0..FIRST_CHUNK << place(index).0).map(|_| entry()).collect()
        });
        Ok(index)
    }

    /// Gives an empty slot back.
    fn give_slot(&self, index: u32) {
        let Some(entry) = self.entry(index) else { return };
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            entry.next.store(head as u32, Ordering::Relaxed);
            let next = successor(head, index + 1);
            match self.free.compare_exchange_weak(head, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => head = found,
            }
        }
    }

    fn entry(&self, index: u32) -> Option<&Entry<T>> {
        let (chunk, offset) = place(index);
        self.chunks.get(chunk)?.get()?.get(offset)
    }

    /// Returns a reference to the object of a handle. `name` is the argument's name, for the message.
    pub(super) fn get(&self, handle: u64, name: &str) -> Result<T> {
        self.with(handle, name, T::clone)
    }

    /// Runs `read` on the object itself, which is short: other threads that use the handle wait meanwhile.
    pub(super) fn with<R>(&self, handle: u64, name: &str, read: impl FnOnce(&T) -> R) -> Result<R> {
        let slot = self.slot(handle, name)?;
        let object = slot.object.as_ref().ok_or_else(|| stale(handle, name, T::KIND))?;
        Ok(read(object))
    }

    /// Runs `work` on the object itself. Other threads that use the handle wait meanwhile, so `work` may replace it.
    pub(super) fn with_mut<R>(
        &self,
        handle: u64,
        name: &str,
        work: impl FnOnce(&mut T) -> Result<R>,
    ) -> Result<R> {
        let mut slot = self.slot(handle, name)?;
        let object = slot.object.as_mut().ok_or_else(|| stale(handle, name, T::KIND))?;
        work(object)
    }

    /// Adds a reference.
    pub(super) fn retain(&self, handle: u64, name: &str) -> Result<()> {
        let mut slot = self.slot(handle, name)?;
        slot.references = slot.references.saturating_add(1);
        Ok(())
    }

    /// Drops a reference. Returns the object with the last one.
    pub(super) fn release(&self, handle: u64, name: &str) -> Result<Option<T>> {
        let mut slot = self.slot(handle, name)?;
        slot.references = slot.references.saturating_sub(1);
        if slot.references > 0 {
            return Ok(None);
        }
        let object = slot.object.take();
        slot.generation += 1;
        let usable = slot.generation < GENERATIONS;
        drop(slot);
        if usable {
            self.give_slot(handle as u32);
        }
        Ok(object)
    }

    /// Takes every object out, for the shutdown.
    pub(super) fn clear(&self) -> Vec<T> {
        let mut objects = Vec::new();
        for entry in self.chunks.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter()) {
            let mut slot = lock(&entry.slot);
            if let Some(object) = slot.object.take() {
                slot.generation = (slot.generation + 1).min(GENERATIONS);
                objects.push(object);
            }
        }
        objects
    }

    fn slot(&self, handle: u64, name: &str) -> Result<MutexGuard<'_, Slot<T>>> {
        if handle >> 56 != T::KIND as u64 {
            return Err(foreign(handle, name, T::KIND));
        }
        let entry = self.entry(handle as u32).ok_or_else(|| foreign(handle, name, T::KIND))?;
        let slot = lock(&entry.slot);
        let generation = (handle >> 32) as u32 & (GENERATIONS - 1);
        if slot.generation != generation || slot.object.is_none() {
            return Err(stale(handle, name, T::KIND));
        }
        Ok(slot)
    }

    fn full(&self) -> Failure {
        let message = format!("all handles of the kind {} are in use", T::KIND.name());
        Failure { status: status::SV_ERROR_OUT_OF_MEMORY, message }
    }
}

/// Returns the head of the free list after `head`, with this first slot, plus one.
fn successor(head: u64, first: u32) -> u64 {
    (head >> 32).wrapping_add(1) << 32 | u64::from(first)
}

/// Returns the chunk and the offset in it of a slot.
fn place(index: u32) -> (usize, usize) {
    let position = index as usize + FIRST_CHUNK;
    let chunk = (position.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, position - (FIRST_CHUNK << chunk))
}

fn invalid(name: &str, found: String, wanted: Kind) -> Failure {
    let message = format!("{name}: found {found}; wanted the handle of a live {}", wanted.name());
    Failure { status: status::SV_ERROR_INVALID_HANDLE, message }
}

fn stale(handle: u64, name: &str, wanted: Kind) -> Failure {
    invalid(name, format!("{handle:#x}, which was released"), wanted)
}

fn foreign(handle: u64, name: &str, wanted: Kind) -> Failure {
    let found = match Kind::of(handle) {
        _ if handle == 0 => "0".to_owned(),
        Some(kind) if kind != wanted => format!("{handle:#x}, the handle of a {}", kind.name()),
        _ => format!("{handle:#x}, which this library never gave"),
    };
    invalid(name, found, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Number(u32);
    object!(Number, Generator);

    fn message(result: Result<Number>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn a_released_handle_never_reaches_its_successor() {
        let table: Table<Number> = Table::new();
        let first = table.insert(Number(1)).unwrap();
        assert_eq!(table.get(first, "x").unwrap(), Number(1));
        table.retain(first, "x").unwrap();
        assert_eq!(table.release(first, "x").unwrap(), None);
        assert_eq!(table.release(first, "x").unwrap(), Some(Number(1)));
        let second = table.insert(Number(2)).unwrap();
        assert_eq!(second as u32, first as u32);
        assert!(message(table.get(first, "x")).contains("which was released"));
        assert!(table.release(first, "x").is_err() && table.retain(first, "x").is_err());
        assert_eq!(table.get(second, "x").unwrap(), Number(2));
    }

    #[test]
    fn handles_that_were_never_given_are_refused() {
        let table: Table<Number> = Table::new();
        assert!(message(table.get(0, "x")).starts_with("x: found 0; wanted the handle of a live generator"));
        assert!(message(table.get(1 << 56 | 1 << 32, "x")).contains("the handle of a stream"));
        assert!(message(table.get(u64::MAX, "x")).contains("never gave"));
        assert!(message(table.get(13 << 56 | 1 << 32 | 7, "x")).contains("never gave"));
        table.insert(Number(1)).unwrap();
        assert!(message(table.get(13 << 56 | 1 << 32 | 7, "x")).contains("released"));
    }

    #[test]
    fn a_table_grows_and_keeps_its_objects() {
        let table: Table<Number> = Table::new();
        let handles: Vec<u64> = (0..10_000).map(|number| table.insert(Number(number)).unwrap()).collect();
        for (number, handle) in handles.iter().enumerate() {
            assert_eq!(table.get(*handle, "x").unwrap(), Number(number as u32));
        }
        assert_eq!(table.clear().len(), 10_000);
        assert!(handles.iter().all(|handle| table.get(*handle, "x").is_err()));
    }

    #[test]
    fn threads_share_a_table_and_never_a_slot() {
        let table: Table<Number> = Table::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..2000 {
                        let numbers = [thread << 16 | round, thread << 16 | round | 1 << 15];
                        let handles = numbers.map(|number| table.insert(Number(number)).unwrap());
                        for (number, handle) in numbers.into_iter().zip(handles) {
                            assert_eq!(table.release(handle, "x").unwrap(), Some(Number(number)));
                        }
                    }
                });
            }
        });
        // No more slots were used than were live at a time.
        assert!(table.used.load(Ordering::Relaxed) <= 8);
    }

    #[test]
    fn codes_are_in_the_order_of_the_kinds() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, Kind::of((kind as u64) << 56 | 7)), (at + 1, Some(kind)));
        }
        assert_eq!((Kind::of(0), Kind::of(u64::MAX)), (None, None));
    }

    #[test]
    fn a_slot_without_generations_is_not_used_again() {
        let table: Table<Number> = Table::new();
        let handle = table.insert(Number(1)).unwrap();
        lock(&table.entry(0).unwrap().slot).generation = GENERATIONS - 1;
        let last = handle & !(0xff_ffff << 32) | u64::from(GENERATIONS - 1) << 32;
        assert_eq!(table.release(last, "x").unwrap(), Some(Number(1)));
        assert_eq!(table.insert(Number(2)).unwrap() as u32, 1);
    }
}
