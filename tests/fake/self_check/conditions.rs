//! Conditional nodes: what is inside them runs as their condition has it, and at no other time.

use super::*;

const IF: c_int = 0;
const WHILE: c_int = 1;
const SWITCH: c_int = 2;
const ASSIGN: c_uint = 1;

impl Bench {
    /// The graph that the stream captures into, and what its next node would depend on.
    fn under_way(&self, stream: u64) -> Result<(u64, Vec<u64>), Failed> {
        let (mut status, mut id, mut graph, mut nodes, mut count) = (0, 0, 0, null(), 0);
        call!(
            self,
            capture_info(
                stream,
                &raw mut status,
                &raw mut id,
                &raw mut graph,
                &raw mut nodes,
                &raw mut count
            )
        );
        // SAFETY: the driver's own list, valid until its next such call.
        let nodes = if count == 0 {
            Vec::new()
        } else {
            unsafe { std::slice::from_raw_parts(nodes, count) }.to_vec()
        };
        Ok((graph, nodes))
    }

    /// A conditional node as the next one of a capturing stream; returns its bodies.
    fn conditional(&self, stream: u64, handle: u64, kind: c_int, size: c_uint) -> Result<Vec<u64>, Failed> {
        let (graph, after) = self.under_way(stream)?;
        let mut node = 0;
        let mut parameters = NodeParameters { condition_kind: kind, size, ..NodeParameters::new(13, handle) };
        call!(
            self,
            add_node_2(&raw mut node, graph, after.as_ptr(), null(), after.len(), &raw mut parameters)
        );
        call!(self, dependencies_2(stream, &raw const node, null(), 1, 1));
        // SAFETY: the node's own list, as long as the node lives.
        Ok(unsafe { std::slice::from_raw_parts(parameters.bodies, size as usize) }.to_vec())
    }

    /// Captures on a stream of its own into a body.
    fn fill_body(&self, stream: u64, body: u64, work: impl FnOnce() -> Outcome) -> Outcome {
        let mut same = 0;
        call!(self, capture_into(stream, body, null(), null(), 0, 1));
        work()?;
        call!(self, capture_end(stream, &raw mut same));
        check_equal!(same, body);
        Ok(())
    }

    fn flag(&self, address: u64, value: u32, stream: u64) -> Outcome {
        call!(self, fill_32(address, value, 1, stream));
        Ok(())
    }
}

/// One graph with an `if` whose condition a kernel reads from memory.
fn branches() -> Outcome {
    let bench = Bench::new()?;
    let (stream, inside) = (bench.stream()?, bench.stream()?);
    let (flag, block) = (bench.block(8)?, bench.block(8)?);
    let set = bench.function(bench.module(PTX.as_bytes())?, "set_condition_to")?;
    let (graph, instance) = bench.graph(stream, || {
        let (mut handle, (graph, _)) = (0, bench.under_way(stream)?);
        call!(bench, condition(&raw mut handle, graph, bench.context, 0, 0));
        check_equal!(bench.launch(set, stream, &[&word(handle), &word(flag)]), SUCCESS);
        let bodies = bench.conditional(stream, handle, IF, 1)?;
        bench.fill_body(inside, bodies[0], || {
            call!(bench, fill(block, 5, 8, inside));
            Ok(())
        })?;
        call!(bench, fill(block, 9, 2, stream));
        Ok(())
    })?;
    let mut kinds = Vec::new();
    for node in bench.nodes(graph)? {
        let mut kind = -1;
        call!(bench, node_type(node, &raw mut kind));
        kinds.push(kind);
    }
    check_equal!(kinds, [0, 13, 2]);
    for (value, expected) in [(0, 1), (3, 5), (0, 1)] {
        call!(bench, fill(block, 1, 8, stream));
        bench.flag(flag, value, stream)?;
        bench.flag(flag + 4, 7, inside)?; // beside what is read
        call!(bench, graph_launch(instance, stream));
        call!(bench, stream_synchronize(stream));
        check_equal!(bench.fake.device_read(block, 3), Some(vec![9, 9, expected]));
    }
    // Bodies are the graph's, and no copy of it can be made.
    check_equal!(bench.fake.live().graphs, 1);
    let mut unused = 0;
    answers!(801, bench, graph_clone(&raw mut unused, graph));
    call!(bench, capture_begin(inside, 1));
    answers!(801, bench, graph_launch(instance, inside));
    answers!(901, bench, capture_end(inside, &raw mut unused));
    bench.no_violation()?;
    // The launch uses every block that a body uses, even if the body does not run.
    call!(bench, graph_launch(instance, stream));
    call!(bench, fill(block + 4, 1, 4, inside));
    bench.one_violation(&["the write by cuGraphLaunch[cuMemsetD8Async]"])?;
    call!(bench, stream_synchronize(stream));
    bench.fake.reset();
    call!(bench, free(block));
    call!(bench, graph_launch(instance, stream));
    check_equal!(bench.fake.violations().len(), 2);
    Ok(())
}

