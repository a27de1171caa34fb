//! Graphs that change: captured again for another key, updated by another capture, or given other arguments.

use selvedge::Error;
use selvedge::driver::{Captured, DeviceBuffer, ExecutableGraph, LaunchConfig, Stream};

use super::graphs::{Ground, LENGTH, Outcome, same};
use super::model::{made, mixed};
use super::support::Fake;

/// A closure is captured again when its key changes, and its graph updated where that suffices.
pub fn captured_closures(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let stream = ground.stream.clone();
    let (make, mix) = (ground.make.clone(), ground.mix.clone());
    let mut work = Captured::new(|stream: &Stream, &(length, rounds): &(usize, u32)| {
        let mut output = stream.zeros::<u8>(length)?;
        for salt in 0..rounds {
            let mut scratch = stream.uninitialized::<u8>(length)?;
            let config = LaunchConfig::new(1, 32);
            // SAFETY: the kernels touch `length` bytes.
            unsafe {
                make.launch(stream, config, (&mut scratch, length as u64, salt))?;
                mix.launch(stream, config, (&scratch, &mut output, length as u64, salt))?;
            }
        }
        Ok(output)
    });
    for (key, captures) in
        [((64, 2), 1), ((64, 2), 1), ((80, 2), 2), ((80, 5), 3), ((80, 5), 3), ((64, 2), 4)]
    {
        let output = work.launch(&stream, key)?;
        let mut wanted = vec![0u8; key.0];
        for salt in 0..key.1 {
            mixed(fake, &made(fake, key.0, salt), &mut wanted, salt);
        }
        same(&format!("the work for {key:?}"), &stream.download(output)?, &wanted)?;
        if work.captures() != captures {
            return Err(format!("captured {} times, not {captures}", work.captures()).into());
        }
    }
    drop(work);
    // A graph of other kernels is refused and given back.
    let (mut a, mut b) = (stream.zeros::<u8>(LENGTH)?, stream.zeros::<u8>(LENGTH)?);
    let (graph, ()) = stream.capture(|stream| ground.make(stream, &mut a, 1))?;
    let mut graph = graph.instantiate()?;
    let (other, ()) = stream.capture(|stream| {
        ground.make(stream, &mut a, 2)?;
        ground.mix(stream, &a, &mut b, 3)
    })?;
    let refused = match graph.update(other) {
        Err(failed) => failed,
        Ok(()) => return Err("a graph with another node was taken".into()),
    };
    if !matches!(*refused.error, Error::GraphNotUpdatable { .. }) {
        return Err(format!("refused with {}", refused.error).into());
    }
    graph.launch(&stream)?;
    same("the graph as it was", &stream.download(&a)?, &made(fake, LENGTH, 1))?;
    refused.graph.instantiate()?.launch(&stream)?;
    same("the one that was refused", &stream.download(&a)?, &made(fake, LENGTH, 2))
}

/// One kernel gets other arguments, and the graph holds what they name.
pub fn changed_kernels(fake: &Fake) -> Outcome {
    let ground = Ground::new()?;
    let stream = ground.stream.clone();
    let (mut a, mut b) = (stream.upload(&[1u8; LENGTH])?, stream.upload(&[2u8; LENGTH])?);
    let record = |ground: &Ground, a: &mut DeviceBuffer<u8>, b: &mut DeviceBuffer<u8>, salt| {
        ground.stream.capture(|stream| {
            ground.make(stream, a, salt)?;
            ground.mix(stream, a, b, salt)
        })
    };
    let mut graph = record(&ground, &mut a, &mut b, 1)?.0.instantiate()?;
    graph.launch(&stream)?;
    let mut wanted = vec![2u8; LENGTH];
    mixed(fake, &made(fake, LENGTH, 1), &mut wanted, 1);
    same("the first launch", &stream.download(&b)?, &wanted)?;
    let other = stream.upload(&[9u8; LENGTH])?;
    let (length, config) = (LENGTH as u64, LaunchConfig::new(1, 32));
    let place = |graph: &ExecutableGraph, name| -> Result<usize, Box<dyn std::error::Error>> {
        let nodes = graph.graph().nodes()?;
        Ok(nodes.iter().position(|node| node.kernel() == Some(name)).ok_or("no such kernel")?)
    };
    let mix = place(&graph, "mix")?;
    // SAFETY: `mix` touches `length` bytes; the buffers of the other node are not concerned.
    unsafe { graph.set_kernel(mix, config, (&other, &mut b, length, 7u32))? };
    drop(other);
    graph.launch(&stream)?;
    mixed(fake, &[9; LENGTH], &mut wanted, 7);
    same("other arguments", &stream.download(&b)?, &wanted)?;
    // Nodes keep their names when the graph takes over another capture.
    graph.update(record(&ground, &mut a, &mut b, 3)?.0).map_err(Error::from)?;
    graph.launch(&stream)?;
    mixed(fake, &made(fake, LENGTH, 3), &mut wanted, 3);
    same("an update", &stream.download(&b)?, &wanted)?;
    let make = place(&graph, "make")?;
    // SAFETY: as above.
    unsafe { graph.set_kernel(make, config, (&mut a, length, 8u32))? };
    graph.launch(&stream)?;
    mixed(fake, &made(fake, LENGTH, 8), &mut wanted, 3);
    same("a kernel of the update", &stream.download(&b)?, &wanted)?;
    // Arguments of another type are refused.
    // SAFETY: nothing is changed.
    let wrong = unsafe {
        [
            graph.set_kernel(make, config, (&mut a, length)),
            graph.set_kernel(99, config, (&mut a, length, 8u32)),
            graph.set_kernel(make, LaunchConfig::new(0, 1), (&mut a, length, 8u32)),
            graph.set_kernel(make, config.cooperative(), (&mut a, length, 8u32)),
        ]
    };
    match wrong.iter().find(|result| result.is_ok()) {
        None => Ok(()),
        Some(_) => Err(format!("refusals: {wrong:?}").into()),
    }
}
