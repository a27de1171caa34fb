//! `.burst` files: a network with its state, from which a run continues bit for bit.
//!
//! Layout, little-endian: magic `SELVBRST`, version u32, 0 u32, then counts u64 of neurons, synapses, areas and populations;
//! the neuron arrays in the order of [`Neurons`]; areas and populations; row pointers, targets and weights; the state; the
//! ledger; the power input; the SHA-256 of everything before it. A count is compared with the bytes that are left before
//! anything of its size is allocated.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use sha2::{Digest, Sha256};

use super::backend::Backend;
use super::ledger::FireLedger;
use super::network::{Area, Network};
use super::neurons::Neurons;
use super::simulation::Simulation;
use super::state::NetworkState;
use super::synapses::Synapses;
use crate::{Error, Result};

const MAGIC: [u8; 8] = *b"SELVBRST";
const VERSION: u32 = 1;
const CHECKSUM_BYTES: u64 = 32;

/// Everything of a `.burst` file.
pub(super) struct SavedRun {
    pub network: Network,
    pub state: NetworkState,
    pub ledger: Option<FireLedger>,
    /// Ranges with the input in thousandths that they receive in every burst.
    pub power: Vec<(Range<u32>, i64)>,
}

impl Simulation {
    /// Saves the network as it is now, its state, ledger and power input. The file appears whole under its name or not at
    /// all. Staged input, samplers, recordings and rules are not saved.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be written; those of the backend.
    ///
    /// # Examples
    /// ```no_run
    /// # use selvedge::burst::{Cpu, GeneratedNetwork, Simulation};
    /// # fn main() -> selvedge::Result<()> {
    /// let network = GeneratedNetwork::g(1000, 20).network()?;
    /// let mut simulation = Simulation::new(network.into(), Box::new(Cpu::new()), 7)?;
    /// simulation.run(100)?;
    /// simulation.save("run.burst")?;
    /// let mut again = Simulation::restore("run.burst", Box::new(Cpu::new()))?;
    /// assert_eq!(again.state()?, simulation.state()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let (state, weights) = (self.state()?, self.weights()?);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let written =
            write(&temporary, self, &state, &weights).and_then(|()| std::fs::rename(&temporary, path));
        written.map_err(|error| {
            // The temporary file may not exist; the first error is the one to report.
            let _ = std::fs::remove_file(&temporary);
            file_error(path, error, "a file that can be written")
        })
    }

    /// Continues a saved run on a backend. Rules must be added again; they find their past in the saved ledger.
    ///
    /// # Errors
    /// [`Error::File`] for a file that cannot be read, is damaged or holds less than it says; the errors of
    /// [`Network::with_areas`] for values out of range; those of the backend.
    pub fn restore(path: impl AsRef<Path>, backend: Box<dyn Backend>) -> Result<Simulation> {
        let saved = read(path.as_ref())?;
        let mut simulation = Simulation::new(Arc::new(saved.network), backend, saved.state.seed)?;
        simulation.set_state(&saved.state)?;
        if let Some(ledger) = saved.ledger {
            simulation.set_ledger(ledger)?;
        }
        simulation.set_power_thousandths(saved.power)?;
        Ok(simulation)
    }
}

fn file_error(path: &Path, found: impl std::fmt::Display, wanted: impl Into<String>) -> Error {
    Error::File { path: path.display().to_string(), found: found.to_string(), wanted: wanted.into() }
}

/// A writer that hashes.
struct Output {
    file: BufWriter<File>,
    hash: Sha256,
}

impl Output {
    fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hash.update(bytes);
        self.file.write_all(bytes)
    }

    fn array<T: Pod>(&mut self, array: &[T]) -> std::io::Result<()> {
        self.bytes(bytemuck::cast_slice(array))
    }

    fn text(&mut self, text: &str) -> std::io::Result<()> {
        self.array(&[text.len() as u64])?;
        self.bytes(text.as_bytes())
    }
}