/// A loop that counts down in memory, and one that never ends.
fn loops() -> Outcome {
    let bench = Bench::new()?;
    let (stream, inside) = (bench.stream()?, bench.stream()?);
    let (flags, rounds) = (bench.block(16)?, bench.block(16)?);
    let module = bench.module(PTX.as_bytes())?;
    let (set, part) = (bench.function(module, "set_condition_to")?, bench.function(module, "part")?);
    for (steps, wanted) in [(3u64, Some(3)), (0, None)] {
        let (_, instance) = bench.graph(stream, || {
            let (mut handle, (graph, _)) = (0, bench.under_way(stream)?);
            call!(bench, condition(&raw mut handle, graph, 0, 1, ASSIGN));
            let bodies = bench.conditional(stream, handle, WHILE, 1)?;
            bench.fill_body(inside, bodies[0], || {
                check_equal!(bench.launch(part, inside, &[&word(rounds), &word(16)]), SUCCESS);
                if steps > 0 {
                    // The flags move up by one; the last is always zero.
                    check_equal!(bench.launch(set, inside, &[&word(handle), &word(flags)]), SUCCESS);
                    for index in 0..3 {
                        call!(bench, copy(flags + 4 * index, flags + 4 * index + 4, 4, inside));
                    }
                }
                Ok(())
            })
        })?;
        for index in 0..4 {
            bench.flag(flags + 4 * index, u32::from(index + 1 < steps), stream)?;
        }
        call!(bench, fill(rounds, 0, 16, stream));
        call!(bench, graph_launch(instance, stream));
        call!(bench, stream_synchronize(stream));
        let Some(wanted) = wanted else {
            return bench.one_violation(&["a while node has run 10000 times", "cuGraphLaunch"]);
        };
        let (mut expected, size) = ([0; 16], word(16));
        for _ in 0..wanted {
            bench
                .fake
                .kernel_effect("part", &mut [Parameter::Update(&mut expected), Parameter::Scalar(&size)]);
        }
        check_equal!(bench.fake.device_read(rounds, 16), Some(expected.to_vec()));
        bench.no_violation()?;
    }
    Ok(())
}

/// A loop inside the first of two branches, which newer drivers have.
fn nested() -> Outcome {
    let bench = Bench::new()?;
    bench.fake.set_version(12080);
    let (stream, inside, deep) = (bench.stream()?, bench.stream()?, bench.stream()?);
    let (zero, block) = (bench.block(4)?, bench.block(8)?);
    let set = bench.function(bench.module(PTX.as_bytes())?, "set_condition_to")?;
    for (branch, kind, size, expected) in [(1, IF, 2, 4), (0, IF, 2, 6), (0, SWITCH, 2, 4), (5, SWITCH, 2, 1)]
    {
        let (graph, instance) = bench.graph(stream, || {
            let (mut outer, mut inner, (graph, _)) = (0, 0, bench.under_way(stream)?);
            call!(bench, condition(&raw mut outer, graph, 0, branch, ASSIGN));
            let bodies = bench.conditional(stream, outer, kind, size)?;
            call!(bench, condition(&raw mut inner, bodies[0], 0, 1, ASSIGN));
            bench.fill_body(inside, bodies[0], || {
                let bodies = bench.conditional(inside, inner, WHILE, 1)?;
                bench.fill_body(deep, bodies[0], || {
                    call!(bench, fill(block, 4, 8, deep));
                    check_equal!(bench.launch(set, deep, &[&word(inner), &word(zero)]), SUCCESS);
                    Ok(())
                })
            })?;
            bench.fill_body(inside, bodies[1], || {
                call!(bench, fill(block, 6, 8, inside));
                Ok(())
            })
        })?;
        bench.flag(zero, 0, stream)?;
        call!(bench, fill(block, 1, 8, stream));
        call!(bench, graph_launch(instance, stream));
        call!(bench, graph_destroy(graph));
        call!(bench, instance_destroy(instance));
        call!(bench, stream_synchronize(stream));
        check_equal!(bench.fake.device_read(block, 8), Some(vec![expected; 8]));
    }
    let live = bench.fake.live();
    check_equal!((live.graphs, live.instances, live.captures), (0, 0, 0));
    bench.no_violation()
}

