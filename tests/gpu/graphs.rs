//! Graphs: a launch does what was captured, takes its place among all other uses of its buffers, and holds what it names;
//! what cannot be captured is refused and leaves the capture alive.

use std::sync::mpsc;

use selvedge::Error;
use selvedge::driver::{Captured, DeviceBuffer, Function, GraphNodeKind, LaunchConfig, Stream};

use crate::support::{Lab, Need, Outcome, SLOW, assert_all, assert_open, basic_ptx, device_tests};

device_tests! {
    launches_do_what_was_captured, a_launch_takes_its_place, a_launch_does_not_block => needs(Need::FreeRunning),
    streams_fork_and_join, branches_run_side_by_side => needs(Need::FreeRunning), launches_on_several_streams,
    refusals_leave_the_capture_alive,
    errors_and_panics_discard, other_threads_go_on, a_graph_is_updated, closures_are_captured_again,
    a_kernel_is_set, a_picture, a_thousand_nodes,
    conditional_parts => needs(Need::Isa(8, 3)),
}

const LENGTH: usize = 1 << 13;

/// The kernel y = factor x + y, on numbers that `f32` holds exactly.
struct Saxpy(Function);

impl Saxpy {
    fn new(lab: &Lab) -> selvedge::Result<Saxpy> {
        lab.kernel("saxpy").map(Saxpy)
    }

    fn launch(
        &self,
        stream: &Stream,
        factor: f32,
        x: &DeviceBuffer<f32>,
        y: &mut DeviceBuffer<f32>,
    ) -> selvedge::Result<()> {
        let length = y.len() as u32;
        // SAFETY: saxpy(float, const float*, float*, unsigned) stays below `length`, which is that of both.
        unsafe { self.0.launch(stream, LaunchConfig::for_elements(y.len()), (factor, x, y, length)) }
    }
}

pub fn refused<R>(what: &str, result: selvedge::Result<R>) {
    match result {
        Err(Error::NotCapturable { .. }) => {}
        Err(error) => panic!("{what} is refused with {error}"),
        Ok(_) => panic!("{what} is not refused"),
    }
}

fn launches_do_what_was_captured() -> Outcome {
    let lab = Lab::new()?;
    let (stream, saxpy) = (&lab.stream, Saxpy::new(&lab)?);
    let start: Vec<f32> = (0..LENGTH).map(|index| (index % 7) as f32).collect();
    let (mut x, mut y) = (stream.upload(&start)?, stream.upload(&vec![1.0f32; LENGTH])?);
    let (graph, ()) = stream.capture(|stream| {
        saxpy.launch(stream, 2.0, &x, &mut y)?;
        stream.fill(&mut x, 1.0)?;
        saxpy.launch(stream, 3.0, &x, &mut y)
    })?;
    assert_all(&stream.download(&y)?, 1.0, "nothing is done by the capture");
    let kinds: Vec<_> = graph.nodes()?.iter().map(|node| node.kind()).collect();
    assert_eq!(kinds, [GraphNodeKind::Kernel, GraphNodeKind::Fill, GraphNodeKind::Kernel]);
    let graph = graph.instantiate()?;
    graph.upload(stream)?;
    let (mut model_x, mut model_y) = (start, vec![1.0f32; LENGTH]);
    for round in 0..5 {
        graph.launch(stream)?;
        for (x, y) in model_x.iter_mut().zip(&mut model_y) {
            *y += 2.0 * *x;
            *x = 1.0;
            *y += 3.0 * *x;
        }
        assert_eq!(stream.download(&y)?, model_y, "launch {round}");
    }
    // The graph holds what it names.
    drop((x, saxpy));
    let other = lab.device.stream()?;
    graph.launch(&other)?;
    model_y.iter_mut().for_each(|y| *y += 5.0);
    assert_eq!(other.download(&y)?, model_y, "a launch after its buffers and kernel were dropped");
    Ok(())
}

