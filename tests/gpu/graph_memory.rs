//! The memory that graphs hold: their own, page-locked memory, and all that a launch in progress still uses.

use selvedge::Error;
use selvedge::driver::LaunchConfig;

use crate::graphs::refused;
use crate::support::{Lab, Outcome, SLOW, assert_all, assert_error, assert_open, basic_ptx, device_tests};

device_tests! {
    a_graph_owns_what_it_allocates, page_locked_memory_between_launches, everything_is_dropped_while_launches_run,
}

const LENGTH: usize = 1 << 13;

fn a_graph_owns_what_it_allocates() -> Outcome {
    let lab = Lab::new()?;
    let (stream, side) = (&lab.stream, lab.device.stream()?);
    let mut addresses = Vec::new();
    let (graph, output) = stream.capture(|stream| {
        let mut output = stream.zeros::<u32>(LENGTH)?;
        for _ in 0..4 {
            let mut scratch = stream.uninitialized::<u32>(LENGTH)?;
            addresses.push(scratch.address());
            lab.copy(stream, output.slice(..)?, scratch.slice_mut(..)?, 0)?;
            lab.increment(stream, scratch.slice_mut(..)?, 0)?;
            lab.copy(stream, scratch.slice(..)?, output.slice_mut(..)?, 0)?;
        }
        lab.increment(&side, output.slice_mut(..)?, SLOW / 8)?;
        Ok(output)
    })?;
    assert_all(&addresses, addresses[0], "scratch memory that serves again");
    let graph = graph.instantiate()?;
    for round in 0..4 {
        // Not the graph's memory, whoever allocates.
        let mut others = Vec::new();
        for _ in 0..4 {
            let mut other = side.uninitialized::<u32>(LENGTH)?;
            assert!(!addresses.contains(&other.address()) && other.address() != output.address());
            side.fill(&mut other, 77)?;
            others.push(other);
        }
        graph.launch(if round % 2 == 0 { stream } else { &side })?;
        assert_all(&side.download(&output)?, 5, "the output");
        for other in &others {
            assert_all(&stream.download(other)?, 77, "a bystander");
        }
    }
    // The output outlives its graph, whose last launch still runs.
    graph.launch(stream)?;
    drop(graph);
    let mut others = Vec::new();
    for _ in 0..8 {
        let mut other = side.uninitialized::<u32>(LENGTH)?;
        side.fill(&mut other, 78)?;
        others.push(other);
    }
    assert_all(&side.download(&output)?, 5, "an output without its graph");
    for other in &others {
        assert_all(&stream.download(other)?, 78, "memory taken after the graph was dropped");
    }
    Ok(())
}

fn page_locked_memory_between_launches() -> Outcome {
    let lab = Lab::new()?;
    let (stream, side) = (&lab.stream, lab.device.stream()?);
    let mut values = stream.zeros::<u32>(LENGTH)?;
    let (from, to) = (lab.device.pinned::<u32>(LENGTH)?, lab.device.register(vec![0u32; LENGTH])?);
    let (graph, (input, output)) = stream.capture(|stream| {
        let input = stream.upload_async(from, &mut values)?;
        lab.increment(stream, values.slice_mut(..)?, SLOW / 4)?;
        let output = stream.download_async(&values, to)?;
        refused("a question about a captured copy", input.is_complete());
        Ok((input.captured(), output.captured()))
    })?;
    let (input, output) = input.zip(output).ok_or("captured copies have no names")?;
    let mut graph = graph.instantiate()?;
    for round in 1..=4u32 {
        graph.host(&input)?.fill(10 * round);
        graph.launch(if round % 2 == 0 { stream } else { &side })?;
        assert_all(graph.host(&output)?, 10 * round + 1, "what came back");
    }
    let (other, ()) = stream.capture(|_| Ok(()))?;
    let mut other = other.instantiate()?;
    assert_error!(other.host(&input), Error::InvalidArgument { .. });
    // The memory is the graph's until its last launch is done.
    graph.launch(stream)?;
    drop(graph);
    let others = (0..4)
        .map(|_| {
            let mut other = lab.device.pinned::<u32>(LENGTH)?;
            other.fill(7);
            Ok(other)
        })
        .collect::<selvedge::Result<Vec<_>>>()?;
    lab.device.synchronize()?;
    for other in &others {
        assert_all(other, 7, "memory taken while the launch ran");
    }
    assert_all(&stream.download(&values)?, 41, "the last launch");
    Ok(())
}

fn everything_is_dropped_while_launches_run() -> Outcome {
    let lab = Lab::new()?;
    let watched = lab.device.stream()?;
    for round in 0..6u32 {
        let (stream, side) = (lab.device.stream()?, lab.device.stream()?);
        let module = lab.device.load(basic_ptx())?;
        let increment = module.function("slow_increment")?;
        let mut values = stream.zeros::<u32>(LENGTH)?;
        let mut result = watched.zeros::<u32>(LENGTH)?;
        let length = LENGTH as u32;
        let (graph, ()) = stream.capture(|stream| {
            let mut scratch = stream.zeros::<u32>(LENGTH)?;
            let config = LaunchConfig::new(1, 256);
            // SAFETY: slow_increment(unsigned*, unsigned, u64) touches `length` elements.
            unsafe { increment.launch(stream, config, (&mut scratch, length, SLOW / 4))? };
            // SAFETY: as above.
            unsafe { increment.launch(&side, config, (&mut values, length, SLOW / 4))? };
            lab.copy(stream, scratch.slice(..)?, values.slice_mut(..)?, 0)?;
            lab.increment(stream, values.slice_mut(..)?, SLOW / 8)?;
            lab.copy(&side, values.slice(..)?, result.slice_mut(..)?, 0)
        })?;
        let graph = graph.instantiate()?;
        graph.launch(&stream)?;
        graph.launch(&side)?;
        assert_open(!side.is_idle()?, "the drops");
        match round % 3 {
            0 => drop((graph, module, increment, values, stream, side)),
            1 => drop((values, stream, side, increment, module, graph)),
            _ => drop((module, side, graph, stream, values, increment)),
        }
        // Were anything free already, these would write over it.
        let mut others = Vec::new();
        for _ in 0..6 {
            let mut other = watched.uninitialized::<u32>(LENGTH)?;
            watched.fill(&mut other, 9)?;
            others.push(other);
        }
        assert_all(&watched.download(&result)?, 2, "the result");
        for other in &others {
            assert_all(&watched.download(other)?, 9, "memory taken while launches ran");
        }
    }
    lab.device.trim()?;
    Ok(())
}
