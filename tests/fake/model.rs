//! A model of device memory for random programs: each buffer's bytes, and the effect of every operation on them.
//!
//! A buffer's bytes are in a [`Cell`] that graphs share, because a graph writes to a buffer whether or not the program
//! still has it. [`State::perform`] gives an [`Operation`] to the driver and applies its effect to the cells at once. If
//! the operation belongs to a capture, the effect is recorded and applied by each launch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge::Result;
use selvedge::driver::{
    CapturedBuffer, Copy2d, Device, DeviceBuffer, Event, Function, LaunchConfig, PinnedBuffer, RawAddress,
    Stream, Transfer,
};

use super::kernels::PTX;
use super::random_graphs::Instance;
use super::support::{Fake, Parameter};

/// Bytes of a buffer as a sequential machine would have them; `None` while they are unspecified.
#[derive(Clone)]
pub struct Cell(Arc<(usize, Mutex<Option<Vec<u8>>>)>);

impl Cell {
    pub fn new(bytes: Vec<u8>) -> Cell {
        Cell(Arc::new((bytes.len(), Mutex::new(Some(bytes)))))
    }

    pub fn unspecified(length: usize) -> Cell {
        Cell(Arc::new((length, Mutex::new(None))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn len(&self) -> usize {
        self.0.0
    }

    pub fn get(&self) -> Option<Vec<u8>> {
        self.lock().clone()
    }

    pub fn set(&self, bytes: Vec<u8>) {
        *self.lock() = Some(bytes);
    }

    pub fn forget(&self) {
        *self.lock() = None;
    }

    /// Unique as long as somebody has the cell.
    fn key(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }

    pub fn is(&self, other: &Cell) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Something that a stream does with buffers, which are named by their cells.
#[derive(Clone)]
pub enum Operation {
    Make {
        target: Cell,
        salt: u32,
    },
    /// Over the shorter of the two; `ordered` unless the layer must not know of the use.
    Mix {
        source: Cell,
        target: Cell,
        salt: u32,
        ordered: bool,
    },
    Fill {
        target: Cell,
        value: u8,
    },
    Copy {
        source: Cell,
        target: Cell,
    },
    CopyRows {
        source: Cell,
        target: Cell,
        shape: Copy2d,
    },
    Upload {
        host: Cell,
        target: Cell,
    },
    Download {
        source: Cell,
        host: Cell,
    },
}

impl Operation {
    /// The device memory that it reads.
    pub fn read(&self) -> Option<&Cell> {
        match self {
            Operation::Mix { source, .. }
            | Operation::Copy { source, .. }
            | Operation::CopyRows { source, .. }
            | Operation::Download { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The device memory that it writes.
    pub fn written(&self) -> Option<&Cell> {
        match self {
            Operation::Make { target, .. }
            | Operation::Mix { target, .. }
            | Operation::Fill { target, .. }
            | Operation::Copy { target, .. }
            | Operation::CopyRows { target, .. }
            | Operation::Upload { target, .. } => Some(target),
            Operation::Download { .. } => None,
        }
    }

    /// The cells that it uses, and whether it writes there.
    pub fn uses(&self) -> impl Iterator<Item = (&Cell, bool)> {
        self.read().map(|cell| (cell, false)).into_iter().chain(self.written().map(|cell| (cell, true)))
    }

    /// Puts other buffers in place of its own.
    pub fn map(&mut self, other: impl Fn(&Cell) -> Cell) {
        match self {
            Operation::Mix { source, target, .. }
            | Operation::Copy { source, target }
            | Operation::CopyRows { source, target, .. } => {
                (*source, *target) = (other(source), other(target));
            }
            Operation::Make { target, .. }
            | Operation::Fill { target, .. }
            | Operation::Upload { target, .. } => *target = other(target),
            Operation::Download { source, .. } => *source = other(source),
        }
    }

    /// Does to the bytes what the device does.
    pub fn apply(&self, fake: &Fake) {
        match self {
            Operation::Make { target, salt } => target.set(made(fake, target.len(), *salt)),
            Operation::Fill { target, value } => target.set(vec![*value; target.len()]),
            Operation::Upload { host, target } => *target.lock() = host.get(),
            Operation::Download { source, host } => *host.lock() = source.get(),
            Operation::Mix { source, target, .. }
            | Operation::Copy { source, target }
            | Operation::CopyRows { source, target, .. } => {
                let source = source.get();
                let mut bytes = target.lock();
                match (source, &mut *bytes) {
                    (Some(source), Some(target)) => self.combine(fake, &source, target),
                    _ => *bytes = None,
                }
            }
        }
    }

    fn combine(&self, fake: &Fake, source: &[u8], target: &mut [u8]) {
        let length = source.len().min(target.len());
        match self {
            Operation::Mix { salt, .. } => mixed(fake, &source[..length], &mut target[..length], *salt),
            Operation::CopyRows { shape, .. } => {
                for row in 0..shape.height {
                    let (from, to) = (row * shape.source_pitch, row * shape.destination_pitch);
                    target[to..][..shape.width].copy_from_slice(&source[from..][..shape.width]);
                }
            }
            _ => target[..length].copy_from_slice(&source[..length]),
        }
    }
}

/// The bytes that `make` writes.
pub fn made(fake: &Fake, length: usize, salt: u32) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let scalars = ((length as u64).to_ne_bytes(), salt.to_ne_bytes());
    let mut parameters =
        [Parameter::Write(&mut bytes), Parameter::Scalar(&scalars.0), Parameter::Scalar(&scalars.1)];
    fake.kernel_effect("make", &mut parameters);
    bytes
}

/// The effect of `mix`.
pub fn mixed(fake: &Fake, source: &[u8], target: &mut [u8], salt: u32) {
    let scalars = ((target.len() as u64).to_ne_bytes(), salt.to_ne_bytes());
    let mut parameters = [
        Parameter::Read(source),
        Parameter::Update(target),
        Parameter::Scalar(&scalars.0),
        Parameter::Scalar(&scalars.1),
    ];
    fake.kernel_effect("mix", &mut parameters);
}

pub struct Tracked {
    pub buffer: DeviceBuffer<u8>,
    pub cell: Cell,
    pub device: usize,
}

/// A copy on its way, and what the host side must hold when it is done.
pub struct Moving {
    pub transfer: Transfer<u8>,
    pub host: Cell,
}

/// The point that an event marks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Nothing,
    Real,
    /// A place in the capture of this number.
    Captured(u64),
}

pub struct Kernels {
    pub mix: Function,
    pub make: Function,
    /// Counts the modules that the program loaded.
    pub generation: u64,
}

/// Something that a capture did and that the same list of operations does again.
#[derive(Clone)]
pub enum Step {
    Allocate { stream: u64, cell: Cell },
    Drop { cell: Cell },
    WaitFor { stream: u64, other: u64 },
    Do { stream: u64, operation: Operation },
}

/// Page-locked memory that went to a graph.
#[derive(Clone)]
pub struct Host {
    pub name: CapturedBuffer<u8>,
    pub cell: Cell,
    pub is_read: bool,
}

/// A capture that is under way.
#[derive(Default)]
pub struct Capturing {
    pub number: u64,
    /// Ids of the streams in it.
    pub joined: Vec<u64>,
    /// Buffers of its own.
    pub own: Vec<Cell>,
    /// The cells that its operations use, and whether any writes there.
    pub named: HashMap<usize, (Cell, bool)>,
    pub operations: Vec<Operation>,
    pub hosts: Vec<Host>,
    /// The modules of its kernels, one for each launch.
    pub generations: Vec<u64>,
    /// How to do it again; `None` where something cannot be.
    pub steps: Option<Vec<Step>>,
}

impl Capturing {
    pub fn new(number: u64, origin: &Stream) -> Capturing {
        Capturing { number, joined: vec![origin.id()], steps: Some(Vec::new()), ..Capturing::default() }
    }

    pub fn has(&self, stream: &Stream) -> bool {
        self.joined.contains(&stream.id())
    }

    pub fn join(&mut self, stream: &Stream) {
        if !self.has(stream) {
            self.joined.push(stream.id());
        }
    }

    pub fn owns(&self, cell: &Cell) -> bool {
        self.own.iter().any(|own| own.is(cell))
    }

    /// Returns whether an operation on the buffer belongs to the capture on every stream.
    pub fn concerns(&self, cell: &Cell, writes: bool) -> bool {
        self.owns(cell) || self.named.get(&cell.key()).is_some_and(|(_, written)| *written || writes)
    }

    pub fn takes(&self, stream: &Stream, operation: &Operation) -> bool {
        self.has(stream) || operation.uses().any(|(cell, writes)| self.concerns(cell, writes))
    }

    pub fn step(&mut self, step: Step) {
        self.steps.iter_mut().for_each(|steps| steps.push(step.clone()));
    }

    pub fn take(&mut self, stream: &Stream, operation: Operation) {
        self.join(stream);
        for (cell, writes) in operation.uses() {
            self.named.entry(cell.key()).or_insert_with(|| (cell.clone(), false)).1 |= writes;
        }
        self.step(Step::Do { stream: stream.id(), operation: operation.clone() });
        self.operations.push(operation);
    }
}

/// A program's values at one moment.
pub struct State {
    pub devices: Vec<Device>,
    pub streams: Vec<(usize, Stream)>,
    pub buffers: Vec<Tracked>,
    pub pinned: Vec<PinnedBuffer<u8>>,
    pub moving: Vec<Moving>,
    pub events: Vec<(usize, Event, Mark)>,
    pub kernels: Vec<Option<Kernels>>,
    pub graphs: Vec<Instance>,
    pub capture: Option<Capturing>,
    /// Counts modules and captures.
    pub numbers: u64,
}

impl State {
    pub fn new() -> Result<State> {
        let devices: Vec<Device> = Device::list()?;
        let kernels = devices.iter().map(|_| None).collect();
        Ok(State {
            devices,
            streams: Vec::new(),
            buffers: Vec::new(),
            pinned: Vec::new(),
            moving: Vec::new(),
            events: Vec::new(),
            kernels,
            graphs: Vec::new(),
            capture: None,
            numbers: 0,
        })
    }

    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// The bytes, where the next operation on the buffer finds specified ones.
    pub fn is_known(&self, cell: &Cell) -> bool {
        let Some(capture) = &self.capture else { return cell.get().is_some() };
        // A block that a capture allocates holds nothing yet, whatever it held at the launch before.
        let written = capture.named.get(&cell.key()).is_some_and(|(_, written)| *written);
        written || (!capture.owns(cell) && cell.get().is_some())
    }

    /// Returns whether the capture in progress takes the operation.
    pub fn captures(&self, stream: &Stream, operation: &Operation) -> bool {
        self.capture.as_ref().is_some_and(|capture| capture.takes(stream, operation))
    }

    pub fn has_captured(&self, stream: &Stream) -> bool {
        self.capture.as_ref().is_some_and(|capture| capture.has(stream))
    }

    pub fn concerns(&self, cell: &Cell, writes: bool) -> bool {
        self.capture.as_ref().is_some_and(|capture| capture.concerns(cell, writes))
    }

    fn place(&self, cell: &Cell) -> Option<usize> {
        self.buffers.iter().position(|tracked| tracked.cell.is(cell))
    }

    pub fn buffer(&mut self, cell: &Cell) -> Option<&mut DeviceBuffer<u8>> {
        self.place(cell).map(|place| &mut self.buffers[place].buffer)
    }

    fn pair(&mut self, source: &Cell, target: &Cell) -> Option<(&DeviceBuffer<u8>, &mut DeviceBuffer<u8>)> {
        let (from, to) = (self.place(source)?, self.place(target)?);
        let (low, high) = self.buffers.split_at_mut(from.max(to));
        Some(match from < to {
            true => (&low[from].buffer, &mut high[0].buffer),
            false => (&high[0].buffer, &mut low[to].buffer),
        })
    }

    /// Loads the kernels where the program has none at the moment.
    pub fn load(&mut self, device: usize) -> Result<&Kernels> {
        if self.kernels[device].is_none() {
            let module = self.devices[device].load(PTX.as_bytes())?;
            let (mix, make) = (module.function("mix")?, module.function("make")?);
            self.kernels[device] = Some(Kernels { mix, make, generation: self.number() });
        }
        self.kernels[device].as_ref().ok_or_else(|| unreachable!("they were just loaded"))
    }

    /// Gives the operation to the stream, and does its effect or writes it down.
    pub fn perform(
        &mut self,
        fake: &Fake,
        device: usize,
        stream: &Stream,
        operation: Operation,
    ) -> Result<()> {
        let captured = self.captures(stream, &operation);
        self.issue(device, stream, &operation)?;
        if let (true, Some(capture), Some(kernels)) = (captured, &mut self.capture, &self.kernels[device]) {
            capture.generations.push(kernels.generation);
        }
        self.done(fake, stream, operation, captured);
        Ok(())
    }

    /// An operation was given to the stream.
    pub fn done(&mut self, fake: &Fake, stream: &Stream, operation: Operation, captured: bool) {
        match &mut self.capture {
            Some(capture) if captured => capture.take(stream, operation),
            _ => operation.apply(fake),
        }
    }

    fn issue(&mut self, device: usize, stream: &Stream, operation: &Operation) -> Result<()> {
        let config = LaunchConfig::new(1, 32);
        match operation {
            Operation::Make { target, salt } => {
                let make = self.load(device)?.make.clone();
                let Some(target) = self.buffer(target) else { return Ok(()) };
                let length = target.len() as u64;
                // SAFETY: `make` writes `length` bytes.
                unsafe { make.launch(stream, config, (target, length, *salt)) }
            }
            Operation::Mix { source, target, salt, ordered } => {
                let mix = self.load(device)?.mix.clone();
                let Some((source, target)) = self.pair(source, target) else { return Ok(()) };
                let length = target.len().min(source.len());
                let (address, scalar) = (RawAddress(target.address()), length as u64);
                if *ordered {
                    let part = target.slice_mut(..length)?;
                    // SAFETY: `mix` reads and updates `length` bytes.
                    unsafe { mix.launch(stream, config, (source, part, scalar, *salt)) }
                } else {
                    // SAFETY: the fake driver's kernels touch live memory only; that the use is not ordered is the point.
                    unsafe { mix.launch(stream, config, (source, address, scalar, *salt)) }
                }
            }
            Operation::Fill { target, value } => match self.buffer(target) {
                Some(target) => stream.fill(target, *value),
                None => Ok(()),
            },
            Operation::Copy { source, target } => {
                let Some((source, target)) = self.pair(source, target) else { return Ok(()) };
                let length = source.len().min(target.len());
                stream.copy(&source.slice(..length)?, &mut target.slice_mut(..length)?)
            }
            Operation::CopyRows { source, target, shape } => match self.pair(source, target) {
                Some((source, target)) => stream.copy_2d(source, target, *shape),
                None => Ok(()),
            },
            Operation::Upload { .. } | Operation::Download { .. } => {
                unreachable!("copies of page-locked memory need that memory")
            }
        }
    }
}