fn write(path: &Path, simulation: &Simulation, state: &NetworkState, weights: &[u16]) -> std::io::Result<()> {
    let (network, neurons) = (simulation.network(), simulation.neurons());
    let mut output = Output { file: BufWriter::new(File::create(path)?), hash: Sha256::new() };
    output.bytes(&MAGIC)?;
    output.array(&[VERSION, 0])?;
    let synapses = network.synapses();
    let counts = [network.len(), synapses.len(), network.areas().len(), network.populations().len()];
    output.array(&counts.map(|count| count as u64))?;

    for array in [&neurons.threshold, &neurons.threshold_max, &neurons.leak, &neurons.rest] {
        output.array(array)?;
    }
    output.array(&neurons.refractory)?;
    output.array(&neurons.excitability)?;
    output.array(&neurons.fire_limit)?;
    output.array(&neurons.snooze)?;
    output
        .array(&neurons.accumulates.iter().map(|&accumulates| u8::from(accumulates)).collect::<Vec<u8>>())?;
    output.array(&neurons.kind)?;
    output.array(&neurons.area)?;
    output.array(&neurons.position)?;

    for area in network.areas() {
        output.array(&[u64::from(area.shares) | u64::from(area.potential_driven) << 1])?;
        output.text(&area.name)?;
    }
    for population in network.populations() {
        output.array(&[u64::from(population.ids.start), u64::from(population.ids.end)])?;
        output.text(&population.name)?;
    }

    output.array(synapses.row_pointers())?;
    output.array(synapses.targets())?;
    output.array(weights)?;

    output.array(&[u64::from(state.seed), state.burst, state.fired.len() as u64])?;
    output.array(&state.neurons)?;
    output.array(&state.fired)?;

    let ledger = simulation.ledger();
    let bursts = ledger.map(|ledger| ledger.len() as u64).unwrap_or(0);
    output.array(&[ledger.map_or(0, |ledger| ledger.window() as u64), bursts])?;
    for bitmap in ledger.into_iter().flat_map(FireLedger::bitmaps) {
        output.array(bitmap)?;
    }

    let power = simulation.power_thousandths();
    output.array(&[power.len() as u64])?;
    for (ids, thousandths) in power {
        output.array(&[i64::from(ids.start), i64::from(ids.end), thousandths])?;
    }

    let checksum = output.hash.finalize_reset();
    output.file.write_all(&checksum)?;
    output.file.flush()?;
    output.file.get_ref().sync_all()
}

/// A reader that hashes and knows how many bytes are left before the checksum.
struct Input<'a> {
    path: &'a Path,
    file: BufReader<File>,
    hash: Sha256,
    left: u64,
}

impl Input<'_> {
    fn error(&self, found: impl std::fmt::Display, wanted: impl Into<String>) -> Error {
        file_error(self.path, found, wanted)
    }

    fn array<T: Pod>(&mut self, subject: &str, count: u64) -> Result<Vec<T>> {
        let bytes = count.checked_mul(size_of::<T>() as u64).filter(|&bytes| bytes <= self.left);
        let Some(bytes) = bytes else {
            let found = format!("{count} elements for the {subject}, but only {} bytes left", self.left);
            return Err(self.error(found, "a whole .burst file"));
        };
        let mut array: Vec<T> = Vec::new();
        if array.try_reserve_exact(count as usize).is_err() {
            return Err(Error::host_memory(bytes as usize, format!("the {subject} of a .burst file")));
        }
        array.resize(count as usize, T::zeroed());
        let view: &mut [u8] = bytemuck::cast_slice_mut(&mut array);
        self.file
            .read_exact(view)
            .map_err(|error| file_error(self.path, error, "a file that can be read"))?;
        self.hash.update(&*view);
        self.left -= bytes;
        Ok(array)
    }

    fn numbers<const COUNT: usize>(&mut self, subject: &str) -> Result<[u64; COUNT]> {
        let numbers = self.array::<u64>(subject, COUNT as u64)?;
        Ok(std::array::from_fn(|at| numbers[at]))
    }

    fn text(&mut self) -> Result<String> {
        let [length] = self.numbers("length of a name")?;
        let bytes = self.array::<u8>("name", length)?;
        String::from_utf8(bytes).map_err(|_| self.error("a name that is no UTF-8", "a .burst file"))
    }

    /// A number that must fit an id.
    fn id(&self, number: u64) -> Result<u32> {
        u32::try_from(number).map_err(|_| self.error(format!("id {number}"), "ids below 2^31"))
    }
}

