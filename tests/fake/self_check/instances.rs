//! Instances of graphs: updated, switched off in part, copied, looked at.

use super::*;

const UPDATE_FAILURE: i32 = 910;
const TOPOLOGY: c_int = 2;
const NODE_KIND: c_int = 3;
const PARAMETERS: c_int = 5;

fn updates() -> Outcome {
    let bench = Bench::new()?;
    let (stream, first, second) = (bench.stream()?, bench.block(16)?, bench.block(32)?);
    let pinned = bench.pinned(16)?;
    let part = bench.function(bench.module(PTX.as_bytes())?, "part")?;
    let mut build = |block: u64, bytes: usize| {
        bench.graph(stream, || {
            call!(bench, fill(block, 4, bytes, stream));
            check_equal!(bench.launch(part, stream, &[&word(block), &word(bytes as u64)]), SUCCESS);
            call!(bench, download(pinned.as_mut_ptr(), block, 8, stream));
            Ok(())
        })
    };
    let ((graph, instance), (other, _)) = (build(first, 16)?, build(second, 32)?);
    let mut info = UpdateInfo { result: 9, node: 9, from: 9 };
    call!(bench, graph_update(instance, other, &raw mut info));
    check_equal!(info, UpdateInfo::default());
    // All of it is of the other graph now; the nodes keep the names of the first.
    call!(bench, free(first));
    call!(bench, graph_destroy(other));
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    let (mut expected, size) = (vec![4; 32], word(32));
    bench.fake.kernel_effect("part", &mut [Parameter::Update(&mut expected), Parameter::Scalar(&size)]);
    check_equal!(bench.fake.device_read(second, 32), Some(expected.clone()));
    bench.fake.host_read(pinned);
    check_equal!(&pinned[..8], &expected[..8]);
    let nodes = bench.nodes(graph)?;
    call!(bench, set_enabled(instance, nodes[1], 0));
    // A destroyed graph, and a null pointer for the result.
    bench.no_violation()?;
    answers!(INVALID_VALUE, bench, graph_update(instance, graph, null_mut()));
    answers!(INVALID_VALUE, bench, graph_update(instance, other, &raw mut info));
    bench.one_violation(&["destroyed graph"])
}

fn refused_updates() -> Outcome {
    let bench = Bench::new()?;
    let (stream, side, block) = (bench.stream()?, bench.stream()?, bench.block(64)?);
    let (fork, join, pinned) = (bench.event()?, bench.event()?, bench.pinned(16)?);
    let fills = |count: u64| {
        bench.graph(stream, || {
            for index in 0..count {
                call!(bench, fill(block + index, 1, 1, stream));
            }
            Ok(())
        })
    };
    let ((_, instance), (longer, _)) = (fills(3)?, fills(4)?);
    let (wide, _) = bench.graph(stream, || {
        call!(bench, fill(block, 1, 1, stream));
        call!(bench, event_record(fork, stream));
        call!(bench, stream_wait(side, fork, 0));
        call!(bench, fill(block + 1, 1, 1, stream));
        call!(bench, fill(block + 2, 1, 1, side));
        call!(bench, event_record(join, side));
        call!(bench, stream_wait(stream, join, 0));
        Ok(())
    })?;
    let (mixed, _) = bench.graph(stream, || {
        call!(bench, fill(block, 1, 1, stream));
        call!(bench, fill(block, 1, 1, stream));
        call!(bench, copy(block, block + 32, 8, stream));
        Ok(())
    })?;
    let mut copies = |downwards: bool| {
        bench.graph(stream, || {
            if downwards {
                call!(bench, download(pinned.as_mut_ptr(), block, 8, stream));
            } else {
                call!(bench, upload(block, pinned.as_ptr(), 8, stream));
            }
            Ok(())
        })
    };
    let ((_, copying), (upwards, _)) = (copies(true)?, copies(false)?);
    let nodes = |graph| bench.nodes(graph);
    for (instance, graph, result, node, from) in [
        (instance, longer, TOPOLOGY, 0, 0),
        (instance, wide, TOPOLOGY, nodes(wide)?[2], nodes(wide)?[0]),
        (instance, mixed, NODE_KIND, nodes(mixed)?[2], 0),
        (copying, upwards, PARAMETERS, nodes(upwards)?[0], 0),
    ] {
        let mut info = UpdateInfo::default();
        answers!(UPDATE_FAILURE, bench, graph_update(instance, graph, &raw mut info));
        check_equal!(info, UpdateInfo { result, node, from });
    }
    // An order that is missing.
    let joins = |after: usize| -> Result<u64, Failed> {
        let (mut graph, mut nodes) = (0, [0; 3]);
        call!(bench, graph_create(&raw mut graph, 0));
        for index in 0..3 {
            let (before, count) = (nodes.as_ptr(), if index == 2 { after } else { 0 });
            let (node, mut empty) = (&raw mut nodes[index], NodeParameters::new(5, 0));
            call!(bench, add_node(node, graph, before, count, &raw mut empty));
        }
        Ok(graph)
    };
    let (both, one, mut joining, mut info) = (joins(2)?, joins(1)?, 0, UpdateInfo::default());
    call!(bench, instantiate(&raw mut joining, both, 0));
    answers!(UPDATE_FAILURE, bench, graph_update(joining, one, &raw mut info));
    check_equal!(info, UpdateInfo { result: TOPOLOGY, node: nodes(one)?[2], from: 0 });
    // And nothing has changed.
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    check_equal!(bench.fake.device_read(block, 4), Some(vec![1, 1, 1, 0xCD]));
    bench.no_violation()
}