fn updated() -> Outcome {
    let bench = Bench::new()?;
    let (stream, inside, block) = (bench.stream()?, bench.stream()?, bench.block(8)?);
    let build = |value: u8, kind: c_int, runs: c_uint| {
        bench.graph(stream, || {
            let (mut handle, (graph, _)) = (0, bench.under_way(stream)?);
            call!(bench, condition(&raw mut handle, graph, 0, runs, ASSIGN));
            let bodies = bench.conditional(stream, handle, kind, 1)?;
            bench.fill_body(inside, bodies[0], || {
                call!(bench, fill(block, value, 8, inside));
                Ok(())
            })
        })
    };
    let ((_, instance), (other, _), (looping, _)) = (build(1, IF, 0)?, build(2, IF, 1)?, build(2, WHILE, 0)?);
    let mut info = UpdateInfo::default();
    call!(bench, graph_update(instance, other, &raw mut info));
    call!(bench, graph_destroy(other));
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    check_equal!(bench.fake.device_read(block, 8), Some(vec![2; 8]));
    answers!(910, bench, graph_update(instance, looping, &raw mut info));
    check_equal!(info, UpdateInfo { result: 5, node: bench.nodes(looping)?[0], from: 0 });
    bench.no_violation()
}

/// Invalid conditions, and the requirements of captures into graphs.
fn misuse() -> Outcome {
    let bench = Bench::new()?;
    let (stream, inside, block) = (bench.stream()?, bench.stream()?, bench.block(8)?);
    let set = bench.function(bench.module(PTX.as_bytes())?, "set_condition_to")?;
    let (mut handle, mut graph, mut other, mut node, mut unused) = (0, 0, 0, 0, 0);
    call!(bench, graph_create(&raw mut graph, 0));
    call!(bench, graph_create(&raw mut other, 0));
    answers!(INVALID_VALUE, bench, condition(&raw mut handle, graph, 0, 0, 2));
    answers!(INVALID_VALUE, bench, condition(&raw mut handle, graph, bench.context + 1, 0, 0));
    call!(bench, condition(&raw mut handle, graph, 0, 0, 0));
    let mut parameters = NodeParameters { size: 1, ..NodeParameters::new(13, handle) };
    let add = |graph, node: &mut u64, parameters: &mut NodeParameters| {
        // SAFETY: pointers to locals.
        unsafe { (bench.driver.add_node)(node, graph, null(), 0, parameters) }
    };
    check_equal!(add(other, &mut node, &mut parameters), INVALID_VALUE); // a condition of another graph
    for (kind, size) in [(IF, 2), (IF, 0), (WHILE, 2), (SWITCH, 1), (3, 1)] {
        let mut wrong = NodeParameters { condition_kind: kind, size, ..NodeParameters::new(13, handle) };
        check_equal!(add(graph, &mut node, &mut wrong), INVALID_VALUE);
    }
    check_equal!(add(graph, &mut node, &mut parameters), SUCCESS);
    check_equal!(add(graph, &mut unused, &mut parameters), INVALID_VALUE); // one node only
    // SAFETY: the node's own list.
    let body = unsafe { *parameters.bodies };
    // While something is captured into it, a graph is not the program's to use.
    call!(bench, capture_into(inside, body, null(), null(), 0, 1));
    answers!(INVALID_VALUE, bench, capture_into(stream, body, null(), null(), 0, 1));
    answers!(INVALID_VALUE, bench, capture_into(stream, other, &raw const node, null(), 1, 1));
    answers!(INVALID_VALUE, bench, graph_destroy(graph));
    answers!(INVALID_VALUE, bench, instantiate(&raw mut unused, graph, 0));
    extern "C" fn nothing(_: *mut c_void) {}
    call!(bench, fill(block, 1, 8, inside));
    let (_, after) = bench.under_way(inside)?;
    call!(bench, dependencies(inside, null(), 0, 1));
    check_equal!(bench.under_way(inside)?.1, Vec::<u64>::new());
    call!(bench, dependencies(inside, after.as_ptr(), 1, 0));
    check_equal!(bench.under_way(inside)?.1, after);
    answers!(INVALID_VALUE, bench, dependencies(inside, after.as_ptr(), 1, 2));
    answers!(INVALID_VALUE, bench, dependencies(inside, &raw const node, 1, 0));
    answers!(401, bench, dependencies(stream, after.as_ptr(), 1, 0));
    call!(bench, host_function(inside, nothing, null_mut()));
    call!(bench, capture_end(inside, &raw mut unused));
    answers!(801, bench, instantiate(&raw mut unused, graph, 0)); // a host function in a body
    bench.no_violation()?;
    check_equal!(bench.launch(set, stream, &[&word(handle), &word(block)]), SUCCESS);
    bench.one_violation(&["sets a condition that is none of the graph it runs in"])?;
    bench.fake.reset();
    // A condition that nothing sets.
    let (_, instance) = bench.graph(stream, || {
        let (graph, _) = bench.under_way(stream)?;
        call!(bench, condition(&raw mut handle, graph, 0, 1, 0));
        bench.conditional(stream, handle, IF, 1).map(drop)
    })?;
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    bench.one_violation(&["reached before its condition is set"])?;
    call!(bench, graph_destroy(graph));
    check_equal!(add(other, &mut node, &mut parameters), INVALID_VALUE);
    check_equal!(bench.fake.violations().len(), 2);
    Ok(())
}

