//! Graphs: what a launch does, and what is wrong with it.

use super::*;

impl Bench {
    /// A graph of what `work` does on the stream, and an instance of it.
    pub(super) fn graph(&self, stream: u64, work: impl FnOnce() -> Outcome) -> Result<(u64, u64), Failed> {
        let (mut graph, mut instance) = (0, 0);
        call!(self, capture_begin(stream, 1));
        work()?;
        call!(self, capture_end(stream, &raw mut graph));
        call!(self, instantiate(&raw mut instance, graph, 0));
        Ok((graph, instance))
    }

    pub(super) fn nodes(&self, graph: u64) -> Result<Vec<u64>, Failed> {
        let mut count = 0;
        call!(self, graph_nodes(graph, null_mut(), &raw mut count));
        let mut nodes = vec![0; count];
        call!(self, graph_nodes(graph, nodes.as_mut_ptr(), &raw mut count));
        Ok(nodes)
    }
}

extern "C" fn count_up(argument: *mut c_void) {
    // SAFETY: the test passes an AtomicI32 and waits for the call.
    unsafe { &*argument.cast::<AtomicI32>() }.fetch_add(1, Ordering::SeqCst);
}

fn replay() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block) = (bench.stream()?, bench.block(16)?);
    let (source, target) = (bench.pinned(16)?, bench.pinned(16)?);
    let part = bench.function(bench.module(PTX.as_bytes())?, "part")?;
    let calls = AtomicI32::new(0);
    let (graph, instance) = bench.graph(stream, || {
        call!(bench, upload(block, source.as_ptr(), 16, stream));
        check_equal!(bench.launch(part, stream, &[&word(block), &word(16)]), SUCCESS);
        call!(bench, fill(block, 9, 4, stream));
        call!(bench, download(target.as_mut_ptr(), block, 16, stream));
        call!(bench, host_function(stream, count_up, (&raw const calls).cast_mut().cast()));
        Ok(())
    })?;
    let mut kinds = Vec::new();
    for node in bench.nodes(graph)? {
        let mut kind = -1;
        call!(bench, node_type(node, &raw mut kind));
        kinds.push(kind);
    }
    check_equal!(kinds, [1, 0, 2, 1, 3]);
    call!(bench, graph_destroy(graph)); // the instance stands alone
    call!(bench, graph_upload(instance, stream));
    for round in 1..=3u8 {
        bench.fake.host_write(source);
        source.fill(round);
        call!(bench, graph_launch(instance, stream));
        check_equal!(bench.fake.live().pending, 5);
        call!(bench, stream_synchronize(stream));
        let mut expected = [round; 16];
        let size = word(16);
        let mut parameters = [Parameter::Update(&mut expected), Parameter::Scalar(&size)];
        bench.fake.kernel_effect("part", &mut parameters);
        expected[..4].fill(9);
        bench.fake.host_read(target);
        check_equal!(target, &expected);
        check_equal!(calls.load(Ordering::SeqCst), i32::from(round));
    }
    // Destroyed with work under way.
    call!(bench, graph_launch(instance, stream));
    call!(bench, instance_destroy(instance));
    call!(bench, stream_synchronize(stream));
    check_equal!(calls.load(Ordering::SeqCst), 4);
    bench.no_violation()?;
    answers!(INVALID_VALUE, bench, graph_launch(instance, stream));
    bench.one_violation(&["destroyed instance"])?;
    let live = bench.fake.live();
    check_equal!((live.graphs, live.instances), (0, 0));
    Ok(())
}

fn order_of_launches() -> Outcome {
    let bench = Bench::new()?;
    let (one, other, block) = (bench.stream()?, bench.stream()?, bench.block(16)?);
    let pinned = bench.pinned(16)?;
    let (_, instance) = bench.graph(one, || {
        call!(bench, upload(block, pinned.as_ptr(), 16, one));
        Ok(())
    })?;
    // Launches of one instance follow each other.
    call!(bench, graph_launch(instance, one));
    call!(bench, graph_launch(instance, other));
    call!(bench, stream_synchronize(other));
    bench.fake.host_write(pinned);
    bench.no_violation()?;
    // With other work they are ordered as any work.
    call!(bench, fill(block, 1, 16, one));
    call!(bench, graph_launch(instance, other));
    bench.one_violation(&["write by cuGraphLaunch[cuMemcpyHtoDAsync_v2]", "the write by cuMemsetD8Async"])?;
    call!(bench, fill(block, 1, 16, one));
    let found = bench.fake.violations();
    check_equal!(found.len(), 2);
    check!(found[1].contains("the write by cuGraphLaunch[cuMemcpyHtoDAsync_v2]"));
    bench.fake.host_write(pinned);
    check_equal!(bench.fake.violations().len(), 3);
    Ok(())
}