fn switched_off() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block, gone) = (bench.stream()?, bench.block(8)?, bench.block(8)?);
    extern "C" fn nothing(_: *mut c_void) {}
    let (graph, instance) = bench.graph(stream, || {
        call!(bench, fill(block, 1, 8, stream));
        call!(bench, fill(gone, 2, 8, stream));
        call!(bench, host_function(stream, nothing, null_mut()));
        Ok(())
    })?;
    let (nodes, mut enabled) = (bench.nodes(graph)?, 9);
    call!(bench, get_enabled(instance, nodes[1], &raw mut enabled));
    check_equal!(enabled, 1);
    call!(bench, set_enabled(instance, nodes[1], 0));
    call!(bench, get_enabled(instance, nodes[1], &raw mut enabled));
    check_equal!(enabled, 0);
    answers!(INVALID_VALUE, bench, set_enabled(instance, nodes[2], 0));
    answers!(INVALID_VALUE, bench, set_enabled(instance, nodes[0] + (1 << 32), 0));
    bench.one_violation(&["unknown node"])?;
    bench.fake.reset();
    // A disabled node is not checked.
    call!(bench, free(gone));
    call!(bench, graph_launch(instance, stream));
    check_equal!(bench.fake.live().pending, 2);
    bench.no_violation()?;
    call!(bench, set_enabled(instance, nodes[1], 1));
    call!(bench, graph_launch(instance, stream));
    bench.one_violation(&["use of freed device memory"])
}

/// A disabled node was not checked against unordered uses.
fn switched_on() -> Outcome {
    let bench = Bench::new()?;
    let (stream, side, block) = (bench.stream()?, bench.stream()?, bench.block(8)?);
    let (fork, join) = (bench.event()?, bench.event()?);
    let (graph, instance) = bench.graph(stream, || {
        call!(bench, event_record(fork, stream));
        call!(bench, stream_wait(side, fork, 0));
        call!(bench, fill(block, 1, 8, stream));
        call!(bench, fill(block, 2, 8, side));
        call!(bench, event_record(join, side));
        call!(bench, stream_wait(stream, join, 0));
        Ok(())
    })?;
    let nodes = bench.nodes(graph)?;
    call!(bench, set_enabled(instance, nodes[1], 0));
    call!(bench, graph_launch(instance, stream));
    bench.no_violation()?;
    call!(bench, set_enabled(instance, nodes[1], 1));
    call!(bench, graph_launch(instance, stream));
    bench.one_violation(&["nodes 0 (cuMemsetD8Async) and 1 (cuMemsetD8Async)", "in no order"])
}

fn clones() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block) = (bench.stream()?, bench.block(8)?);
    let (graph, _) = bench.graph(stream, || {
        call!(bench, fill(block, 1, 4, stream));
        call!(bench, fill(block + 4, 2, 4, stream));
        Ok(())
    })?;
    let (mut clone, mut instance) = (0, 0);
    call!(bench, graph_clone(&raw mut clone, graph));
    let (old, new) = (bench.nodes(graph)?, bench.nodes(clone)?);
    check!(old.len() == 2 && new.len() == 2 && !new.contains(&old[0]) && clone != graph);
    let (mut before, mut count) = ([0; 2], 2);
    call!(bench, node_dependencies(new[1], before.as_mut_ptr(), &raw mut count));
    check_equal!((before, count), ([new[0], 0], 1));
    let (mut edges, mut count) = ([7; 2], 2);
    call!(bench, node_dependencies_2(old[1], before.as_mut_ptr(), edges.as_mut_ptr(), &raw mut count));
    check_equal!((before, edges, count), ([old[0], 0], [0, 0], 1));
    check_equal!(bench.fake.live().graphs, 2);
    call!(bench, graph_destroy(graph));
    call!(bench, instantiate(&raw mut instance, clone, 0));
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    check_equal!(bench.fake.device_read(block, 8), Some(vec![1, 1, 1, 1, 2, 2, 2, 2]));
    bench.no_violation()
}

/// The parameters that a kernel node returns can be set again unchanged, or changed.
fn kernel_parameters() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block) = (bench.stream()?, bench.block(16)?);
    let module = bench.module(PTX.as_bytes())?;
    let part = bench.function(module, "part")?;
    let (graph, instance) = bench.graph(stream, || {
        call!(bench, fill(block, 1, 16, stream));
        check_equal!(bench.launch(part, stream, &[&word(block), &word(16)]), SUCCESS);
        Ok(())
    })?;
    let nodes = bench.nodes(graph)?;
    let mut node = KernelNode { function: 0, shape: [0; 7], parameters: null_mut(), rest: [1; 3] };
    answers!(INVALID_VALUE, bench, kernel_parameters(nodes[0], &raw mut node));
    call!(bench, kernel_parameters(nodes[1], &raw mut node));
    check_equal!((node.function, node.shape, node.rest), (part, [1, 1, 1, 32, 1, 1, 0], [0; 3]));
    // SAFETY: the kernel has two parameters of eight bytes.
    let found =
        unsafe { [**node.parameters.cast::<*const u64>(), **node.parameters.cast::<*const u64>().add(1)] };
    check_equal!(found, [block, 16]);
    call!(bench, set_kernel(instance, nodes[1], &raw const node));
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    bench.no_violation()?;
    call!(bench, unload(module));
    answers!(INVALID_HANDLE, bench, kernel_parameters(nodes[1], &raw mut node));
    bench.one_violation(&["unloaded module"])
}

pub fn tests() -> Vec<Test> {
    vec![
        test("updates of instances", updates),
        test("refused updates", refused_updates),
        test("nodes that are switched off", switched_off),
        test("nodes that are switched on again", switched_on),
        test("clones of graphs", clones),
        test("parameters of kernel nodes", kernel_parameters),
    ]
}