/// A capture into a graph does not take it along when it goes wrong, but goes with it.
fn spoiled() -> Outcome {
    let bench = Bench::new()?;
    let (stream, inside, block) = (bench.stream()?, bench.stream()?, bench.block(8)?);
    let (mut graph, mut ended) = (0, 1);
    call!(bench, graph_create(&raw mut graph, 0));
    call!(bench, capture_into(inside, graph, null(), null(), 0, 1));
    call!(bench, fill(block, 1, 8, inside));
    answers!(900, bench, stream_query(inside));
    answers!(901, bench, capture_end(inside, &raw mut ended));
    check_equal!((ended, bench.nodes(graph)?.len(), bench.fake.live().graphs), (0, 1, 1));
    // More can be put behind what is there.
    let first = bench.nodes(graph)?;
    call!(bench, capture_into(inside, graph, first.as_ptr(), null(), 1, 1));
    call!(bench, fill(block, 2, 8, inside));
    call!(bench, capture_end(inside, &raw mut ended));
    let (mut before, mut count) = (0, 1);
    call!(bench, node_dependencies(bench.nodes(graph)?[1], &raw mut before, &raw mut count));
    check_equal!((ended, before), (graph, first[0]));
    // The outer capture goes while a body is being captured.
    call!(bench, capture_begin(stream, 1));
    let (mut handle, (outer, _)) = (0, bench.under_way(stream)?);
    call!(bench, condition(&raw mut handle, outer, 0, 1, ASSIGN));
    let bodies = bench.conditional(stream, handle, IF, 1)?;
    call!(bench, capture_into(inside, bodies[0], null(), null(), 0, 1));
    answers!(900, bench, stream_query(stream));
    answers!(901, bench, capture_end(stream, &raw mut ended));
    check_equal!(bench.fake.live().captures, 0);
    answers!(401, bench, capture_end(inside, &raw mut ended));
    check_equal!(bench.fake.reset(), 4); // two streams, a block and a graph
    bench.no_violation()
}

pub fn tests() -> Vec<Test> {
    vec![
        test("branches of conditional nodes", branches),
        test("loops of conditional nodes", loops),
        test("conditional nodes in each other", nested),
        test("updates of conditional nodes", updated),
        test("misuse of conditions", misuse),
        test("captures into graphs", spoiled),
    ]
}
