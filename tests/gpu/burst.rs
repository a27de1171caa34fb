//! The spiking engine on a device: the shared cases (tests/cases/burst.rs, tests/cases/burst_changes.rs,
//! tests/cases/burst_edits.rs) with the golden hashes of its specification, and the CPU backend's results, bit for bit.

use std::sync::Arc;

use selvedge::burst::{
    Backend, Cpu, Cuda, GeneratedNetwork, InProcess, Injection, Network, Neurons, Shards, SpikeHash,
    SynapseArrays,
};
use selvedge::driver::Device;

use crate::support::{Need, Outcome, device_tests};

#[path = "../cases/burst.rs"]
mod cases;
#[path = "../cases/burst_changes.rs"]
mod changes;
#[path = "../cases/burst_edits.rs"]
mod edits;

device_tests! {
    the_worked_example_and_behaviours_hold, golden_networks_have_their_hashes, shards_on_one_device_do,
    shards_on_two_devices_do => needs(Need::TwoDevices), bursts_equal_the_cpus, hubs_and_empty_networks_do, changes_between_bursts_apply_as_on_the_cpu,
    saved_and_moved_runs_end_as_on_the_cpu, edits_apply_as_in_a_plain_model, excitability_fires_within_binomial_bounds,
    a_hundred_thousand_bursts_take_constant_memory_and_do_not_drift => alone(),
}

fn cuda() -> selvedge::Result<Cuda> {
    Cuda::new(Device::new(0)?)
}

fn cpu(network: &Arc<Network>, seed: u32) -> selvedge::Result<Cpu> {
    let mut cpu = Cpu::new();
    cpu.load(network, seed)?;
    Ok(cpu)
}

fn the_worked_example_and_behaviours_hold() -> Outcome {
    let mut device = cuda()?;
    cases::worked_example(&mut device);
    cases::behaviours().iter().for_each(|behaviour| behaviour.check(&mut device));
    Ok(())
}

fn golden_networks_have_their_hashes() -> Outcome {
    let mut device = cuda()?;
    for golden in [cases::golden_small(), cases::golden_large(), cases::golden_steady()] {
        let generated = &golden.network;
        let network = Arc::new(generated.network()?);
        golden.check(&network, &mut device);
        device.generate(generated, golden.seed)?;
        assert_eq!(device.weights()?, network.synapses().weights(), "{generated:?}");
        let mut hash = SpikeHash::new();
        let results = device.run_bursts(golden.bursts as usize)?;
        results.iter().for_each(|result| hash.add(result.burst, &result.fired));
        let found = (hash.value(), device.state()?.hash());
        assert_eq!(found, (golden.spike_hash, golden.state_hash), "{generated:?} of the device");
    }
    Ok(())
}

/// Shards of one network, all on this device.
fn shards(parts: usize) -> selvedge::Result<Shards> {
    let backends = (0..parts).map(|_| Ok(Box::new(cuda()?) as Box<dyn Backend>));
    Shards::new(backends.collect::<selvedge::Result<_>>()?, Box::new(InProcess))
}

fn shards_on_one_device_do() -> Outcome {
    let golden = cases::golden_small();
    let network = Arc::new(golden.network.network()?);
    for parts in [2, 3, 8] {
        golden.check(&network, &mut shards(parts)?);
    }
    Ok(())
}

fn shards_on_two_devices_do() -> Outcome {
    let golden = cases::golden_small();
    let network = Arc::new(golden.network.network()?);
    let of_device = |at: usize| Ok(Box::new(Cuda::new(Device::new(at % 2)?)?) as Box<dyn Backend>);
    for parts in [2, 3] {
        let backends = (0..parts).map(of_device).collect::<selvedge::Result<_>>()?;
        golden.check(&network, &mut Shards::new(backends, Box::new(InProcess))?);
    }
    Ok(())
}

fn changes_between_bursts_apply_as_on_the_cpu() -> Outcome {
    let generated = GeneratedNetwork::g(5000, 40);
    changes::changes_apply_alike(&mut cuda()?, &generated, 8)?;
    changes::changes_apply_alike(&mut shards(3)?, &generated, 4)?;
    Ok(changes::auto_changes_no_result(Box::new(cuda()?), &generated)?)
}

fn saved_and_moved_runs_end_as_on_the_cpu() -> Outcome {
    let make = || Ok(Box::new(cuda()?) as Box<dyn Backend>);
    Ok(changes::saved_and_moved_runs_end_alike(&make, &GeneratedNetwork::g(3000, 30), 15)?)
}

