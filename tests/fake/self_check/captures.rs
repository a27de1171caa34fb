//! Operations that may be captured, and operations that invalidate a capture.

use super::*;

const ILLEGAL_STATE: i32 = 401;
const UNSUPPORTED: i32 = 900;
const INVALIDATED: i32 = 901;
const MERGE: i32 = 902;
const UNMATCHED: i32 = 903;
const UNJOINED: i32 = 904;
const ISOLATION: i32 = 905;
const CAPTURED_EVENT: i32 = 907;
const WRONG_THREAD: i32 = 908;

const GLOBAL: c_int = 0;
const THREAD_LOCAL: c_int = 1;
const RELAXED: c_int = 2;

impl Bench {
    fn status(&self, stream: u64) -> Result<c_int, Failed> {
        let mut status = -1;
        call!(self, is_capturing(stream, &raw mut status));
        Ok(status)
    }

    /// Ends a capture that has been spoiled.
    fn end_spoiled(&self, stream: u64) -> Outcome {
        check_equal!(self.status(stream)?, 2);
        let mut graph = 1;
        answers!(INVALIDATED, self, capture_end(stream, &raw mut graph));
        check_equal!(graph, 0);
        check_equal!(self.status(stream)?, 0);
        check_equal!(self.fake.live().captures, 0);
        Ok(())
    }
}

fn states() -> Outcome {
    let bench = Bench::new()?;
    let (one, other, block) = (bench.stream()?, bench.stream()?, bench.block(64)?);
    let (event, mut graph) = (bench.event()?, 0);
    answers!(ILLEGAL_STATE, bench, capture_end(one, &raw mut graph));
    answers!(INVALID_VALUE, bench, capture_begin(one, 3));
    call!(bench, capture_begin(one, THREAD_LOCAL));
    answers!(ILLEGAL_STATE, bench, capture_begin(one, THREAD_LOCAL));
    check_equal!((bench.status(one)?, bench.status(other)?), (1, 0));
    call!(bench, fill(block, 1, 64, one));
    check_equal!(bench.fake.live().pending, 0);
    call!(bench, event_record(event, one));
    call!(bench, stream_wait(other, event, 0));
    check_equal!(bench.status(other)?, 1);
    let (mut status, mut id, mut under_way, mut nodes, mut count) = (0, 0, 0, null(), 0);
    call!(
        bench,
        capture_info(other, &raw mut status, &raw mut id, &raw mut under_way, &raw mut nodes, &raw mut count)
    );
    check!(status == 1 && id != 0 && under_way != 0 && count == 1);
    let mut edges = null();
    call!(
        bench,
        capture_info_3(
            one,
            &raw mut status,
            &raw mut id,
            &raw mut under_way,
            &raw mut nodes,
            &raw mut edges,
            &raw mut count
        )
    );
    check!(count == 1 && !edges.is_null());
    check_equal!(bench.fake.live().captures, 1);
    check!(bench.fake.describe_live().contains("capture of device 0"));
    // A graph that is being made belongs to the capture.
    answers!(INVALID_VALUE, bench, graph_destroy(under_way));
    call!(bench, capture_end(one, &raw mut graph));
    check_equal!((bench.status(one)?, bench.status(other)?, graph), (0, 0, under_way));
    check_equal!((bench.fake.live().captures, bench.fake.live().graphs), (0, 1));
    call!(bench, graph_destroy(graph));
    answers!(INVALID_VALUE, bench, graph_destroy(graph));
    bench.one_violation(&["destroyed graph"])
}