fn a_launch_takes_its_place() -> Outcome {
    let lab = Lab::new()?;
    let (late, prompt, third) = (lab.device.stream()?, lab.device.stream()?, lab.device.stream()?);
    let mut from = late.zeros::<u32>(LENGTH)?;
    let mut to = late.zeros::<u32>(LENGTH)?;
    let (graph, ()) = prompt.capture(|stream| lab.copy(stream, from.slice(..)?, to.slice_mut(..)?, SLOW))?;
    let graph = graph.instantiate()?;
    graph.launch(&prompt)?;
    let mut copy = third.zeros::<u32>(LENGTH)?;
    lab.device.synchronize()?;
    for round in 1..=3u32 {
        // The launch reads what a slow kernel of another stream writes, the copy what the launch writes; and what the
        // launch reads is overwritten only after it.
        lab.set(&late, from.slice_mut(..)?, round, SLOW)?;
        graph.launch(&prompt)?;
        lab.copy(&third, to.slice(..)?, copy.slice_mut(..)?, 0)?;
        lab.set(&late, from.slice_mut(..)?, 100 + round, 0)?;
        assert_open(!third.is_idle()?, "the issue");
        assert_all(&third.download(&copy)?, round, "what the launch copied");
        assert_all(&prompt.download(&from)?, 100 + round, "the write after the launch");
    }
    Ok(())
}

fn a_launch_does_not_block() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(LENGTH)?;
    let (graph, ()) = lab.stream.capture(|stream| lab.increment(stream, values.slice_mut(..)?, SLOW / 4))?;
    let graph = graph.instantiate()?;
    graph.launch(&lab.stream)?;
    lab.stream.synchronize()?;
    for _ in 0..8 {
        graph.launch(&lab.stream)?;
    }
    assert_open(!lab.stream.is_idle()?, "eight launches");
    assert_all(&lab.stream.download(&values)?, 9, "the counters");
    Ok(())
}

fn streams_fork_and_join() -> Outcome {
    let lab = Lab::new()?;
    let (stream, left, right) = (&lab.stream, lab.device.stream()?, lab.device.stream()?);
    let mut source = stream.zeros::<u32>(LENGTH)?;
    let mut halves = (left.zeros::<u32>(LENGTH)?, right.zeros::<u32>(LENGTH)?);
    let mut outside = right.zeros::<u32>(LENGTH)?;
    let mut event = lab.device.event()?;
    let (graph, ()) = stream.capture(|stream| {
        lab.increment(stream, source.slice_mut(..)?, SLOW / 2)?;
        // Joins by what it reads.
        lab.copy(&left, source.slice(..)?, halves.0.slice_mut(..)?, SLOW / 2)?;
        // Has nothing to do with the capture yet, and then joins by an event.
        lab.increment(&right, outside.slice_mut(..)?, 0)?;
        event.record(stream)?;
        right.wait(&event)?;
        lab.copy(&right, source.slice(..)?, halves.1.slice_mut(..)?, 0)?;
        lab.increment(&right, halves.1.slice_mut(..)?, SLOW / 2)?;
        // After both.
        lab.increment(stream, source.slice_mut(..)?, 0)
    })?;
    assert_all(&right.download(&outside)?, 1, "work outside");
    let graph = graph.instantiate()?;
    for round in 1..=4u32 {
        graph.launch([stream, &left, &right][round as usize % 3])?;
        assert_all(&left.download(&halves.1)?, 2 * round, "the right branch");
        assert_all(&right.download(&halves.0)?, 2 * round - 1, "the left branch");
        assert_all(&left.download(&source)?, 2 * round, "the join");
    }
    assert_all(&right.download(&outside)?, 1, "work outside after launches");
    Ok(())
}

fn branches_run_side_by_side() -> Outcome {
    let lab = Lab::new()?;
    let streams = [lab.stream.clone(), lab.device.stream()?, lab.device.stream()?];
    let source = lab.stream.upload(&[5u32; LENGTH])?;
    let mut outs = Vec::new();
    for stream in &streams {
        outs.push(stream.zeros::<u32>(LENGTH)?);
    }
    let (graph, ()) = lab.stream.capture(|origin| {
        for (stream, out) in streams.iter().zip(&mut outs) {
            stream.wait_for(origin)?;
            lab.copy(stream, source.slice(..)?, out.slice_mut(..)?, SLOW)?;
        }
        Ok(())
    })?;
    let graph = graph.instantiate()?;
    let mut best = f64::MAX;
    for _ in 0..4 {
        lab.device.synchronize()?;
        let started = std::time::Instant::now();
        graph.launch(&lab.stream)?;
        lab.stream.synchronize()?;
        best = best.min(started.elapsed().as_nanos() as f64 / SLOW as f64);
    }
    // The origin's own copy comes before the others' waits for it.
    assert!(best < 2.6, "three branches took {best:.1} times as long as one: they wait for each other");
    for (stream, out) in streams.iter().zip(&outs) {
        assert_all(&stream.download(out)?, 5, "a branch");
    }
    Ok(())
}

