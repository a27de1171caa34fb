//! The burst engine's own kernels without a GPU: the CUDA backend on the emulated machine, held against the golden hashes of the
//! specification and against the CPU backend, burst by burst.

use std::sync::Arc;

use selvedge::Error;
use selvedge::burst::{
    Area, Backend, BurstResult, Cpu, Cuda, GeneratedNetwork, InProcess, Injection, InjectionPattern, Network,
    NetworkState, Neurons, PlasticityRule, Shards, Simulation, Spike, SpikeHash, SynapseArrays,
    SynapseCreation, Synapses, WeightChange,
};
use selvedge::driver::Device;

use super::build::Family;
use super::{Child, Outcome, emulate, family, with_seeds};
use crate::support::Fake;

#[path = "../../cases/burst.rs"]
mod cases;
#[path = "../../cases/burst_changes.rs"]
mod cases_of_changes;
#[path = "../../cases/burst_edits.rs"]
mod cases_of_edits;

pub const BURST: Family = family("burst.cu", &[], 1, 1);
pub const GENERATE: Family = family("burst_generate.cu", &[], 1, 1);

pub static CHILDREN: &[(&str, Child)] = &[
    ("burst_goldens", goldens),
    ("burst_worked_example", worked_example),
    ("burst_behaviours", behaviours),
    ("burst_networks", networks),
    ("burst_shards", shards),
    ("burst_changes", changes),
    ("burst_edits", edits),
    ("burst_launches", launches),
    ("burst_recovery", recovery),
    ("burst_out_of_memory", out_of_memory),
    #[cfg(feature = "capi")]
    ("burst_c_functions", super::burst_capi::simulations),
    #[cfg(feature = "capi")]
    ("burst_c_device_networks", super::burst_capi::device_networks),
];

fn cuda() -> selvedge::Result<Cuda> {
    Cuda::new(Device::new(0)?)
}

fn check(holds: bool, text: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(text().into()) }
}

/// Two injections that cancel each other, but whose magnitudes no packed sum holds.
fn cancelling(id: u32) -> [Injection; 2] {
    [1 << 42, -(1 << 42)].map(|thousandths| Injection { id, thousandths })
}

/// A run's spike hash, state hash and number of spikes.
fn hashes(
    backend: &mut dyn Backend,
    bursts: u64,
    injections: &dyn Fn(u64) -> Vec<Injection>,
) -> selvedge::Result<(u64, u64, u64)> {
    let (mut hash, mut spikes) = (SpikeHash::new(), 0);
    for burst in 1..=bursts {
        backend.inject(&injections(burst))?;
        let result = backend.run_burst()?;
        assert_eq!(result.burst, burst);
        hash.add(burst, &result.fired);
        spikes += result.fired.len() as u64;
    }
    Ok((hash.value(), backend.state()?.hash(), spikes))
}

/// Child: the golden hashes: of a loaded network with packed and with wide sums, and of generated ones with bursts back to back.
fn goldens(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST, GENERATE])?;
    let generated = GeneratedNetwork::g(1000, 20);
    let golden = (0x7ab2_78ea_f9e8_14ea, 0x5284_7a73_f592_73c2, 68_669);
    let network = Arc::new(generated.network()?);
    with_seeds(1, |_| {
        let mut device = cuda()?;
        device.load(&network, 7)?;
        assert_eq!(hashes(&mut device, 200, &|burst| generated.injections(burst))?, golden, "packed");
        device.load(&network, 7)?;
        let wide = |burst| {
            let mut injections = generated.injections(burst);
            injections.extend(cancelling(injections[0].id));
            injections
        };
        assert_eq!(hashes(&mut device, 200, &wide)?, golden, "wide");
        for (generated, seed, bursts, spikes, state) in [
            (generated, 7, 200, golden.0, golden.1),
            (GeneratedNetwork::s(10_000, 100, 100), 1, 10, 0xfbf7_fc1b_44e5_0ce7, 0xf9a0_dafb_fe83_fed8),
        ] {
            device.generate(&generated, seed)?;
            let mut hash = SpikeHash::new();
            device.run_bursts(bursts)?.iter().for_each(|result| hash.add(result.burst, &result.fired));
            assert_eq!((hash.value(), device.state()?.hash()), (spikes, state), "{generated:?}");
        }
        // The generated rows are the host's.
        device.generate(&generated, 7)?;
        assert_eq!(device.weights()?, network.synapses().weights());
        assert_eq!(device.last_state().map(|state| state.hash()), Some(cpu(&network, 7)?.state()?.hash()));
        let counted = device.run_counted(12)?;
        let spikes: Vec<u64> = counted.iter().map(|(spikes, _)| *spikes).collect();
        assert_eq!(spikes, [12, 36, 113, 280, 416, 389, 332, 359, 377, 359, 336, 364]);
        Ok(())
    })
}

