//! Runs whose synapses and neurons are created and removed on the way, by calls and by a rule, held against a plain model.
//! tests/burst runs them on threads and in shards, tests/fake/emulated/burst.rs on the emulated kernels, tests/gpu/burst.rs on a
//! device.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge::Result;
use selvedge::burst::{
    Area, Backend, Network, Neurons, PlasticityRule, Simulation, SynapseArrays, SynapseCreation, Synapses,
    pcg,
};

const NEURONS: u32 = 90;
const BURSTS: u64 = 24;
const THRESHOLD: f32 = 100.0;
const WINDOW: usize = 2;
const INCREASE: u8 = 3;
const DECREASE: u8 = 4;
const CREATION: SynapseCreation = SynapseCreation { psp: 9, kind: 0, most: 7 };
const RULE: PlasticityRule = PlasticityRule::AreaWindow {
    source_area: 0,
    target_area: 1,
    window: WINDOW,
    increase: INCREASE,
    decrease: DECREASE,
    prune: true,
    create: Some(CREATION),
};

/// Weight, PSP and kind.
type Value = (u8, u8, u8);

/// Neurons without leak and refractory period as plain lists. Ids alternate between two areas, of which the second one shares.
struct Model {
    potentials: Vec<f32>,
    synapses: BTreeMap<(u32, u32), Value>,
    removed: BTreeSet<u32>,
    /// The neurons that fired, by burst.
    fired: Vec<BTreeSet<u32>>,
}

/// Neurons that fired, synapses that were visited, and neurons that were touched.
type Burst = (Vec<u32>, u64, u64);

impl Model {
    fn new() -> Model {
        let mut synapses = BTreeMap::new();
        for source in 0..NEURONS {
            for at in 0..5 {
                let draw = pcg(source * 5 + at);
                let value = (draw as u8 % 8, 4 + (draw >> 8) as u8 % 24, u8::from(draw >> 16 & 3 == 0));
                synapses.insert((source, (draw >> 20) % NEURONS), value);
            }
        }
        let potentials = vec![0.0; NEURONS as usize];
        Model { potentials, synapses, removed: BTreeSet::new(), fired: vec![BTreeSet::new()] }
    }

    fn network(&self) -> Result<Network> {
        let mut neurons = Neurons::new(NEURONS as usize);
        neurons.threshold.fill(THRESHOLD);
        neurons.leak.fill(0.0);
        (0..NEURONS as usize).for_each(|id| neurons.area[id] = id as u32 % 2);
        let synapses: Vec<_> = self.synapses.iter().map(|(&pair, &value)| (pair, value)).collect();
        let synapses = with_arrays(&synapses, |arrays| Synapses::from_arrays(NEURONS as usize, arrays))?;
        let second = Area { shares: true, ..Area::new("second") };
        Network::with_areas(neurons, synapses, vec![Area::new("first"), second])
    }

    fn create(&mut self, synapses: &[((u32, u32), Value)]) {
        for &(pair, value) in synapses {
            assert_eq!(self.synapses.insert(pair, value), None, "{pair:?}");
        }
    }

    fn remove(&mut self, id: u32) {
        self.removed.insert(id);
        self.synapses.retain(|&(source, target), _| source != id && target != id);
        self.potentials[id as usize] = 0.0;
    }

    /// Returns the pairs from a source.
    fn targets(&self, source: u32) -> Vec<(u32, Value)> {
        let row = self.synapses.range((source, 0)..=(source, u32::MAX));
        row.map(|(&(_, target), &value)| (target, value)).collect()
    }

    fn burst(&mut self, input: &[(u32, f32)], dense: bool) -> Burst {
        let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
        if dense {
            sums.extend((0..NEURONS).filter(|id| !self.removed.contains(id)).map(|id| (id, 0)));
        }
        for &(id, potential) in input.iter().filter(|(id, _)| !self.removed.contains(id)) {
            *sums.entry(id).or_default() += (f64::from(potential) * 1000.0) as i64;
        }
        let mut events = 0;
        for &source in self.fired.last().into_iter().flatten() {
            let row = self.targets(source);
            events += row.len() as u64;
            let divisor = if source % 2 == 1 { row.len() as i64 } else { 1 };
            for (target, (weight, psp, kind)) in row {
                let sign = if kind == 1 { -1 } else { 1 };
                let product = sign * i64::from(weight) * i64::from(psp) * 1000;
                *sums.entry(target).or_default() += product / divisor;
            }
        }
        let mut fired = BTreeSet::new();
        for (&id, &sum) in &sums {
            let potential = self.potentials[id as usize] + sum as f32 / 1000.0;
            let fires = potential >= THRESHOLD;
            self.potentials[id as usize] = if fires { 0.0 } else { potential };
            if fires {
                fired.insert(id);
            }
        }
        let list = fired.iter().copied().collect();
        self.fired.push(fired);
        (list, events, sums.len() as u64)
    }