fn launches_on_several_streams() -> Outcome {
    let lab = Lab::new()?;
    let streams = (0..6).map(|_| lab.device.stream()).collect::<selvedge::Result<Vec<_>>>()?;
    let mut counter = lab.stream.zeros::<u32>(LENGTH)?;
    let graph = |nanoseconds| {
        let (graph, ()) = lab.stream.capture(|stream| {
            let mut scratch = stream.zeros::<u32>(LENGTH)?;
            lab.copy(stream, counter.slice(..)?, scratch.slice_mut(..)?, nanoseconds)?;
            lab.increment(stream, scratch.slice_mut(..)?, 0)?;
            lab.copy(stream, scratch.slice(..)?, counter.slice_mut(..)?, 0)
        })?;
        graph.instantiate()
    };
    let mut graph = graph;
    let graphs = [graph(0)?, graph(SLOW / 16)?];
    for round in 0..60usize {
        graphs[round % 2].launch(&streams[round * 5 % 6])?;
    }
    assert_open(!streams[59 * 5 % 6].is_idle()?, "sixty launches");
    assert_all(&lab.stream.download(&counter)?, 60, "the counter");
    Ok(())
}

fn refusals_leave_the_capture_alive() -> Outcome {
    let lab = Lab::new()?;
    let (device, stream, side) = (lab.device, &lab.stream, lab.device.stream()?);
    let (mut a, mut b) = (stream.zeros::<u32>(LENGTH)?, stream.zeros::<u32>(LENGTH)?);
    let mut bystander = side.upload(&[3u32; 10])?;
    let mut outside = device.event()?;
    outside.record(&side)?;
    let unrecorded = device.event()?;
    let (earlier, ()) = stream.capture(|stream| stream.fill(&mut a, 9))?;
    let earlier = earlier.instantiate()?;
    let (graph, ()) = stream.capture(|stream| {
        lab.increment(stream, a.slice_mut(..)?, 0)?;
        refused("an upload", stream.copy_from_host(&[1u32; LENGTH], &mut b));
        refused("a download", stream.download(&b));
        refused("a download of what the capture writes", side.download(&a));
        refused("a synchronize", stream.synchronize());
        refused("a question", stream.is_idle());
        refused("a device's synchronize", device.synchronize());
        refused("a callback", stream.on_complete(|| {}));
        refused("a wait for a mark from outside", stream.wait(&outside));
        refused("a wait for a stream outside", stream.wait_for(&side));
        refused("a launch of a graph", earlier.launch(stream));
        refused("a launch of a graph that writes the same", earlier.launch(&side));
        assert!(matches!(side.capture(|_| Ok(())), Err(Error::InvalidArgument { .. })));
        stream.wait(&unrecorded)?;
        // Outside of the capture everything goes on.
        outside.synchronize()?;
        side.synchronize()?;
        side.copy_from_host(&[4u32; 10], &mut bystander)?;
        assert_eq!(side.download(&bystander)?, [4; 10]);
        drop(side.zeros::<u32>(1 << 20)?);
        device.trim()?;
        drop(device.load(basic_ptx())?.function("empty")?);
        lab.copy(stream, a.slice(..)?, b.slice_mut(..)?, 0)
    })?;
    assert_eq!(graph.nodes()?.len(), 2);
    let graph = graph.instantiate()?;
    for round in 1..=2 {
        graph.launch(stream)?;
        assert_all(&side.download(&b)?, round, "the copy");
    }
    Ok(())
}

