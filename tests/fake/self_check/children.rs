//! Graphs inside graphs.

use super::*;

/// A captured launch takes what the instance holds along, whatever becomes of it.
fn captured_launches() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block, other) = (bench.stream()?, bench.block(8)?, bench.block(8)?);
    let (inner, launched) = bench.graph(stream, || {
        call!(bench, fill(block, 7, 8, stream));
        call!(bench, copy(other, block, 8, stream));
        Ok(())
    })?;
    let (outer, instance) = bench.graph(stream, || {
        call!(bench, fill(other, 1, 8, stream));
        call!(bench, graph_launch(launched, stream));
        call!(bench, fill(block, 2, 4, stream));
        Ok(())
    })?;
    check_equal!(bench.fake.live().pending, 0);
    let nodes = bench.nodes(outer)?;
    let (mut kind, mut child) = (-1, 0);
    call!(bench, node_type(nodes[1], &raw mut kind));
    check_equal!((kind, nodes.len()), (4, 3));
    call!(bench, child_graph(nodes[1], &raw mut child));
    answers!(INVALID_VALUE, bench, child_graph(nodes[0], &raw mut child));
    check_equal!(bench.nodes(child)?.len(), 2);
    check!(child != inner && bench.nodes(child)?[0] != bench.nodes(inner)?[0]);
    // It is the node's: not to be destroyed or run by itself, and not counted.
    answers!(INVALID_VALUE, bench, graph_destroy(child));
    let mut unused = 0;
    answers!(INVALID_VALUE, bench, instantiate(&raw mut unused, child, 0));
    check_equal!((bench.fake.live().graphs, bench.fake.live().instances), (2, 2));
    call!(bench, instance_destroy(launched));
    call!(bench, graph_destroy(inner));
    for _ in 0..2 {
        call!(bench, graph_launch(instance, stream));
    }
    call!(bench, stream_synchronize(stream));
    check_equal!(bench.fake.device_read(block, 8), Some(vec![2, 2, 2, 2, 7, 7, 7, 7]));
    check_equal!(bench.fake.device_read(other, 8), Some(vec![7; 8]));
    call!(bench, graph_destroy(outer));
    bench.no_violation()?;
    let mut count = 0;
    answers!(INVALID_VALUE, bench, graph_nodes(child, null_mut(), &raw mut count));
    bench.one_violation(&["destroyed graph"])?;
    bench.fake.reset();
    // The launch looks up the child graph's handles, as all others.
    call!(bench, free(other));
    call!(bench, graph_launch(instance, stream));
    let found = bench.fake.violations();
    check!(found.len() == 2 && found.iter().all(|text| text.contains("use of freed device memory")));
    Ok(())
}

/// A node beside a child graph that uses the same bytes.
fn beside() -> Outcome {
    let bench = Bench::new()?;
    let (stream, side, block) = (bench.stream()?, bench.stream()?, bench.block(64)?);
    let (fork, join) = (bench.event()?, bench.event()?);
    let (_, launched) = bench.graph(stream, || {
        call!(bench, fill(block, 7, 16, stream));
        call!(bench, fill(block, 8, 32, stream));
        Ok(())
    })?;
    for (offset, wanted) in [(32, 0), (31, 2)] {
        let (_, instance) = bench.graph(stream, || {
            call!(bench, event_record(fork, stream));
            call!(bench, stream_wait(side, fork, 0));
            call!(bench, graph_launch(launched, side));
            call!(bench, fill(block + offset, 1, 8, stream));
            call!(bench, event_record(join, side));
            call!(bench, stream_wait(stream, join, 0));
            Ok(())
        })?;
        call!(bench, graph_launch(instance, stream));
        call!(bench, stream_synchronize(stream));
        check_equal!(bench.fake.violations().len(), wanted / 2);
    }
    bench.one_violation(&["nodes 0 (cuGraphLaunch) and 1 (cuMemsetD8Async)", "in no order"])
}

fn added() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block) = (bench.stream()?, bench.block(8)?);
    let (child, _) = bench.graph(stream, || {
        call!(bench, fill(block, 3, 8, stream));
        Ok(())
    })?;
    let (mut graph, mut node, mut instance) = (0, 0, 0);
    call!(bench, graph_create(&raw mut graph, 0));
    let mut parameters = NodeParameters::new(4, child);
    call!(bench, add_node(&raw mut node, graph, null(), 0, &raw mut parameters));
    let mut empty = NodeParameters::new(5, 0);
    let mut last = 0;
    call!(bench, add_node_2(&raw mut last, graph, &raw const node, null(), 1, &raw mut empty));
    // Of another graph, twice the same, with a graph in itself, of a kind that is not modelled.
    let twice = [node, node];
    let foreign = bench.nodes(child)?[0];
    answers!(INVALID_VALUE, bench, add_node(&raw mut last, graph, &raw const foreign, 1, &raw mut empty));
    answers!(INVALID_VALUE, bench, add_node(&raw mut last, graph, twice.as_ptr(), 2, &raw mut empty));
    parameters.handle = graph;
    answers!(INVALID_VALUE, bench, add_node(&raw mut last, graph, null(), 0, &raw mut parameters));
    empty.kind = 3;
    answers!(801, bench, add_node(&raw mut last, graph, null(), 0, &raw mut empty));
    check_equal!(bench.nodes(graph)?.len(), 2);
    call!(bench, graph_destroy(child));
    call!(bench, instantiate(&raw mut instance, graph, 0));
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    check_equal!(bench.fake.device_read(block, 8), Some(vec![3; 8]));
    bench.no_violation()
}

pub fn tests() -> Vec<Test> {
    vec![
        test("captured launches of graphs", captured_launches),
        test("beside a child graph", beside),
        test("nodes that are added", added),
    ]
}