fn edits_apply_as_in_a_plain_model() -> Outcome {
    edits::edits_apply_as_in_a_plain_model(&|| Ok(Box::new(cuda()?)))?;
    Ok(edits::edits_apply_as_in_a_plain_model(&|| Ok(Box::new(shards(3)?)))?)
}

fn excitability_fires_within_binomial_bounds() -> Outcome {
    Ok(changes::excitability_fires_within_binomial_bounds(&mut cuda()?, 20_000, 10)?)
}

fn bursts_equal_the_cpus() -> Outcome {
    // Packed sums, and wide ones where injections cancel each other whose magnitudes do not fit.
    let generated = GeneratedNetwork::g(100_000, 40);
    let network = Arc::new(generated.network()?);
    let (mut device, mut expected) = (cuda()?, cpu(&network, 3)?);
    device.load(&network, 3)?;
    for burst in 1..=40 {
        let mut injections = generated.injections(burst);
        if burst % 3 == 0 {
            injections.extend([1 << 42, -(1 << 42)].map(|thousandths| Injection { id: 77, thousandths }));
        }
        device.inject(&injections)?;
        expected.inject(&injections)?;
        assert_eq!(device.run_burst()?, expected.run_burst()?, "burst {burst}");
    }
    assert_eq!(device.state()?, expected.state()?);
    for dense in [true, false] {
        device.set_dense(dense)?;
        expected.set_dense(dense)?;
        assert_eq!(device.run_bursts(5)?, expected.run_bursts(5)?, "dense: {dense}");
    }
    Ok(())
}

fn hubs_and_empty_networks_do() -> Outcome {
    let mut device = cuda()?;
    let count = 200_000u32;
    let target: Vec<u32> = (0..count).chain([5, 6]).collect();
    let mut source = vec![7; count as usize];
    source.extend([count - 1, count - 1]);
    let all = vec![100; target.len()];
    let kind: Vec<u8> = (0..target.len()).map(|at| (at % 3 / 2) as u8).collect();
    let arrays = SynapseArrays { source: &source, target: &target, weight: &all, psp: &all, kind: &kind };
    let none = SynapseArrays { source: &[], target: &[], weight: &[], psp: &[], kind: &[] };
    for (neurons, arrays) in [(count, &arrays), (0, &none), (1, &none), (1025, &none)] {
        let network = Arc::new(Network::from_arrays(Neurons::new(neurons as usize), arrays)?);
        device.load(&network, 1)?;
        let mut expected = cpu(&network, 1)?;
        if neurons > 7 {
            let hub = [Injection { id: 7, thousandths: 5000 }];
            device.inject(&hub)?;
            expected.inject(&hub)?;
        }
        assert_eq!(device.run_bursts(6)?, expected.run_bursts(6)?, "{neurons} neurons");
        assert_eq!(device.state()?, expected.state()?, "{neurons} neurons");
    }
    Ok(())
}

fn a_hundred_thousand_bursts_take_constant_memory_and_do_not_drift() -> Outcome {
    let large = Arc::new(GeneratedNetwork::g(20_000, 30).network()?);
    let mut device = cuda()?;
    device.load(&large, 11)?;
    let (bytes, synapses) = (device.device_bytes(), large.synapses().len() as u64);
    assert!(bytes <= 7 * synapses + 64 * 20_000, "{bytes} bytes");

    let generated = GeneratedNetwork::g(200, 12);
    let network = Arc::new(generated.network()?);
    let mut expected = cpu(&network, 11)?;
    device.load(&network, 11)?;
    device.set_pattern(Some(generated.pattern()))?;
    let in_use = || {
        Device::new(0).map(|device| {
            let statistics = device.pool_statistics();
            (statistics.live_bytes, statistics.reserved_bytes)
        })
    };
    let (mut before, mut spikes) = (None, 0);
    for group in 1..=1000 {
        for found in device.run_bursts(100)? {
            expected.inject(&generated.injections(found.burst))?;
            assert_eq!(found, expected.run_burst()?);
            spikes += found.fired.len();
        }
        // The first group makes the memory for results.
        let found = in_use()?;
        assert_eq!(found, *before.get_or_insert(found), "after {group} runs of 100 bursts");
    }
    assert!(spikes > 1_000_000, "{spikes} spikes");
    let state = device.state()?;
    assert_eq!((state.burst, &state), (100_000, &expected.state()?));
    Ok(())
}
