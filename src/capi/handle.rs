//! Handles: 64-bit numbers that stand for objects, with a reference count.
//!
//! A handle is the kind of its object (8 bits), a generation (24 bits) and a slot (32 bits). Each kind has a `Table` of
//! slots, which grows and never moves. A release that drops the last reference empties the slot and advances its generation,
//! so a handle kept too long is refused and never reaches the object that took its slot. A slot whose generations are used up
//! is not used again. 0 is no handle.

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
        Kind::ALL.into_iter().find(|kind| *kind as u64 == handle >> 56)
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
    free: Mutex<Free>,
}

type Chunk<T> = Box<[Mutex<Slot<T>>]>;

struct Free {
    /// Slots that were emptied, the latest last.
    slots: Vec<u32>,
    /// The first slot that was never used.
    next: u32,
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
            free: Mutex::new(Free { slots: Vec::new(), next: 0 }),
        }
    }

    /// Enters an object with one reference and returns its handle.
    pub(super) fn insert(&self, object: T) -> Result<u64> {
        let index = {
            let mut free = lock(&self.free);
            match free.slots.pop() {
                Some(index) => index,
                None => {
                    let index = free.next;
                    free.next = index.checked_add(1).ok_or_else(|| self.full())?;
                    index
                }
            }
        };
        let (chunk, offset) = place(index);
        let chunk_slots = self.chunks.get(chunk).ok_or_else(|| self.full())?;
        let chunk_slots = chunk_slots.get_or_init(|| {
            let slot = || Mutex::new(Slot { generation: 1, references: 0, object: None });
            (0..FIRST_CHUNK << chunk).map(|_| slot()).collect()
        });
        let slot = chunk_slots.get(offset).ok_or_else(|| self.full())?;
        let mut slot = lock(slot);
        slot.references = 1;
        slot.object = Some(object);
        Ok((T::KIND as u64) << 56 | u64::from(slot.generation) << 32 | u64::from(index))
    }

    /// Returns a reference to the object of a handle. `name` is the argument's name, for the message.
    pub(super) fn get(&self, handle: u64, name: &str) -> Result<T> {
        let slot = self.slot(handle, name)?;
        slot.object.clone().ok_or_else(|| stale(handle, name, T::KIND))
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
            lock(&self.free).slots.push(handle as u32);
        }
        Ok(object)
    }

    /// Takes every object out, for the shutdown.
    pub(super) fn clear(&self) -> Vec<T> {
        let mut objects = Vec::new();
        for slot in self.chunks.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter()) {
            let mut slot = lock(slot);
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
        let (chunk, offset) = place(handle as u32);
        let slot = self.chunks.get(chunk).and_then(OnceLock::get).and_then(|chunk| chunk.get(offset));
        let slot = lock(slot.ok_or_else(|| foreign(handle, name, T::KIND))?);
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
    fn a_slot_without_generations_is_not_used_again() {
        let table: Table<Number> = Table::new();
        let handle = table.insert(Number(1)).unwrap();
        lock(&table.chunks[0].get().unwrap()[0]).generation = GENERATIONS - 1;
        let last = handle & !(0xff_ffff << 32) | u64::from(GENERATIONS - 1) << 32;
        assert_eq!(table.release(last, "x").unwrap(), Some(Number(1)));
        assert_eq!(table.insert(Number(2)).unwrap() as u32, 1);
    }
}