fn forks() -> Outcome {
    let bench = Bench::new()?;
    let (one, other, block) = (bench.stream()?, bench.stream()?, bench.block(128)?);
    let (event, back, mut graph) = (bench.event()?, bench.event()?, 0);
    for joined in [false, true] {
        call!(bench, capture_begin(one, THREAD_LOCAL));
        call!(bench, fill(block, 1, 64, one));
        call!(bench, event_record(event, one));
        call!(bench, stream_wait(other, event, 0));
        call!(bench, fill(block + 64, 1, 64, other));
        if !joined {
            answers!(UNJOINED, bench, capture_end(one, &raw mut graph));
            check_equal!((graph, bench.status(other)?), (0, 0));
            continue;
        }
        call!(bench, event_record(back, other));
        call!(bench, stream_wait(one, back, 0));
        call!(bench, fill(block, 1, 128, one));
        call!(bench, capture_end(one, &raw mut graph));
        let (mut from, mut to, mut count) = ([0; 4], [0; 4], 4);
        call!(bench, graph_edges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &raw mut count));
        // The last fill comes after both.
        check_equal!(count, 3);
        check!(from[0] == from[1] && to[0] == from[2] && to[1] == to[2]);
    }
    bench.no_violation()
}

fn spoilers() -> Outcome {
    let bench = Bench::new()?;
    let (one, other, block) = (bench.stream()?, bench.stream()?, bench.block(64)?);
    let (event, outside, never, mut graph) = (bench.event()?, bench.event()?, bench.event()?, 0);
    call!(bench, event_record(outside, other));
    let begin = || -> Outcome {
        call!(bench, capture_begin(one, RELAXED));
        call!(bench, event_record(event, one));
        Ok(())
    };
    begin()?;
    answers!(UNSUPPORTED, bench, stream_synchronize(one));
    answers!(INVALIDATED, bench, fill(block, 1, 64, one));
    answers!(INVALIDATED, bench, event_record(event, one));
    bench.end_spoiled(one)?;
    begin()?;
    answers!(UNSUPPORTED, bench, stream_query(one));
    bench.end_spoiled(one)?;
    begin()?;
    answers!(UNSUPPORTED, bench, context_synchronize());
    bench.end_spoiled(one)?;
    begin()?;
    answers!(CAPTURED_EVENT, bench, event_synchronize(event));
    bench.end_spoiled(one)?;
    begin()?;
    answers!(CAPTURED_EVENT, bench, event_query(event));
    bench.end_spoiled(one)?;
    begin()?;
    answers!(ISOLATION, bench, stream_wait(one, outside, 0));
    bench.end_spoiled(one)?;
    begin()?;
    call!(bench, stream_wait(one, never, 0));
    call!(bench, stream_wait(other, event, 0));
    answers!(UNMATCHED, bench, capture_end(other, &raw mut graph));
    bench.end_spoiled(one)?;
    begin()?;
    call!(bench, capture_begin(other, RELAXED));
    answers!(MERGE, bench, stream_wait(other, event, 0));
    answers!(INVALIDATED, bench, capture_end(other, &raw mut graph));
    bench.end_spoiled(one)?;
    // An event of a capture that is over.
    answers!(CAPTURED_EVENT, bench, stream_wait(one, event, 0));
    call!(bench, event_record(event, one));
    call!(bench, event_synchronize(event));
    bench.no_violation()?;
    call!(bench, capture_begin(one, RELAXED));
    call!(bench, stream_destroy(one));
    check_equal!(bench.fake.live().captures, 0);
    bench.one_violation(&["destroyed while it captures"])
}