fn read(path: &Path) -> Result<SavedRun> {
    let unreadable = |error: std::io::Error| file_error(path, error, "a .burst file that can be read");
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let left = length
        .checked_sub(CHECKSUM_BYTES)
        .ok_or_else(|| file_error(path, format!("{length} bytes"), "a .burst file"))?;
    let mut input = Input { path, file: BufReader::new(file), hash: Sha256::new(), left };

    if input.array::<u8>("magic", 8)? != MAGIC {
        return Err(input.error("another kind of file", "a .burst file"));
    }
    let version = input.array::<u32>("version", 2)?[0];
    if version != VERSION {
        return Err(input.error(format!("version {version} of the format"), format!("version {VERSION}")));
    }
    let [neurons, synapses, areas, populations] = input.numbers("counts")?;
    let neurons = read_neurons(&mut input, neurons)?;
    let areas = read_areas(&mut input, areas)?;
    let populations = read_populations(&mut input, populations)?;

    let row_pointers = input.array("row pointers", neurons.len() as u64 + 1)?;
    let targets = input.array("targets", synapses)?;
    let weights = input.array("weights", synapses)?;
    let state = read_state(&mut input, neurons.len() as u64)?;
    let ledger = read_ledger(&mut input, neurons.len(), state.burst)?;
    let [count] = input.numbers("power input")?;
    let mut power = Vec::new();
    for _ in 0..count {
        let [start, end, thousandths] = input.numbers("power input")?;
        power.push((input.id(start)?..input.id(end)?, thousandths as i64));
    }
    if input.left != 0 {
        return Err(input.error(format!("{} bytes too many", input.left), "a whole .burst file"));
    }
    let mut checksum = [0; CHECKSUM_BYTES as usize];
    input.file.read_exact(&mut checksum).map_err(unreadable)?;
    if input.hash.finalize_reset()[..] != checksum {
        return Err(input.error("a checksum that does not match", "an undamaged .burst file"));
    }

    let mut network =
        Network::with_areas(neurons, Synapses::from_rows(row_pointers, targets, weights)?, areas)?;
    for (name, ids) in populations {
        network.add_population(name, ids)?;
    }
    Ok(SavedRun { network, state, ledger, power })
}

fn read_neurons(input: &mut Input, count: u64) -> Result<Neurons> {
    Ok(Neurons {
        threshold: input.array("thresholds", count)?,
        threshold_max: input.array("upper thresholds", count)?,
        leak: input.array("leaks", count)?,
        rest: input.array("resting potentials", count)?,
        refractory: input.array("refractory periods", count)?,
        excitability: input.array("excitabilities", count)?,
        fire_limit: input.array("fire limits", count)?,
        snooze: input.array("snoozes", count)?,
        accumulates: input
            .array::<u8>("accumulation flags", count)?
            .into_iter()
            .map(|flag| flag != 0)
            .collect(),
        kind: input.array("kinds", count)?,
        area: input.array("area ids", count)?,
        position: input.array("positions", count)?,
    })
}

fn read_areas(input: &mut Input, count: u64) -> Result<Vec<Area>> {
    let mut areas = Vec::new();
    for _ in 0..count {
        let [flags] = input.numbers("area flags")?;
        areas.push(Area { name: input.text()?, shares: flags & 1 != 0, potential_driven: flags & 2 != 0 });
    }
    Ok(areas)
}

fn read_populations(input: &mut Input, count: u64) -> Result<Vec<(String, Range<u32>)>> {
    let mut populations = Vec::new();
    for _ in 0..count {
        let [start, end] = input.numbers("population ids")?;
        let ids = input.id(start)?..input.id(end)?;
        populations.push((input.text()?, ids));
    }
    Ok(populations)
}

fn read_state(input: &mut Input, neurons: u64) -> Result<NetworkState> {
    let [seed, burst, fired] = input.numbers("state")?;
    Ok(NetworkState {
        seed: seed as u32,
        burst,
        neurons: input.array("neuron states", neurons)?,
        fired: input.array("fired neurons", fired)?,
    })
}

fn read_ledger(input: &mut Input, neurons: usize, burst: u64) -> Result<Option<FireLedger>> {
    let [window, held] = input.numbers("ledger")?;
    if window == 0 {
        return Ok(None);
    }
    if held > window || held > burst {
        return Err(
            input.error(format!("a ledger of {held} bursts"), format!("at most {}", window.min(burst)))
        );
    }
    let mut bitmaps = Vec::new();
    for _ in 0..held {
        bitmaps.push(input.array("ledger", neurons.div_ceil(64) as u64)?);
        let (last, used) = (bitmaps.last().and_then(|bitmap: &Vec<u64>| bitmap.last()), neurons % 64);
        if used != 0 && last.is_some_and(|word| word >> used != 0) {
            return Err(input.error("a ledger with spikes of no neuron", format!("ids below {neurons}")));
        }
    }
    Ok(Some(FireLedger::from_bitmaps(neurons, window as usize, burst, bitmaps)))
}