fn cpu(network: &Arc<Network>, seed: u32) -> selvedge::Result<Cpu> {
    let mut cpu = Cpu::with_threads(1);
    cpu.load(network, seed)?;
    Ok(cpu)
}

/// Runs both for some bursts; results and states must be equal.
fn runs_alike(
    one: &mut dyn Backend,
    other: &mut dyn Backend,
    bursts: u64,
    injections: &dyn Fn(u64) -> Vec<Injection>,
) -> Result<Vec<BurstResult>, Box<dyn std::error::Error>> {
    let mut results = Vec::new();
    for _ in 0..bursts {
        let burst = one.state()?.burst + 1;
        let mut injections = injections(burst);
        one.inject(&injections)?;
        // The order of injections does not matter.
        injections.reverse();
        other.inject(&injections)?;
        let (result, expected) = (one.run_burst()?, other.run_burst()?);
        check(result == expected, || format!("burst {burst}: {result:?} instead of {expected:?}"))?;
        let (state, expected) = (one.state()?, other.state()?);
        check(state == expected, || format!("after burst {burst}: {state:?} instead of {expected:?}"))?;
        results.push(result);
    }
    Ok(results)
}

/// Child: the worked example, whose last burst touches nobody.
fn worked_example(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST])?;
    with_seeds(3, |_| {
        cases::worked_example(&mut cuda()?);
        Ok(())
    })
}

/// Child: the tables of behaviours and of changes between bursts, saved and moved runs, chances, and the choice of a backend.
fn behaviours(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST])?;
    with_seeds(1, |_| {
        let mut device = cuda()?;
        cases::behaviours().iter().for_each(|behaviour| behaviour.check(&mut device));
        let generated = GeneratedNetwork::g(1100, 6);
        cases_of_changes::changes_apply_alike(&mut device, &generated, 2)?;
        cases_of_changes::auto_changes_no_result(Box::new(cuda()?), &generated)?;
        let make = || Ok(Box::new(cuda()?) as Box<dyn Backend>);
        cases_of_changes::saved_and_moved_runs_end_alike(&make, &generated, 4)?;
        Ok(cases_of_changes::excitability_fires_within_binomial_bounds(&mut device, 1000, 10)?)
    })
}

/// Child: device memory that ends anywhere in a load is a typed error that leaves neither a network nor memory behind.
fn out_of_memory(fake: &Fake) -> Outcome {
    const PAGE: u64 = 2 << 20;
    emulate(fake, &[BURST])?;
    let generated = GeneratedNetwork::s(40_000, 50, 100);
    let network = Arc::new(generated.network()?);
    let mut device = cuda()?;
    let live = || Device::new(0).map(|device| device.pool_statistics().live_bytes);
    let (bytes, pinned) = (live()?, fake.live().pinned_bytes);
    let mut refused = 0;
    for pages in 1..64 {
        fake.set_memory(pages * PAGE);
        match device.load(&network, 1) {
            Ok(()) => break,
            Err(Error::OutOfMemory { requested, total, .. }) => {
                check(requested > 0 && total == pages * PAGE, || format!("{requested} of {total} bytes"))?
            }
            Err(other) => return Err(other.into()),
        }
        refused += 1;
        check(device.run_burst().is_err() && device.last_state().is_none(), || "a half network".to_owned())?;
        let found = (live()?, fake.live().pinned_bytes);
        check(found == (bytes, pinned), || format!("{found:?} bytes are left of {pages} pages"))?;
    }
    check(refused > 4 && device.device_bytes() > refused * PAGE, || format!("{refused} loads were refused"))?;
    let mut expected = cpu(&network, 1)?;
    for number in 1..=2 {
        device.inject(&generated.injections(number))?;
        expected.inject(&generated.injections(number))?;
        assert_eq!(device.run_burst()?, expected.run_burst()?);
    }
    drop(device);
    assert_eq!(live()?, bytes);
    Ok(())
}