    /// Applies the rule. Returns how many synapses it created and pruned.
    fn learn(&mut self) -> (usize, usize) {
        let Some(first) = self.fired.len().checked_sub(WINDOW).filter(|&first| first > 0) else {
            return (0, 0);
        };
        let last = &self.fired[first..];
        let together = |source: u32, target: u32| {
            last.iter().filter(|fired| fired.contains(&source) && fired.contains(&target)).count()
        };
        let before = self.synapses.len();
        self.synapses.retain(|&(source, target), (weight, _, _)| {
            let count = if source % 2 == 0 && target % 2 == 1 { together(source, target) } else { 0 };
            if count == WINDOW {
                *weight = weight.saturating_add(INCREASE);
            } else if count > 0 {
                *weight = weight.saturating_sub(DECREASE);
            }
            *weight > 0 || count == 0
        });
        let pruned = before - self.synapses.len();
        let in_use = |id: &u32| !self.removed.contains(id);
        let pairs = (0..NEURONS)
            .step_by(2)
            .filter(in_use)
            .flat_map(|source| (1..NEURONS).step_by(2).filter(in_use).map(move |target| (source, target)));
        let missing = pairs.filter(|pair| !self.synapses.contains_key(pair));
        let steady = missing.filter(|&(source, target)| together(source, target) == WINDOW);
        let created: Vec<_> = steady
            .take(CREATION.most as usize)
            .map(|pair| (pair, (INCREASE, CREATION.psp, CREATION.kind)))
            .collect();
        self.create(&created);
        (created.len(), pruned)
    }

    fn weights(&self) -> Vec<u16> {
        self.synapses.values().map(|&(weight, psp, _)| u16::from(weight) | u16::from(psp) << 8).collect()
    }
}

fn with_arrays<R>(synapses: &[((u32, u32), Value)], work: impl FnOnce(&SynapseArrays) -> R) -> R {
    let source: Vec<u32> = synapses.iter().map(|(pair, _)| pair.0).collect();
    let target: Vec<u32> = synapses.iter().map(|(pair, _)| pair.1).collect();
    let [weight, psp, kind]: [Vec<u8>; 3] =
        [|value: Value| value.0, |value: Value| value.1, |value: Value| value.2]
            .map(|field| synapses.iter().map(|&(_, value)| field(value)).collect());
    work(&SynapseArrays { source: &source, target: &target, weight: &weight, psp: &psp, kind: &kind })
}

/// The first neurons fire in every burst, the others in turn.
fn input(number: u64) -> Vec<(u32, f32)> {
    let fires = |id: &u32| *id < 10 || u64::from(id % 7) == number % 7;
    (0..NEURONS).filter(fires).map(|id| (id, 120.5)).collect()
}

