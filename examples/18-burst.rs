//! A spiking network: a spike runs around a ring of ten neurons, and a counter fires on each third lap. The run is saved, and
//! goes on from the file.
//!
//! ```text
//! cargo run --features burst --example 18-burst
//!
//! neuron 0   |.........|.........|.........|.....
//! neuron 1   .|.........|.........|.........|....
//! ...
//! neuron 9   .........|.........|.........|......
//! counter    ..............................|.....
//! ```

use std::process::ExitCode;

use selvedge::burst::{Cpu, Network, Neurons, Simulation, SynapseArrays};

fn ring() -> selvedge::Result<()> {
    let source: Vec<u32> = (0..10).chain([9]).collect();
    let target: Vec<u32> = (1..10).chain([0, 10]).collect();
    let mut neurons = Neurons::new(11);
    // A synapse adds weight x PSP = 10 to its target in the next burst; the counter keeps it without a leak.
    neurons.threshold.fill(10.0);
    (neurons.threshold[10], neurons.leak[10]) = (30.0, 0.0);
    let synapses =
        SynapseArrays { source: &source, target: &target, weight: &[5; 11], psp: &[2; 11], kind: &[0; 11] };
    let network = Network::from_arrays(neurons, &synapses)?;

    let mut simulation = Simulation::new(network.into(), Box::new(Cpu::new()), 0)?;
    simulation.record_spikes(true);
    simulation.inject(&[(0, 10.0)])?;
    simulation.run(18)?;
    let path = std::env::temp_dir().join(format!("selvedge-ring-{}.burst", std::process::id()));
    simulation.save(&path)?;
    let mut restored = Simulation::restore(&path, Box::new(Cpu::new()))?;
    std::fs::remove_file(&path).ok();

    // Both go on with the same bits.
    simulation.run(18)?;
    restored.run(18)?;
    assert_eq!(simulation.state()?, restored.state()?);
    let mut raster = vec![vec!['.'; 36]; 11];
    let (bursts, ids) = simulation.spikes();
    for (&burst, &id) in bursts.iter().zip(ids) {
        raster[id as usize][burst as usize - 1] = '|';
    }
    for (id, row) in raster.into_iter().enumerate() {
        let name = if id == 10 { "counter".to_owned() } else { format!("neuron {id}") };
        println!("{name:<10} {}", row.into_iter().collect::<String>());
    }
    Ok(())
}

fn main() -> ExitCode {
    match ring() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