fn modes() -> Outcome {
    let bench = Bench::new()?;
    let stream = bench.stream()?;
    let (mut unused, mut graph) = (0, 0);
    for mode in [GLOBAL, THREAD_LOCAL] {
        call!(bench, capture_begin(stream, mode));
        answers!(UNSUPPORTED, bench, allocate(&raw mut unused, 8));
        bench.end_spoiled(stream)?;
    }
    call!(bench, capture_begin(stream, RELAXED));
    call!(bench, allocate(&raw mut unused, 8));
    call!(bench, capture_end(stream, &raw mut graph));
    // A thread may say that it knows what it does.
    call!(bench, capture_begin(stream, THREAD_LOCAL));
    let mut mode = RELAXED;
    call!(bench, exchange_mode(&raw mut mode));
    check_equal!(mode, GLOBAL);
    call!(bench, allocate(&raw mut unused, 8));
    call!(bench, free(unused));
    call!(bench, exchange_mode(&raw mut mode));
    check_equal!(mode, RELAXED);
    // A refused call had no effect.
    let before = bench.fake.live().blocks;
    let block = bench.fake.live().blocks;
    answers!(UNSUPPORTED, bench, allocate(&raw mut unused, 8));
    check_equal!(bench.fake.live().blocks, before.max(block));
    bench.end_spoiled(stream)?;
    // Other threads.
    for (mode, wanted) in [(GLOBAL, UNSUPPORTED), (THREAD_LOCAL, SUCCESS)] {
        call!(bench, capture_begin(stream, mode));
        let elsewhere = || {
            bench.fake.foreign_set(bench.context);
            let (mut block, mut graph) = (0, 0);
            // SAFETY: live handles, and pointers to locals.
            unsafe {
                let ended = (bench.driver.capture_end)(stream, &raw mut graph);
                (ended, (bench.driver.allocate)(&raw mut block, 8))
            }
        };
        let codes = std::thread::scope(|scope| scope.spawn(elsewhere).join());
        check_equal!(codes.ok(), Some((WRONG_THREAD, wanted)));
        answers!(
            if wanted == SUCCESS { SUCCESS } else { INVALIDATED },
            bench,
            capture_end(stream, &raw mut graph)
        );
    }
    bench.no_violation()
}

fn pageable() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block) = (bench.stream()?, bench.block(16)?);
    let source = [1u8; 16];
    let (mut graph, mut instance) = (0, 0);
    call!(bench, capture_begin(stream, THREAD_LOCAL));
    call!(bench, upload(block, source.as_ptr(), 16, stream));
    bench.one_violation(&["pageable host memory is captured"])?;
    call!(bench, capture_end(stream, &raw mut graph));
    call!(bench, instantiate(&raw mut instance, graph, 0));
    call!(bench, graph_launch(instance, stream));
    check_equal!(bench.fake.live().pending, 0);
    check_equal!(bench.fake.pageable_pending(), 0);
    Ok(())
}

/// Calls that wait for nothing are allowed in every mode, and invalidate nothing.
fn allowed() -> Outcome {
    let bench = Bench::new()?;
    let (stream, other, block) = (bench.stream()?, bench.stream()?, bench.block(16)?);
    let (source, mut graph) = ([3u8; 16], 0);
    for mode in [GLOBAL, THREAD_LOCAL, RELAXED] {
        call!(bench, capture_begin(stream, mode));
        let properties = AllocationProperties { kind: 1, handle_types: 0, location: [1, 0], rest: [0; 2] };
        let (mut range, mut memory, mut free, mut total) = (0, 0, 0, 0);
        call!(bench, reserve(&raw mut range, PAGE, 0, 0, 0));
        call!(bench, create(&raw mut memory, PAGE, &raw const properties, 0));
        call!(bench, map(range, PAGE, 0, memory, 0));
        call!(bench, set_access(range, PAGE, &[1, 0, 3], 1));
        call!(bench, unmap(range, PAGE));
        call!(bench, release(memory));
        call!(bench, unreserve(range, PAGE));
        call!(bench, memory_info(&raw mut free, &raw mut total));
        bench.function(bench.module(PTX.as_bytes())?, "part")?;
        call!(bench, stream_destroy(bench.stream()?));
        call!(bench, event_destroy(bench.event()?));
        call!(bench, upload(block, source.as_ptr(), 16, other));
        check_equal!(bench.status(stream)?, 1);
        call!(bench, capture_end(stream, &raw mut graph));
        call!(bench, stream_synchronize(other));
        call!(bench, graph_destroy(graph));
    }
    bench.no_violation()
}

