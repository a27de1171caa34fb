//! The memory of interpreted kernels: global regions, and the shared memory of a block.

use std::ops::Range;

/// The memory that a kernel may access: regions with simulated addresses.
#[derive(Default, Clone)]
pub struct Memory {
    regions: Vec<(u64, Vec<u8>)>,
    accesses: Accesses,
}

/// The regions that were read, and written, as bits.
#[derive(Default, Clone, Copy)]
pub struct Accesses {
    loaded: u64,
    stored: u64,
}

impl Accesses {
    /// Returns whether a region was read and written.
    pub fn are_exchanged(self) -> bool {
        self.are_exchanged_with(self)
    }

    /// Returns whether these read a region that the others write, or write one that they read.
    pub fn are_exchanged_with(self, others: Accesses) -> bool {
        self.loaded & others.stored != 0 || self.stored & others.loaded != 0
    }
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

    /// Returns the bytes that an aligned access writes.
    pub fn at(&mut self, address: u64, width: usize) -> &mut [u8] {
        assert_eq!(address % width as u64, 0, "an access of {width} bytes at {address:#x}");
        let (region, range) = self.range(address, width);
        self.accesses.stored |= bit(region);
        &mut self.regions[region].1[range]
    }

    /// Returns the bytes that an aligned access reads.
    pub fn load(&mut self, address: u64, width: usize) -> &[u8] {
        assert_eq!(address % width as u64, 0, "an access of {width} bytes at {address:#x}");
        self.part(address, width)
    }

    /// Returns the bytes that an access at any address reads.
    pub fn part(&mut self, address: u64, width: usize) -> &[u8] {
        let (region, range) = self.range(address, width);
        self.accesses.loaded |= bit(region);
        &self.regions[region].1[range]
    }

    fn range(&self, address: u64, width: usize) -> (usize, Range<usize>) {
        let region = ((address >> 40) as usize).wrapping_sub(1);
        let offset = (address & ((1 << 40) - 1)) as usize;
        let length = self.regions.get(region).map(|(_, bytes)| bytes.len());
        let length = length.filter(|&length| offset <= length);
        let length = length.unwrap_or_else(|| panic!("an access to {address:#x}, outside of all memory"));
        assert!(offset + width <= length, "an access to bytes {offset}.. of a region of {length}");
        (region, offset..offset + width)
    }

    /// Forgets the accesses of the memory so far.
    pub(super) fn forget_accesses(&mut self) {
        self.accesses = Accesses::default();
    }

    pub(super) fn accesses(&self) -> Accesses {
        self.accesses
    }
}

/// Regions beyond the last bit share it.
fn bit(region: usize) -> u64 {
    1 << region.min(63)
}

/// The simulated address of shared memory. It is not 0, because the assembler chooses it.
pub const SHARED: u64 = 1024;

/// The least multiple of 128 that holds the static shared memory of a block: the start of its dynamic memory.
pub fn dynamic_start(bytes: usize) -> usize {
    bytes.next_multiple_of(128)
}

/// No thread.
const NOBODY: u32 = u32::MAX;

/// A byte of shared memory: the last thread that accessed it in a phase, and its access.
#[derive(Clone, Copy)]
struct Cell {
    /// The phase of the accesses. Accesses of an earlier phase are ordered.
    phase: u32,
    writer: u32,
    reader: u32,
    byte: u8,
    written: bool,
    /// Several threads have read it.
    shared: bool,
}

impl Cell {
    const NEW: Cell =
        Cell { phase: 0, writer: NOBODY, reader: NOBODY, byte: 0, written: false, shared: false };

    /// Forgets accesses.
    fn order(&mut self, phase: u32) {
        *self = Cell { phase, byte: self.byte, written: self.written, ..Cell::NEW };
    }
}

/// The shared memory of a block, or of the blocks of a cluster one after another.
pub struct Shared {
    cells: Vec<Cell>,
    phase: u32,
    /// Cells that were accessed in this phase, so that barriers need not look at all.
    touched: Vec<u32>,
}

impl Shared {
    pub fn new(bytes: usize) -> Shared {
        Shared { cells: vec![Cell::NEW; bytes], phase: 1, touched: Vec::new() }
    }

    /// Returns the cells of an access, without accesses of earlier phases.
    fn at(&mut self, address: u64, width: usize) -> &mut [Cell] {
        assert_eq!(address % width as u64, 0, "an access of {width} bytes of shared memory at {address}");
        let offset = address.checked_sub(SHARED).expect("an address in shared memory") as usize;
        let length = self.cells.len();
        let cells = self
            .cells
            .get_mut(offset..offset + width)
            .unwrap_or_else(|| panic!("an access to bytes {offset}.. of {length} of shared memory"));
        for (cell, at) in cells.iter_mut().zip(offset as u32..) {
            if cell.phase != self.phase {
                cell.order(self.phase);
                self.touched.push(at);
            }
        }
        cells
    }

    /// Reads as many bytes as there are in `into`.
    pub fn read(&mut self, thread: u32, address: u64, into: &mut [u8]) {
        for (cell, byte) in self.at(address, into.len()).iter_mut().zip(into) {
            assert!(cell.written, "shared memory at {address} that nobody wrote");
            assert!(cell.writer == NOBODY || cell.writer == thread, "a race at {address}");
            cell.shared |= cell.reader != NOBODY && cell.reader != thread;
            cell.reader = thread;
            *byte = cell.byte;
        }
    }

    pub fn write(&mut self, thread: u32, address: u64, bytes: &[u8]) {
        for (cell, &byte) in self.at(address, bytes.len()).iter_mut().zip(bytes) {
            let others = cell.shared || (cell.reader != NOBODY && cell.reader != thread);
            assert!(!others && (cell.writer == NOBODY || cell.writer == thread), "a race at {address}");
            (cell.byte, cell.written, cell.writer) = (byte, true, thread);
        }
    }

    /// Writes bytes that a barrier orders.
    pub fn arrive(&mut self, address: u64, bytes: &[u8]) {
        for (cell, &byte) in self.at(address, bytes.len()).iter_mut().zip(bytes) {
            (cell.byte, cell.written) = (byte, true);
            cell.order(0);
        }
    }

    pub fn barrier(&mut self) {
        self.phase += 1;
        self.touched.clear();
    }

    /// Orders the accesses of some threads.
    pub fn barrier_of(&mut self, threads: Range<u32>) {
        let is_ours = |thread: u32| thread == NOBODY || threads.contains(&thread);
        let Shared { cells, touched, .. } = self;
        touched.retain(|&at| {
            let cell = &mut cells[at as usize];
            let ordered = is_ours(cell.writer) && is_ours(cell.reader) && !cell.shared;
            if ordered {
                cell.order(0);
            }
            !ordered
        });
    }
}
