//! Launches that may begin before the kernel ahead has ended: the edges that they are in a graph, and who may ask for them.

use super::*;

const LOSSY_QUERY: i32 = 402;
const NOT_SUPPORTED: i32 = 801;
const INVALIDATED: i32 = 901;
const UPDATE_FAILURE: i32 = 910;
/// `CUgraphEdgeData`: from the port of `griddepcontrol.launch_dependents`, programmatic.
const PROGRAMMATIC: u64 = 0x01_00_01;

/// `CUlaunchAttribute`.
#[repr(C)]
struct Attribute {
    id: c_uint,
    pad: c_uint,
    value: [c_int; 16],
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(super) struct Config {
    shape: [c_uint; 7],
    stream: u64,
    attributes: *const Attribute,
    count: c_uint,
}

impl Bench {
    /// Launches a kernel that updates 16 bytes, with the attribute.
    fn launch_overlapping(&self, function: u64, stream: u64, block: u64) -> i32 {
        let mut value = [0; 16];
        value[0] = 1;
        let attribute = Attribute { id: 6, pad: 0, value };
        let config =
            Config { shape: [1, 1, 1, 32, 1, 1, 0], stream, attributes: &raw const attribute, count: 1 };
        let (block, size) = (word(block), word(16));
        let mut pointers = [block.as_ptr().cast_mut().cast(), size.as_ptr().cast_mut().cast::<c_void>()];
        // SAFETY: each pointer leads to as many bytes as the kernel's parameter has.
        unsafe { (self.driver.launch_ex)(&raw const config, function, pointers.as_mut_ptr(), null_mut()) }
    }
}

fn edges() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block) = (bench.stream()?, bench.block(16)?);
    let part = bench.function(bench.module(PTX.as_bytes())?, "part")?;
    let build = |overlaps: bool| {
        bench.graph(stream, || {
            call!(bench, fill(block, 4, 16, stream));
            check_equal!(bench.launch_overlapping(part, stream, block), SUCCESS);
            match overlaps {
                true => check_equal!(bench.launch_overlapping(part, stream, block), SUCCESS),
                false => check_equal!(bench.launch(part, stream, &[&word(block), &word(16)]), SUCCESS),
            }
            check_equal!(bench.launch(part, stream, &[&word(block), &word(16)]), SUCCESS);
            Ok(())
        })
    };
    let (graph, instance) = build(true)?;
    // Only behind a kernel there is one to overlap.
    let (mut from, mut to, mut kinds, mut count) = ([0; 3], [0; 3], [9; 3], 3);
    call!(
        bench,
        graph_edges_2(graph, from.as_mut_ptr(), to.as_mut_ptr(), kinds.as_mut_ptr(), &raw mut count)
    );
    check_equal!((count, kinds), (3, [0, PROGRAMMATIC, 0]));
    // A caller without the parameter for edge data may only count.
    answers!(LOSSY_QUERY, bench, graph_edges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &raw mut count));
    call!(bench, graph_edges(graph, null_mut(), null_mut(), &raw mut count));
    check_equal!(count, 3);
    let nodes = bench.nodes(graph)?;
    let (mut before, mut kind, mut one) = (0, 9, 1);
    call!(bench, node_dependencies(nodes[1], &raw mut before, &raw mut one));
    answers!(LOSSY_QUERY, bench, node_dependencies(nodes[2], &raw mut before, &raw mut one));
    call!(bench, node_dependencies_2(nodes[2], &raw mut before, &raw mut kind, &raw mut one));
    check_equal!((before, kind, one), (nodes[1], PROGRAMMATIC, 1));
    // An instance takes over a graph with the same edges.
    let mut info = UpdateInfo::default();
    let ((same, _), (other, _)) = (build(true)?, build(false)?);
    call!(bench, graph_update(instance, same, &raw mut info));
    answers!(UPDATE_FAILURE, bench, graph_update(instance, other, &raw mut info));
    check_equal!((info.result, info.from != 0), (2, true));
    call!(bench, graph_launch(instance, stream));
    call!(bench, stream_synchronize(stream));
    let (mut expected, size) = ([4; 16], word(16));
    for _ in 0..3 {
        bench.fake.kernel_effect("part", &mut [Parameter::Update(&mut expected), Parameter::Scalar(&size)]);
    }
    check_equal!(bench.fake.device_read(block, 16), Some(expected.to_vec()));
    bench.no_violation()
}

fn refusals() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block) = (bench.stream()?, bench.block(16)?);
    let part = bench.function(bench.module(PTX.as_bytes())?, "part")?;
    check_equal!(bench.launch_overlapping(part, stream, block), SUCCESS);
    bench.fake.set_capability(80);
    check_equal!(bench.launch_overlapping(part, stream, block), INVALID_VALUE);
    bench.fake.set_capability(90);
    bench.fake.set_version(11070);
    check_equal!(bench.launch_overlapping(part, stream, block), INVALID_VALUE);
    bench.fake.set_version(12020);
    check_equal!(bench.launch_overlapping(part, stream, block), SUCCESS);
    let mut graph = 0;
    call!(bench, capture_begin(stream, 1));
    check_equal!(bench.launch_overlapping(part, stream, block), NOT_SUPPORTED);
    answers!(INVALIDATED, bench, capture_end(stream, &raw mut graph));
    bench.no_violation()
}

pub fn tests() -> Vec<Test> {
    vec![test("edges_of_launches_that_overlap", edges), test("overlaps_that_are_refused", refusals)]
}