/// Calls that may wait for the whole context invalidate captures of all modes but one, unless the thread opts out.
fn forbidden() -> Outcome {
    let bench = Bench::new()?;
    let (stream, other, event) = (bench.stream()?, bench.stream()?, bench.event()?);
    let (mut memory, mut block, mut pinned, mut pooled) = (vec![0u8; 64], 0, null_mut(), 0);
    let (memory, mut graph) = (memory.as_mut_ptr(), 0);
    let module = bench.module(PTX.as_bytes())?;
    call!(bench, event_record(event, other));
    let driver = &bench.driver;
    let mut call = |which: usize| {
        // SAFETY: live handles, and pointers to locals; a refused call has no effect.
        unsafe {
            match which {
                0 => (driver.allocate)(&raw mut block, 8),
                1 => (driver.host_allocate)(&raw mut pinned, 8, 0),
                2 => (driver.host_register)(memory, 64, 0),
                3 => (driver.allocate_async)(&raw mut pooled, 8, other),
                4 => (driver.stream_query)(other),
                5 => (driver.stream_synchronize)(other),
                6 => (driver.event_query)(event),
                7 => (driver.event_synchronize)(event),
                8 => (driver.free)(block),
                9 => (driver.host_free)(pinned),
                10 => (driver.host_unregister)(memory),
                _ => (driver.unload)(module),
            }
        }
    };
    for mode in [GLOBAL, THREAD_LOCAL] {
        for which in 0..12 {
            call!(bench, capture_begin(stream, mode));
            check_equal!((which, call(which)), (which, UNSUPPORTED));
            bench.end_spoiled(stream)?;
        }
    }
    // Half of them in a relaxed capture, half by a relaxed thread.
    call!(bench, stream_synchronize(other));
    for which in 0..12 {
        let mut mode = RELAXED;
        call!(bench, capture_begin(stream, if which % 2 == 0 { RELAXED } else { GLOBAL }));
        if which % 2 == 1 {
            call!(bench, exchange_mode(&raw mut mode));
        }
        check_equal!((which, call(which)), (which, SUCCESS));
        if which % 2 == 1 {
            call!(bench, exchange_mode(&raw mut mode));
        }
        call!(bench, capture_end(stream, &raw mut graph));
    }
    bench.no_violation()
}

/// Events of captures, streams that joined, and the whole context.
fn captured_handles() -> Outcome {
    let bench = Bench::new()?;
    let (one, other, event, mut graph) = (bench.stream()?, bench.stream()?, bench.event()?, 0);
    for mode in [GLOBAL, THREAD_LOCAL, RELAXED] {
        for synchronizes in [true, false] {
            call!(bench, capture_begin(one, mode));
            call!(bench, event_record(event, one));
            if synchronizes {
                answers!(CAPTURED_EVENT, bench, event_synchronize(event));
            } else {
                answers!(CAPTURED_EVENT, bench, event_query(event));
            }
            bench.end_spoiled(one)?;
        }
        // A stream that joins may not begin another capture, and need not come back when it has done nothing.
        call!(bench, capture_begin(one, mode));
        call!(bench, event_record(event, one));
        call!(bench, stream_wait(other, event, 0));
        answers!(ILLEGAL_STATE, bench, capture_begin(other, mode));
        check_equal!((bench.status(one)?, bench.status(other)?), (1, 1));
        call!(bench, capture_end(one, &raw mut graph));
        check_equal!(bench.status(other)?, 0);
        // Its event says nothing once it is over.
        answers!(INVALID_VALUE, bench, event_query(event));
        answers!(INVALID_VALUE, bench, event_synchronize(event));
        // Nobody may wait for the whole context, wherever.
        call!(bench, capture_begin(one, mode));
        let elsewhere = || {
            bench.fake.foreign_set(bench.context);
            // SAFETY: no arguments.
            unsafe { (bench.driver.context_synchronize)() }
        };
        let code = std::thread::scope(|scope| scope.spawn(elsewhere).join());
        check_equal!(code.ok(), Some(UNSUPPORTED));
        bench.end_spoiled(one)?;
    }
    bench.no_violation()
}

pub fn tests() -> Vec<Test> {
    vec![
        test("what a capture allows", allowed),
        test("what a capture forbids", forbidden),
        test("events and streams of captures", captured_handles),
        test("states of a capture", states),
        test("forks of a capture", forks),
        test("what spoils a capture", spoilers),
        test("modes of captures", modes),
        test("pageable memory in a capture", pageable),
    ]
}