/// A network whose rows have lengths from 0 to all neurons: source 7 is a hub.
fn hub(neurons: u32, areas: Vec<Area>) -> selvedge::Result<Arc<Network>> {
    let mut synapses: (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for source in 0..neurons {
        let length = if source == 7 { neurons } else { source % 9 * (source % 5) };
        for at in 0..length {
            synapses.0.push(source);
            synapses.1.push((source * 31 + at * 17) % neurons);
        }
    }
    let count = synapses.0.len();
    let word = |factor: usize, limit: usize| -> Vec<u8> {
        (0..count).map(|at| (at * factor % limit) as u8).collect()
    };
    let (weight, psp, kind) =
        (word(7, 23), word(11, 31), word(1, 3).iter().map(|kind| kind / 2).collect::<Vec<u8>>());
    let arrays =
        SynapseArrays { source: &synapses.0, target: &synapses.1, weight: &weight, psp: &psp, kind: &kind };
    let mut all = Neurons::new(neurons as usize);
    for id in 0..neurons as usize {
        all.threshold[id] = 20.0 + (id % 50) as f32;
        all.refractory[id] = (id % 3) as u16;
        all.area[id] = (id % areas.len()) as u32;
    }
    let rows = Synapses::from_arrays(neurons as usize, &arrays)?;
    Ok(Arc::new(Network::with_areas(all, rows, areas)?))
}

/// Child: hubs, areas that share or are driven by potentials, dense mode, all fire, nobody fires, no synapses, no neurons.
fn networks(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST])?;
    let mut shares = Area::new("shares");
    shares.shares = true;
    let mut driven = Area::new("driven");
    driven.potential_driven = true;
    let both = Area { name: "both".to_owned(), ..shares.clone() };
    let both = Area { potential_driven: true, ..both };
    let every_kind = vec![Area::new("plain"), shares, driven, both];
    with_seeds(1, |_| {
        let mut device = cuda()?;
        for areas in [vec![Area::new("all")], every_kind.clone()] {
            let network = hub(2500, areas)?;
            device.load(&network, 3)?;
            let some = |burst: u64| {
                let some = (0..2500).filter(|id| burst <= 5 && (*id == 7 || id % 11 == burst as u32));
                let mut list: Vec<Injection> = some.map(|id| Injection { id, thousandths: 77_500 }).collect();
                if burst == 4 {
                    list.extend(cancelling(7));
                }
                list
            };
            let results = runs_alike(&mut device, &mut cpu(&network, 3)?, 7, &some)?;
            assert!(results[2].counts.events > 2500, "the hub fires");
        }
        // More injections than a slot has at first, and every neuron fires at once.
        let network = hub(2500, vec![Area::new("all")])?;
        device.load(&network, 3)?;
        let mut expected = cpu(&network, 3)?;
        let all = |burst: u64| {
            let ids = if burst == 1 { 0..2500 } else { 0..0 };
            ids.map(|id| Injection { id, thousandths: 1_000_000 }).collect::<Vec<_>>()
        };
        let results = runs_alike(&mut device, &mut expected, 2, &all)?;
        assert_eq!(results[0].fired.len(), 2500);
        assert_eq!(results[1].counts.events, network.synapses().len() as u64);
        for dense in [true, false] {
            device.set_dense(dense)?;
            expected.set_dense(dense)?;
            runs_alike(&mut device, &mut expected, 3, &|_| Vec::new())?;
        }
        device.load(&network, 3)?;
        let empty = device.run_bursts(150)?;
        assert!(
            empty
                .iter()
                .zip(1..)
                .all(|(result, burst)| *result == BurstResult { burst, ..BurstResult::default() })
        );
        let none = SynapseArrays { source: &[], target: &[], weight: &[], psp: &[], kind: &[] };
        for neurons in [0, 1, 1025] {
            let network = Arc::new(Network::from_arrays(Neurons::new(neurons), &none)?);
            device.load(&network, 1)?;
            let last =
                |_| (0..neurons as u32).rev().take(1).map(|id| Injection { id, thousandths: 5000 }).collect();
            let results = runs_alike(&mut device, &mut cpu(&network, 1)?, 2, &last)?;
            assert_eq!(results[1].fired.len(), neurons.min(1));
        }
        Ok(())
    })
}

/// Child: 2 and 3 shards on one device give the golden hashes of one network.
fn shards(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST])?;
    let generated = GeneratedNetwork::g(1000, 20);
    let network = Arc::new(generated.network()?);
    with_seeds(1, |_| {
        for parts in [2, 3] {
            let mut backends: Vec<Box<dyn Backend>> = Vec::new();
            for _ in 0..parts {
                backends.push(Box::new(cuda()?));
            }
            let mut sharded = Shards::new(backends, Box::new(InProcess))?;
            sharded.load(&network, 7)?;
            let found = hashes(&mut sharded, 200, &|burst| generated.injections(burst))?;
            assert_eq!(found, (0x7ab2_78ea_f9e8_14ea, 0x5284_7a73_f592_73c2, 68_669), "{parts} shards");
        }
        Ok(())
    })
}

