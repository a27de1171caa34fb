//! `.burst` files: a network with its state, from which a run continues bit for bit.
//!
//! A [state file](crate::io::state_file) with magic `SELVBRST`. Its contents: counts u64 of neurons, synapses, areas and
//! populations; the neuron arrays in the order of [`Neurons`]; since version 3 the slots that are not in use; areas and populations; row pointers, targets and weights; the
//! state; the ledger; the power input; 1 for dense mode.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::backend::Backend;
use super::ledger::FireLedger;
use super::network::{Area, Network};
use super::neurons::Neurons;
use super::simulation::Simulation;
use super::state::NetworkState;
use super::synapses::Synapses;
use crate::error::Result;
use crate::io::state_file::{self, StateFileKind, StateReader, StateWriter};

const KIND: StateFileKind = StateFileKind { magic: *b"SELVBRST", version: 3, oldest: 2, name: ".burst file" };

/// Everything of a `.burst` file.
pub(super) struct SavedRun {
    pub network: Network,
    pub state: NetworkState,
    pub ledger: Option<FireLedger>,
    /// Ranges with the input in thousandths that they receive in every burst.
    pub power: Vec<(Range<u32>, i64)>,
    pub dense: bool,
}

impl Simulation {
    /// Saves the network as it is now, its state, ledger, power input and mode. The file appears whole under its name or not
    /// at all. Changes in the parameter queue and structural edits apply first. Staged input, samplers, recordings and rules are not saved.
    ///
    /// # Errors
    /// [`FileNotWritten`](crate::Error::FileNotWritten); those of the backend.
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
        self.apply_parameter_changes()?;
        self.apply_edits()?;
        let (state, weights) = (self.state()?, self.weights()?);
        state_file::save(path.as_ref(), &KIND, |output| write(output, self, &state, &weights))
    }

    /// Continues a saved run on a backend. Rules must be added again; they find their past in the saved ledger.
    ///
    /// # Errors
    /// [`File`](crate::Error::File) for a file that cannot be read, is damaged or holds less than it says; the errors of
    /// [`Network::with_areas`], [`set_state`](Simulation::set_state) and [`set_ledger`](Simulation::set_ledger) for values out
    /// of range; those of the backend.
    pub fn restore(path: impl AsRef<Path>, backend: Box<dyn Backend>) -> Result<Simulation> {
        let saved = read(path.as_ref())?;
        let mut simulation = Simulation::new(Arc::new(saved.network), backend, saved.state.seed)?;
        simulation.set_state(&saved.state)?;
        if let Some(ledger) = saved.ledger {
            simulation.set_ledger(ledger)?;
        }
        simulation.set_power_thousandths(saved.power)?;
        if saved.dense {
            simulation.set_dense(true)?;
        }
        Ok(simulation)
    }
}

/// Writes the length and the bytes of a text.
fn write_text(output: &mut StateWriter, text: &str) -> std::io::Result<()> {
    output.array(&[text.len() as u64])?;
    output.array(text.as_bytes())
}

fn read_text(input: &mut StateReader<'_>) -> Result<String> {
    let [length] = input.numbers("length of a name")?;
    let bytes = input.array::<u8>("name", length)?;
    String::from_utf8(bytes).map_err(|_| input.error("a name that is no UTF-8", "a .burst file"))
}

fn write(
    output: &mut StateWriter,
    simulation: &Simulation,
    state: &NetworkState,
    weights: &[u16],
) -> std::io::Result<()> {
    let (network, neurons) = (simulation.network(), simulation.neurons());
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
    let removed = network.removed();
    output.array(&[removed.len() as u64])?;
    output.array(removed)?;

    for area in network.areas() {
        output.array(&[u64::from(area.shares) | u64::from(area.potential_driven) << 1])?;
        write_text(output, &area.name)?;
    }
    for population in network.populations() {
        output.array(&[u64::from(population.ids.start), u64::from(population.ids.end)])?;
        write_text(output, &population.name)?;
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
    output.array(&[u64::from(simulation.dense)])
}

/// Checks that a number fits an id.
fn id(input: &StateReader<'_>, number: u64) -> Result<u32> {
    u32::try_from(number).map_err(|_| input.error(format!("id {number}"), "ids below 2^31"))
}

fn read(path: &Path) -> Result<SavedRun> {
    let (mut input, version) = StateReader::open(path, &KIND)?;
    let [neurons, synapses, areas, populations] = input.numbers("counts")?;
    let neurons = read_neurons(&mut input, neurons)?;
    let removed = if version < 3 { Vec::new() } else { read_removed(&mut input)? };
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
        power.push((id(&input, start)?..id(&input, end)?, thousandths as i64));
    }
    let [dense] = input.numbers("mode")?;
    if dense > 1 {
        return Err(input.error(format!("mode {dense}"), "0, or 1 for dense mode"));
    }
    input.finish()?;

    let mut network =
        Network::with_areas(neurons, Synapses::from_rows(row_pointers, targets, weights)?, areas)?;
    for (name, ids) in populations {
        network.add_population(name, ids)?;
    }
    network.set_removed(removed)?;
    Ok(SavedRun { network, state, ledger, power, dense: dense == 1 })
}

fn read_neurons(input: &mut StateReader<'_>, count: u64) -> Result<Neurons> {
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

fn read_removed(input: &mut StateReader<'_>) -> Result<Vec<u32>> {
    let [count] = input.numbers("removed neurons")?;
    input.array("removed neurons", count)
}

fn read_areas(input: &mut StateReader<'_>, count: u64) -> Result<Vec<Area>> {
    let mut areas = Vec::new();
    for _ in 0..count {
        let [flags] = input.numbers("area flags")?;
        areas.push(Area {
            name: read_text(input)?,
            shares: flags & 1 != 0,
            potential_driven: flags & 2 != 0,
        });
    }
    Ok(areas)
}

fn read_populations(input: &mut StateReader<'_>, count: u64) -> Result<Vec<(String, Range<u32>)>> {
    let mut populations = Vec::new();
    for _ in 0..count {
        let [start, end] = input.numbers("population ids")?;
        let ids = id(input, start)?..id(input, end)?;
        populations.push((read_text(input)?, ids));
    }
    Ok(populations)
}

fn read_state(input: &mut StateReader<'_>, neurons: u64) -> Result<NetworkState> {
    let [seed, burst, fired] = input.numbers("state")?;
    Ok(NetworkState {
        seed: seed as u32,
        burst,
        neurons: input.array("neuron states", neurons)?,
        fired: input.array("fired neurons", fired)?,
    })
}

fn read_ledger(input: &mut StateReader<'_>, neurons: usize, burst: u64) -> Result<Option<FireLedger>> {
    let [window, held] = input.numbers("ledger")?;
    if window == 0 {
        return Ok(None);
    }
    // A bitmap of no neurons takes no byte of the file, so the window alone bounds their number.
    FireLedger::check_window(window)?;
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