/// Makes the same edits in a simulation and in the model, which change what is staged and what propagates.
fn edit(simulation: &mut Simulation, model: &mut Model, number: u64) -> Result<()> {
    let missing = |model: &Model, from: u32, count: usize| -> Vec<((u32, u32), Value)> {
        let pairs = (0..NEURONS * NEURONS).map(|at| (at * 31 + from) % (NEURONS * NEURONS));
        let pairs = pairs.map(|at| (at / NEURONS, at % NEURONS));
        let in_use = |id: u32| !model.removed.contains(&id);
        let missing = pairs.filter(|pair| !model.synapses.contains_key(pair));
        let usable = missing.filter(|&(source, target)| in_use(source) && in_use(target));
        usable.take(count).map(|pair| (pair, (20, 30, u8::from(pair.0 % 3 == 0)))).collect()
    };
    match number {
        4 | 15 => {
            let mut created = missing(model, number as u32, 40);
            created.reverse();
            with_arrays(&created, |arrays| simulation.create_synapses(arrays))?;
            model.create(&created);
            // Created and removed in one log.
            let ((source, target), _) = created[3];
            simulation.remove_synapses(&[source], &[target])?;
            model.synapses.remove(&(source, target));
        }
        6 => {
            let old: Vec<(u32, u32)> = model.synapses.keys().copied().step_by(3).collect();
            let (source, target): (Vec<u32>, Vec<u32>) = old.iter().copied().unzip();
            simulation.remove_synapses(&source, &target)?;
            model.synapses.retain(|pair, _| !old.contains(pair));
            // Removed and created anew in one log.
            let anew: Vec<_> = old.iter().step_by(5).map(|&pair| (pair, (11, 13, 0))).collect();
            with_arrays(&anew, |arrays| simulation.create_synapses(arrays))?;
            model.create(&anew);
        }
        9 | 18 => {
            let ids = [number as u32, 2, 41].map(|id| id + number as u32);
            simulation.remove_neurons(&ids)?;
            ids.into_iter().for_each(|id| model.remove(id));
            assert!(simulation.inject(&[(1, 1.0), (ids[0], 1.0)]).is_err());
            assert!(!simulation.is_in_use(ids[1]) && simulation.is_in_use(1));
        }
        _ => {}
    }
    Ok(())
}

/// The middle of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Middle {
    Goes,
    Saved,
    Moved,
}

/// Edits between bursts and by a rule give the spikes, potentials and weights of a plain model, in runs that are saved, moved to
/// another backend or left alone in the middle.
pub fn edits_apply_as_in_a_plain_model(make: &dyn Fn() -> Result<Box<dyn Backend>>) -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.burst");
    for middle in [Middle::Goes, Middle::Saved, Middle::Moved] {
        let (mut model, backend) = (Model::new(), make()?);
        let name = backend.name();
        let mut simulation = Simulation::new(Arc::new(model.network()?), backend, 3)?;
        simulation.add_rule(RULE)?;
        let (mut created, mut pruned) = (0, 0);
        for number in 1..=BURSTS {
            let case = format!("{middle:?}, burst {number} on {name}");
            let dense = (8..12).contains(&number);
            if dense != (8..12).contains(&(number - 1)) {
                simulation.set_dense(dense)?;
            }
            // Input that is staged before an edit stays, but for that of removed neurons.
            let removed = model.removed.clone();
            let input: Vec<_> = input(number).into_iter().filter(|(id, _)| !removed.contains(id)).collect();
            simulation.inject(&input)?;
            edit(&mut simulation, &mut model, number)?;
            let found = simulation.run_burst()?;
            let ids: Vec<u32> = found.fired.iter().map(|spike| spike.id).collect();
            let wanted = model.burst(&input, dense);
            assert_eq!((ids, found.counts.events, found.counts.candidates), wanted, "{case}");
            let state = simulation.state()?;
            let potentials: Vec<f32> = state.neurons.iter().map(|neuron| neuron.potential).collect();
            assert_eq!(potentials, model.potentials, "{case}");
            let learned = model.learn();
            (created, pruned) = (created + learned.0, pruned + learned.1);
            if number == BURSTS / 2 {
                // The rule's edits of this burst wait in the log.
                match middle {
                    Middle::Goes => {}
                    Middle::Moved => simulation.set_backend(make()?)?,
                    Middle::Saved => {
                        simulation.save(&path)?;
                        assert_eq!(simulation.weights()?, model.weights(), "{case}");
                        simulation = Simulation::restore(&path, make()?)?;
                        simulation.add_rule(RULE)?;
                    }
                }
            }
        }
        assert!(created > 20 && pruned > 20, "{created} created, {pruned} pruned");
        simulation.save(&path)?;
        assert_eq!(simulation.weights()?, model.weights(), "{middle:?}");
        let network = simulation.network();
        assert_eq!(network.removed(), model.removed.iter().copied().collect::<Vec<u32>>());
        for source in 0..NEURONS {
            let targets = &network.synapses().targets()[network.synapses().row(source)];
            let wanted: Vec<u32> = model
                .targets(source)
                .iter()
                .map(|(target, value)| target | u32::from(value.2) << 31)
                .collect();
            assert_eq!(targets, wanted, "{middle:?}, row {source}");
        }
    }
    Ok(())
}