/// Child: states, parameters and weights that are changed between bursts; steady input and patterns.
fn changes(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST])?;
    let generated = GeneratedNetwork::g(1100, 12);
    let network = Arc::new(generated.network()?);
    let input = |burst| generated.injections(burst);
    with_seeds(1, |_| {
        let (mut device, mut expected) = (cuda()?, cpu(&network, 5)?);
        device.load(&network, 5)?;
        runs_alike(&mut device, &mut expected, 8, &input)?;
        let middle = device.state()?;

        let weights: Vec<WeightChange> =
            (0..900).map(|at| WeightChange { synapse: at * 13 % 13_000, weight: (at % 256) as u8 }).collect();
        let again = [WeightChange { synapse: 13, weight: 1 }, WeightChange { synapse: 13, weight: 200 }];
        let mut parameters = Vec::new();
        for id in (0..50).chain([700, 701, 1099, 3]) {
            let mut changed = network.parameters()[id as usize];
            changed.threshold = 15.0;
            changed.rest = if id == 3 { 2.0 } else { 1.0 };
            parameters.push((id, changed));
        }
        for backend in [&mut device as &mut dyn Backend, &mut expected] {
            backend.set_weights(&weights)?;
            backend.set_weights(&again)?;
            backend.set_parameters(&parameters)?;
        }
        runs_alike(&mut device, &mut expected, 6, &input)?;
        assert_eq!(device.weights()?, expected.weights()?);

        // Back to an earlier state, with another seed, which a fresh backend continues alike.
        let restored = NetworkState { seed: 6, ..middle };
        let mut expected = cpu(&network, 5)?;
        for backend in [&mut device as &mut dyn Backend, &mut expected] {
            backend.set_state(&restored)?;
            backend.set_parameters(
                &network.parameters().iter().copied().zip(0..).map(|(p, id)| (id, p)).collect::<Vec<_>>(),
            )?;
        }
        let original: Vec<WeightChange> = (0..network.synapses().len() as u64)
            .zip(network.synapses().weights())
            .map(|(synapse, word)| WeightChange { synapse, weight: *word as u8 })
            .collect();
        device.set_weights(&original)?;
        runs_alike(&mut device, &mut expected, 5, &input)?;

        // The same input as a list of every burst and as a pattern.
        let steady: Vec<Injection> = (5..9).map(|id| Injection { id, thousandths: 30_000 }).collect();
        device.set_steady_injections(&steady)?;
        device.set_pattern(Some(InjectionPattern { base: 100, modulus: 50, thousandths: 150_500 }))?;
        for result in device.run_bursts(5)? {
            expected.inject(&input(result.burst))?;
            expected.inject(&steady)?;
            assert_eq!(result, expected.run_burst()?);
        }

        // Bad input is refused, and changes nothing.
        let before = device.state()?;
        let bad = |outcome: selvedge::Result<()>, text: &str| {
            let error = outcome.err().ok_or_else(|| format!("{text} was accepted"))?;
            check(error.to_string().contains(text), || format!("{error} does not say {text}"))
        };
        let spike = Spike { id: 9, potential: 1.0 };
        bad(device.inject(&[Injection { id: 1100, thousandths: 0 }]), "id 1100")?;
        bad(device.set_fired(&[spike, spike]), "two spikes of neuron 9")?;
        bad(device.set_weights(&[WeightChange { synapse: 13_200, weight: 0 }]), "synapse 13200")?;
        bad(device.set_parameters(&[(1100, network.parameters()[0])]), "id 1100")?;
        let short = NetworkState { neurons: Vec::new(), ..before.clone() };
        bad(device.set_state(&short), "1100")?;
        let last = NetworkState { burst: u64::MAX, ..before.clone() };
        bad(device.set_state(&last), "burst 18446744073709551615")?;
        assert_eq!(device.state()?, before);
        Ok(())
    })
}