fn errors_and_panics_discard() -> Outcome {
    let lab = Lab::new()?;
    let (stream, side) = (&lab.stream, lab.device.stream()?);
    let mut values = stream.upload(&[1u32; LENGTH])?;
    for round in 0..10u32 {
        refused(
            "a closure that failed",
            stream.capture(|stream| {
                let mut scratch = stream.zeros::<u32>(LENGTH)?;
                lab.copy(&side, values.slice(..)?, scratch.slice_mut(..)?, 0)?;
                lab.increment(stream, values.slice_mut(..)?, 0)?;
                side.synchronize()
            }),
        );
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            stream.capture::<()>(|stream| {
                lab.increment(stream, values.slice_mut(..)?, 0)?;
                lab.increment(&side, values.slice_mut(..)?, 0)?;
                std::panic::resume_unwind(Box::new("on purpose"))
            })
        }));
        assert!(outcome.is_err(), "the panic was lost");
        assert_all(&side.download(&values)?, 1 + round, "nothing was done");
        lab.increment(if round % 2 == 0 { stream } else { &side }, values.slice_mut(..)?, 0)?;
    }
    stream.synchronize()?;
    side.synchronize()?;
    Ok(())
}

fn other_threads_go_on() -> Outcome {
    const ROUNDS: usize = 20;
    let lab = Lab::new()?;
    let (captures, finished) = (std::sync::atomic::AtomicBool::new(true), mpsc::channel());
    let work = |seed: u32| -> selvedge::Result<()> {
        let stream = lab.device.stream()?;
        let mut rounds = 0;
        while captures.load(std::sync::atomic::Ordering::Relaxed) || rounds < 3 {
            let mut own = stream.zeros::<u32>(LENGTH << (rounds % 6))?;
            lab.set(&stream, own.slice_mut(..)?, seed + rounds, 10_000)?;
            match rounds % 6 {
                0 => stream.synchronize()?,
                1 => lab.device.synchronize()?,
                2 => lab.device.trim()?,
                3 => drop(lab.device.load(basic_ptx())?.function("empty")?),
                4 => drop(lab.device.pinned::<u32>(1 << rounds.min(20))?),
                _ => {
                    let (graph, ()) =
                        stream.capture(|stream| lab.increment(stream, own.slice_mut(..)?, 0))?;
                    graph.instantiate()?.launch(&stream)?;
                    stream.fill(&mut own, seed + rounds)?;
                }
            }
            assert_all(&stream.download(&own)?, seed + rounds, "another thread's buffer");
            rounds += 1;
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Outcome {
        for seed in [1000, 2000] {
            let (sender, work) = (finished.0.clone(), &work);
            scope.spawn(move || sender.send(work(seed)));
        }
        let capture = || -> Outcome {
            let mut values = lab.stream.zeros::<u32>(LENGTH)?;
            for round in 0..ROUNDS {
                let (graph, ()) = lab.stream.capture(|stream| {
                    for _ in 0..50 {
                        let mut scratch = stream.uninitialized::<u32>(LENGTH)?;
                        lab.copy(stream, values.slice(..)?, scratch.slice_mut(..)?, 0)?;
                        lab.increment(stream, scratch.slice_mut(..)?, 0)?;
                        lab.copy(stream, scratch.slice(..)?, values.slice_mut(..)?, 0)?;
                    }
                    Ok(())
                })?;
                graph.instantiate()?.launch(&lab.stream)?;
                let wanted = 50 * (round as u32 + 1);
                assert_all(&lab.stream.download(&values)?, wanted, "the captured buffer");
            }
            Ok(())
        };
        let outcome = capture();
        captures.store(false, std::sync::atomic::Ordering::Relaxed);
        for _ in 0..2 {
            finished.1.recv()??;
        }
        outcome
    })
}

fn a_graph_is_updated() -> Outcome {
    let lab = Lab::new()?;
    let (stream, saxpy) = (&lab.stream, Saxpy::new(&lab)?);
    let x = stream.upload(&[1.0f32; LENGTH])?;
    let mut y = stream.zeros::<f32>(LENGTH)?;
    let mut long = stream.zeros::<f32>(2 * LENGTH)?;
    let long_x = stream.upload(&vec![2.0f32; 2 * LENGTH])?;
    let (graph, ()) = stream.capture(|stream| saxpy.launch(stream, 1.0, &x, &mut y))?;
    let mut graph = graph.instantiate()?;
    graph.launch(stream)?;
    // Another factor, while the launch may still run; then other buffers and another shape.
    let (again, ()) = stream.capture(|stream| saxpy.launch(stream, 10.0, &x, &mut y))?;
    graph.update(again)?;
    graph.launch(stream)?;
    assert_all(&stream.download(&y)?, 11.0, "the first and the second form");
    let (again, ()) = stream.capture(|stream| saxpy.launch(stream, 4.0, &long_x, &mut long))?;
    graph.update(again)?;
    drop((long_x, x));
    graph.launch(stream)?;
    assert_all(&stream.download(&long)?, 8.0, "other buffers");
    assert_all(&stream.download(&y)?, 11.0, "the earlier ones");
    // A graph that differs in more is refused and returned.
    let (more, ()) = stream.capture(|stream| {
        stream.fill(&mut y, 1.0)?;
        stream.fill(&mut long, 3.0)
    })?;
    let failed = graph.update(more).err().ok_or("a graph of other nodes was taken")?;
    assert!(matches!(*failed.error, Error::GraphNotUpdatable { .. }), "{failed}");
    graph.launch(stream)?;
    assert_all(&stream.download(&long)?, 16.0, "the graph as it was");
    failed.graph.instantiate()?.launch(stream)?;
    assert_all(&stream.download(&long)?, 3.0, "the graph that was refused");
    Ok(())
}

fn closures_are_captured_again() -> Outcome {
    let lab = Lab::new()?;
    let stream = &lab.stream;
    let mut work = Captured::new(|stream: &Stream, &(length, rounds): &(usize, u32)| {
        let mut output = stream.zeros::<u32>(length)?;
        for _ in 0..rounds {
            let mut scratch = stream.uninitialized::<u32>(length)?;
            lab.copy(stream, output.slice(..)?, scratch.slice_mut(..)?, 0)?;
            lab.increment(stream, scratch.slice_mut(..)?, 0)?;
            lab.copy(stream, scratch.slice(..)?, output.slice_mut(..)?, 0)?;
        }
        Ok(output)
    });
    let keys = [((100, 2), 1), ((100, 2), 1), ((5000, 2), 2), ((5000, 7), 3), ((5000, 7), 3), ((100, 2), 4)];
    for (key, captures) in keys {
        let output = work.launch(stream, key)?;
        assert_eq!(output.len(), key.0);
        assert_all(&stream.download(output)?, key.1, "the output");
        assert_eq!(work.captures(), captures, "{key:?}");
    }
    Ok(())
}

fn a_kernel_is_set() -> Outcome {
    let lab = Lab::new()?;
    let (stream, saxpy) = (&lab.stream, Saxpy::new(&lab)?);
    let (x, mut y) = (stream.upload(&[1.0f32; LENGTH])?, stream.zeros::<f32>(LENGTH)?);
    let (graph, ()) = stream.capture(|stream| {
        stream.fill(&mut y, 1.0)?;
        saxpy.launch(stream, 2.0, &x, &mut y)
    })?;
    let place = graph.nodes()?.iter().position(|node| node.kernel() == Some("saxpy")).ok_or("no kernel")?;
    let mut graph = graph.instantiate()?;
    graph.launch(stream)?;
    assert_all(&stream.download(&y)?, 3.0, "as captured");
    let half = (LENGTH / 2) as u32;
    let other = lab.device.stream()?.upload(&[5.0f32; LENGTH])?;
    let config = LaunchConfig::for_elements(LENGTH / 2);
    // SAFETY: saxpy(float, const float*, float*, unsigned) stays below `half`; the fill comes before it.
    unsafe { graph.set_kernel(place, config, (3.0f32, &other, &mut y, half))? };
    drop((x, other));
    graph.launch(stream)?;
    let found = stream.download(&y)?;
    assert_all(&found[..LENGTH / 2], 16.0, "with other arguments");
    assert_all(&found[LENGTH / 2..], 1.0, "outside of the new shape");
    // SAFETY: it is refused.
    let refused = unsafe { graph.set_kernel(1 - place, config, (3.0f32, &y, half)) };
    assert!(refused.is_err(), "a fill is no kernel");
    Ok(())
}

fn a_picture() -> Outcome {
    let lab = Lab::new()?;
    let side = lab.device.stream()?;
    let (mut a, mut b) = (lab.stream.zeros::<u32>(LENGTH)?, lab.stream.zeros::<u32>(LENGTH)?);
    let (graph, ()) = lab.stream.capture(|stream| {
        lab.set(stream, a.slice_mut(..)?, 1, 0)?;
        lab.copy(&side, a.slice(..)?, b.slice_mut(..)?, 0)?;
        stream.fill(&mut a, 2)
    })?;
    let dot = graph.to_dot()?;
    assert!(dot.starts_with("digraph") && dot.trim_end().ends_with('}'), "{dot}");
    assert!(dot.contains("slow_set") && dot.contains("slow_copy") && dot.contains("fill"), "{dot}");
    let nodes = graph.nodes()?;
    assert_eq!(nodes.len(), 3);
    assert_eq!(dot.matches("->").count(), nodes.iter().map(|node| node.after().len()).sum::<usize>());
    // The driver may also keep the edge that the chain implies.
    assert_eq!((nodes[0].after().len(), nodes[1].after()), (0, &[0usize][..]), "{dot}");
    assert!(nodes[2].after().contains(&1), "{dot}");
    let shape = nodes[0].shape().ok_or("a kernel without a shape")?;
    assert_eq!((shape.0.x, shape.1.x), (1, 256));
    Ok(())
}

fn a_thousand_nodes() -> Outcome {
    let lab = Lab::new()?;
    let streams = [lab.stream.clone(), lab.device.stream()?, lab.device.stream()?, lab.device.stream()?];
    let mut counters = Vec::new();
    for stream in &streams {
        counters.push(stream.zeros::<u32>(256)?);
    }
    let (graph, ()) = lab.stream.capture(|origin| {
        for node in 0..1000usize {
            // Each stream counts in one of the buffers, which change hands all the time.
            let stream = &streams[node * 7 % 4];
            stream.wait_for(origin)?;
            lab.increment(stream, counters[node * 3 % 4].slice_mut(..)?, 0)?;
        }
        Ok(())
    })?;
    assert_eq!(graph.nodes()?.iter().filter(|node| node.kind() == GraphNodeKind::Kernel).count(), 1000);
    let graph = graph.instantiate()?;
    for launch in 1..=5u32 {
        graph.launch(&streams[launch as usize % 4])?;
    }
    for (stream, counter) in streams.iter().zip(&counters) {
        assert_all(&stream.download(counter)?, 5 * 250, "a counter");
    }
    Ok(())
}

fn conditional_parts() -> Outcome {
    let lab = Lab::new()?;
    let stream = &lab.stream;
    let mut condition = stream.zeros::<u32>(1)?;
    let mut turns = stream.zeros::<u32>(LENGTH)?;
    let mut done = stream.zeros::<u32>(LENGTH)?;
    let (graph, ()) = stream.capture(|stream| {
        stream.run_if(&condition, |stream| lab.increment(stream, done.slice_mut(..)?, 0))?;
        // Up to 0 again, past the largest number.
        stream.run_while(&mut condition, |stream, condition| {
            lab.increment(stream, turns.slice_mut(..)?, 0)?;
            lab.increment(stream, condition.slice_mut(..)?, 0)
        })
    })?;
    let graph = graph.instantiate()?;
    let (mut wanted_turns, mut wanted_done) = (0, 0);
    for count in [0u32, 3, 1, 0, 20] {
        stream.fill(&mut condition, count.wrapping_neg())?;
        graph.launch(stream)?;
        wanted_turns += count;
        wanted_done += u32::from(count != 0);
        assert_all(&stream.download(&turns)?, wanted_turns, "a loop");
        assert_all(&stream.download(&done)?, wanted_done, "a part that may be left out");
    }
    Ok(())
}