fn gone() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block, other) = (bench.stream()?, bench.block(16)?, bench.block(16)?);
    let pinned = bench.pinned(16)?;
    let module = bench.module(PTX.as_bytes())?;
    let part = bench.function(module, "part")?;
    let (_, instance) = bench.graph(stream, || {
        check_equal!(bench.launch(part, stream, &[&word(other), &word(16)]), SUCCESS);
        call!(bench, download(pinned.as_mut_ptr(), other, 16, stream));
        call!(bench, fill(block, 1, 16, stream));
        Ok(())
    })?;
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    bench.no_violation()?;
    call!(bench, free(block));
    call!(bench, graph_launch(instance, stream));
    bench.one_violation(&["use of freed device memory", "in cuGraphLaunch[cuMemsetD8Async]"])?;
    call!(bench, stream_synchronize(stream));
    bench.fake.reset();
    call!(bench, host_free(pinned.as_mut_ptr()));
    call!(bench, unload(module));
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    let found = bench.fake.violations();
    check_equal!(found.len(), 3);
    check!(found[0].contains("kernel part of an unloaded module"));
    check!(found[1].contains("memory that a graph names is gone"));
    Ok(())
}

/// Two branches that touch the same bytes.
fn branches() -> Outcome {
    let bench = Bench::new()?;
    let (one, other, block) = (bench.stream()?, bench.stream()?, bench.block(128)?);
    let (fork, join) = (bench.event()?, bench.event()?);
    for (offset, wanted) in [(64, 0), (63, 1)] {
        let (_, instance) = bench.graph(one, || {
            call!(bench, fill(block, 0, 128, one));
            call!(bench, event_record(fork, one));
            call!(bench, stream_wait(other, fork, 0));
            call!(bench, fill(block, 1, 64, one));
            call!(bench, fill(block + offset, 2, 64, other));
            call!(bench, event_record(join, other));
            call!(bench, stream_wait(one, join, 0));
            Ok(())
        })?;
        call!(bench, graph_launch(instance, one));
        call!(bench, graph_launch(instance, one));
        call!(bench, stream_synchronize(one));
        check_equal!(bench.fake.violations().len(), wanted);
    }
    bench.one_violation(&[
        "nodes 1 (cuMemsetD8Async) and 2 (cuMemsetD8Async)",
        "in no order",
        "device memory",
    ])
}

fn new_parameters() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block, other) = (bench.stream()?, bench.block(16)?, bench.block(16)?);
    let part = bench.function(bench.module(PTX.as_bytes())?, "part")?;
    let (graph, instance) = bench.graph(stream, || {
        check_equal!(bench.launch(part, stream, &[&word(block), &word(16)]), SUCCESS);
        call!(bench, fill(other, 1, 16, stream));
        Ok(())
    })?;
    let nodes = bench.nodes(graph)?;
    let values = [word(other), word(8)];
    let mut pointers = [values[0].as_ptr().cast_mut().cast(), values[1].as_ptr().cast_mut().cast()];
    let mut node = KernelNode {
        function: part,
        shape: [1, 1, 1, 32, 1, 1, 0],
        parameters: pointers.as_mut_ptr(),
        rest: [0; 3],
    };
    answers!(INVALID_VALUE, bench, set_kernel(instance, nodes[1], &raw const node));
    node.shape[3] = 4096;
    answers!(INVALID_VALUE, bench, set_kernel(instance, nodes[0], &raw const node));
    node.shape[3] = 32;
    call!(bench, set_kernel(instance, nodes[0], &raw const node));
    call!(bench, free(block)); // is named no more
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    bench.no_violation()?;
    check_equal!(bench.fake.device_read(other, 16), Some(vec![1; 16]));
    call!(bench, graph_destroy(graph));
    answers!(INVALID_VALUE, bench, set_kernel(instance, nodes[0], &raw const node));
    bench.one_violation(&["destroyed graph"])
}

fn pictures() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block) = (bench.stream()?, bench.block(16)?);
    let part = bench.function(bench.module(PTX.as_bytes())?, "part")?;
    let (graph, _) = bench.graph(stream, || {
        call!(bench, fill(block, 1, 16, stream));
        check_equal!(bench.launch(part, stream, &[&word(block), &word(16)]), SUCCESS);
        Ok(())
    })?;
    let path = variant::scratch("fake-pictures")?.join("graph.dot");
    let name = CString::new(path.to_string_lossy().into_owned())?;
    call!(bench, dot(graph, name.as_ptr(), 0));
    let text = std::fs::read_to_string(&path)?;
    check!(
        text.contains("digraph")
            && text.contains("label=\"part\"")
            && text.contains("\"node_0\" -> \"node_1\"")
    );
    check_equal!(bench.fake.reset(), 5); // stream, block, module, graph and instance
    bench.no_violation()
}

fn lost_context() -> Outcome {
    let bench = Bench::new()?;
    let stream = bench.stream()?;
    let fault = bench.function(bench.module(PTX.as_bytes())?, "fault_now")?;
    let (graph, instance) = bench.graph(stream, || {
        check_equal!(bench.launch(fault, stream, &[]), SUCCESS);
        Ok(())
    })?;
    call!(bench, graph_launch(instance, stream));
    answers!(LOST, bench, stream_synchronize(stream));
    answers!(LOST, bench, graph_launch(instance, stream));
    call!(bench, instance_destroy(instance));
    call!(bench, graph_destroy(graph));
    bench.no_violation()
}

pub fn tests() -> Vec<Test> {
    vec![
        test("replay", replay),
        test("the order of launches", order_of_launches),
        test("what a graph names is gone", gone),
        test("branches of a graph", branches),
        test("new parameters", new_parameters),
        test("pictures of graphs", pictures),
        test("graphs in a lost context", lost_context),
    ]
}