/// Child: a graph is captured once and launched for each burst, and nothing else is; a lost device leaves the last state.
fn launches(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST])?;
    let network = Arc::new(cases::worked_example_network());
    let mut device = cuda()?;
    check(device.run_burst().is_err() && device.last_state().is_none(), || {
        "no network was needed".to_owned()
    })?;
    device.load(&network, 0)?;
    device.run_burst()?;
    let counts = || {
        let calls = ["cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuStreamBeginCapture_v2"];
        calls.map(|function| fake.call_count(function))
    };
    let (before, launches) = (counts(), fake.launches());
    device.run_bursts(100)?;
    let after = counts();
    assert_eq!((after[0], after[2]), (before[0], before[2]), "nothing is captured again");
    assert_eq!((after[1] - before[1], fake.launches() - launches), (100, 0), "a graph is a burst");
    let bytes = device.device_bytes();
    check(bytes > 0 && bytes < 7 * 6 + 70 * 5 + 1000, || format!("{bytes} bytes of device memory"))?;

    let state = device.state()?;
    fake.lose_context(0, 700);
    let error = device.run_burst().err().ok_or("a lost device ran a burst")?;
    check(matches!(error, Error::ContextLost { .. } | Error::KernelFault { .. }), || format!("{error:?}"))?;
    check(matches!(device.state(), Err(Error::ContextLost { .. })), || {
        "a lost device has a state".to_owned()
    })?;
    assert_eq!(device.last_state(), Some(&state));
    let mut other = cpu(&network, 0)?;
    other.set_state(&state)?;
    assert_eq!(other.run_burst()?.burst, 102);
    Ok(())
}

/// Child: synapses and neurons that are created and removed in mid-run.
fn edits(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST])?;
    with_seeds(1, |_| {
        cases_of_edits::edits_apply_as_in_a_plain_model(&|| Ok(Box::new(cuda()?)))?;
        let shards = || Shards::new(vec![Box::new(cuda()?), Box::new(Cpu::new())], Box::new(InProcess));
        Ok(cases_of_edits::edits_apply_as_in_a_plain_model(&|| Ok(Box::new(shards()?)))?)
    })
}

/// Child: potentials of some neurons, and a simulation that goes on after its device was lost, bit for bit.
fn recovery(fake: &Fake) -> Outcome {
    emulate(fake, &[BURST])?;
    let generated = GeneratedNetwork::g(1100, 12);
    let network = Arc::new(generated.network()?);
    let start = |backend: Box<dyn Backend>| -> selvedge::Result<Simulation> {
        let mut simulation = Simulation::new(network.clone(), backend, 5)?;
        simulation.record_spikes(true);
        simulation.record_potentials(&[1099, 0, 700, 0])?;
        simulation.set_power(20..30, 3.0)?;
        simulation.add_rule(PlasticityRule::AreaWindow {
            source_area: 0,
            target_area: 0,
            window: 2,
            increase: 5,
            decrease: 1,
            prune: true,
            create: Some(SynapseCreation { psp: 4, kind: 0, most: 3 }),
        })?;
        Ok(simulation)
    };
    let run = |simulation: &mut Simulation, burst: u64| -> selvedge::Result<()> {
        let inputs: Vec<(u32, f32)> = generated.injections(burst).iter().map(|one| (one.id, 150.5)).collect();
        simulation.inject(&inputs)?;
        simulation.run_burst().map(drop)
    };
    let (mut found, mut wanted) = (start(Box::new(cuda()?))?, start(Box::new(cpu(&network, 5)?))?);
    for burst in 1..=12 {
        run(&mut found, burst)?;
        run(&mut wanted, burst)?;
    }
    assert_eq!(found.potentials(), wanted.potentials());
    fake.lose_context(0, 700);
    let inputs: Vec<(u32, f32)> = generated.injections(13).iter().map(|one| (one.id, 150.5)).collect();
    // The device is lost at the input or in the burst.
    let staged = found.inject(&inputs).is_ok();
    let error = found.run_burst().err().ok_or("a lost device ran a burst")?;
    check(matches!(error, Error::ContextLost { .. } | Error::KernelFault { .. }), || format!("{error:?}"))?;
    found.recover(Box::new(Cpu::with_threads(2)))?;
    assert_eq!(found.state()?, wanted.state()?);
    if !staged {
        found.inject(&inputs)?;
    }
    wanted.inject(&inputs)?;
    for simulation in [&mut found, &mut wanted] {
        simulation.run_burst()?;
        for burst in 14..=20 {
            run(simulation, burst)?;
        }
    }
    assert_eq!(found.state()?, wanted.state()?);
    assert_eq!((found.weights()?, found.totals()), (wanted.weights()?, wanted.totals()));
    assert_eq!((found.spikes(), found.potentials()), (wanted.spikes(), wanted.potentials()));
    assert_eq!(found.ledger(), wanted.ledger());
    Ok(())
}
