//! The spiking engine on a device: the golden hashes of its specification, and the CPU backend's results, bit for bit.

use std::sync::Arc;

use selvedge::burst::{
    Backend, Cpu, Cuda, GeneratedNetwork, InProcess, Injection, Network, Neurons, Shards, SpikeHash,
    SynapseArrays,
};
use selvedge::driver::Device;

use crate::support::{Outcome, device_tests};

device_tests! {
    golden_networks_have_their_hashes, shards_on_one_device_do, bursts_equal_the_cpus,
    hubs_and_empty_networks_do, memory_is_constant_over_many_bursts => alone(),
}

/// The spike hash and the state hash of G(1000, 20), seed 7, after 200 bursts.
const GOLDEN: (u64, u64) = (0x7ab2_78ea_f9e8_14ea, 0x5284_7a73_f592_73c2);

fn cuda() -> selvedge::Result<Cuda> {
    Cuda::new(Device::new(0)?)
}

fn cpu(network: &Arc<Network>, seed: u32) -> selvedge::Result<Cpu> {
    let mut cpu = Cpu::new();
    cpu.load(network, seed)?;
    Ok(cpu)
}

fn hashes(
    backend: &mut dyn Backend,
    generated: &GeneratedNetwork,
    bursts: u64,
) -> selvedge::Result<(u64, u64)> {
    let mut hash = SpikeHash::new();
    for burst in 1..=bursts {
        backend.inject(&generated.injections(burst))?;
        hash.add(burst, &backend.run_burst()?.fired);
    }
    Ok((hash.value(), backend.state()?.hash()))
}

fn golden_networks_have_their_hashes() -> Outcome {
    let mut device = cuda()?;
    for (generated, seed, bursts, golden) in [
        (GeneratedNetwork::g(1000, 20), 7, 200, GOLDEN),
        (GeneratedNetwork::g(5000, 50), 99, 60, (0x5539_724a_2ef9_bff9, 0xbc75_10d3_2daf_c972)),
        (GeneratedNetwork::s(10_000, 100, 100), 1, 10, (0xfbf7_fc1b_44e5_0ce7, 0xf9a0_dafb_fe83_fed8)),
    ] {
        let network = Arc::new(generated.network()?);
        device.load(&network, seed)?;
        assert_eq!(hashes(&mut device, &generated, bursts)?, golden, "{generated:?}");
        device.generate(&generated, seed)?;
        assert_eq!(device.weights()?, network.synapses().weights(), "{generated:?}");
        let mut hash = SpikeHash::new();
        let results = device.run_bursts(bursts as usize)?;
        results.iter().for_each(|result| hash.add(result.burst, &result.fired));
        assert_eq!((hash.value(), device.state()?.hash()), golden, "{generated:?} of the device");
    }
    Ok(())
}

fn shards_on_one_device_do() -> Outcome {
    let generated = GeneratedNetwork::g(1000, 20);
    let network = Arc::new(generated.network()?);
    for parts in [2, 3, 8] {
        let mut backends: Vec<Box<dyn Backend>> = Vec::new();
        for _ in 0..parts {
            backends.push(Box::new(cuda()?));
        }
        let mut shards = Shards::new(backends, Box::new(InProcess))?;
        shards.load(&network, 7)?;
        assert_eq!(hashes(&mut shards, &generated, 200)?, GOLDEN, "{parts} shards");
    }
    Ok(())
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

fn memory_is_constant_over_many_bursts() -> Outcome {
    let generated = GeneratedNetwork::g(20_000, 30);
    let network = Arc::new(generated.network()?);
    let (mut device, mut expected) = (cuda()?, cpu(&network, 11)?);
    device.load(&network, 11)?;
    let bytes = device.device_bytes();
    let synapses = network.synapses().len() as u64;
    assert!(bytes <= 7 * synapses + 64 * 20_000, "{bytes} bytes");
    device.run_bursts(10)?;
    expected.run_bursts(10)?;
    let in_use = || {
        Device::new(0).map(|device| {
            let statistics = device.pool_statistics();
            (statistics.live_bytes, statistics.reserved_bytes)
        })
    };
    let before = in_use()?;
    device.set_pattern(Some(generated.pattern()))?;
    for _ in 0..100 {
        let last = device.run_bursts(100)?.pop();
        assert!(last.is_some_and(|last| last.counts.candidates > 0));
    }
    assert_eq!(in_use()?, before);
    for burst in 11..=10_010 {
        expected.inject(&generated.injections(burst))?;
        expected.run_burst()?;
    }
    assert_eq!(device.state()?, expected.state()?);
    Ok(())
}
