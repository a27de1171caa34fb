//! The memory of interpreted kernels: global regions, and the shared memory of a block.

use std::ops::Range;

/// The memory that a kernel may access: regions with simulated addresses.
#[derive(Default)]
pub struct Memory {
    regions: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    /// Adds a region at an address that is a multiple of 256.
    pub fn add(&mut self, bytes: Vec<u8>) -> u64 {
        let address = (self.regions.len() as u64 + 1) << 40;
        self.regions.push((address, bytes));
        address
    }

    pub fn bytes(&self, address: u64) -> &[u8] {
        &self.regions.iter().find(|(start, _)| *start == address).expect("a region").1
    }

    pub fn at(&mut self, address: u64, width: usize) -> &mut [u8] {
        assert_eq!(address % width as u64, 0, "an access of {width} bytes at {address:#x}");
        self.part(address, width)
    }

    /// Returns bytes at any address.
    pub fn part(&mut self, address: u64, width: usize) -> &mut [u8] {
        let (start, bytes) = self
            .regions
            .iter_mut()
            .find(|(start, bytes)| (*start..=*start + bytes.len() as u64).contains(&address))
            .unwrap_or_else(|| panic!("an access to {address:#x}, outside of all memory"));
        let offset = (address - *start) as usize;
        let length = bytes.len();
        bytes
            .get_mut(offset..offset + width)
            .unwrap_or_else(|| panic!("an access to bytes {offset}.. of a region of {length}"))
    }
}

/// The simulated address of shared memory. It is not 0, because the assembler chooses it.
pub const SHARED: u64 = 1024;

/// The least multiple of 128 that holds the static shared memory of a block: the start of its dynamic memory.
pub fn dynamic_start(bytes: usize) -> usize {
    bytes.next_multiple_of(128)
}

/// A byte of shared memory: the last thread that accessed it in this phase, and its access.
#[derive(Clone, Copy, Default)]
struct Cell {
    byte: u8,
    written: bool,
    writer: Option<u32>,
    reader: Option<u32>,
    /// Several threads have read it.
    shared: bool,
}

/// The shared memory of a block, or of the blocks of a cluster one after another.
pub struct Shared(Vec<Cell>);

impl Shared {
    pub fn new(bytes: usize) -> Shared {
        Shared(vec![Cell::default(); bytes])
    }

    fn at(&mut self, address: u64, width: usize) -> &mut [Cell] {
        assert_eq!(address % width as u64, 0, "an access of {width} bytes of shared memory at {address}");
        let offset = address.checked_sub(SHARED).expect("an address in shared memory") as usize;
        let length = self.0.len();
        self.0
            .get_mut(offset..offset + width)
            .unwrap_or_else(|| panic!("an access to bytes {offset}.. of {length} of shared memory"))
    }

    pub fn read(&mut self, thread: u32, address: u64, width: usize) -> Vec<u8> {
        let cells = self.at(address, width);
        cells
            .iter_mut()
            .map(|cell| {
                assert!(cell.written, "shared memory at {address} that nobody wrote");
                assert!(cell.writer.is_none_or(|writer| writer == thread), "a race at {address}");
                cell.shared |= cell.reader.is_some_and(|reader| reader != thread);
                cell.reader = Some(thread);
                cell.byte
            })
            .collect()
    }

    pub fn write(&mut self, thread: u32, address: u64, bytes: &[u8]) {
        for (cell, &byte) in self.at(address, bytes.len()).iter_mut().zip(bytes) {
            let others = cell.shared || cell.reader.is_some_and(|reader| reader != thread);
            assert!(!others && cell.writer.is_none_or(|writer| writer == thread), "a race at {address}");
            *cell = Cell { byte, written: true, writer: Some(thread), ..*cell };
        }
    }

    pub fn barrier(&mut self) {
        self.barrier_of(0..u32::MAX);
    }

    /// Orders the accesses of some threads.
    pub fn barrier_of(&mut self, threads: Range<u32>) {
        let is_ours = |thread: Option<u32>| thread.is_none_or(|thread| threads.contains(&thread));
        let all = threads.start == 0 && threads.end == u32::MAX;
        for cell in &mut self.0 {
            if all || (is_ours(cell.writer) && is_ours(cell.reader) && !cell.shared) {
                *cell = Cell { byte: cell.byte, written: cell.written, ..Cell::default() };
            }
        }
    }
}
