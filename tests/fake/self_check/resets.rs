//! Contexts that are reset, released or lost.

use super::*;

const DESTROYED: i32 = 709;

extern "C" fn never(_: *mut c_void) {
    std::process::abort();
}

/// Everything of the context goes, undone and uncounted; the other device notices nothing.
fn reset() -> Outcome {
    let bench = Bench::new()?;
    let (stream, capturing, event) = (bench.stream()?, bench.stream()?, bench.event()?);
    let (block, pinned) = (bench.block(64)?, bench.pinned(16)?);
    let module = bench.module(PTX.as_bytes())?;
    let part = bench.function(module, "part")?;
    let (graph, instance) = bench.graph(stream, || {
        check_equal!(bench.launch(part, stream, &[&word(block), &word(64)]), SUCCESS);
        Ok(())
    })?;
    let mut registered = vec![0u8; 64];
    call!(bench, host_register(registered.as_mut_ptr(), 64, 0));
    let mut link = 0;
    call!(bench, link_create(0, null_mut(), null_mut(), &raw mut link));
    let other_context = bench.bind(1)?;
    let (far, there, reached) = (bench.stream()?, bench.block(8)?, bench.event()?);
    call!(bench, fill(there, 5, 8, far));
    call!(bench, event_record(reached, far));
    call!(bench, enable_peer(bench.context, 0));
    call!(bench, set_current(bench.context));
    // Work that waits for the other device, and a capture.
    call!(bench, stream_wait(stream, reached, 0));
    call!(bench, upload(block, pinned.as_ptr(), 16, stream));
    call!(bench, graph_launch(instance, stream));
    call!(bench, host_function(stream, never, null_mut()));
    call!(bench, event_record(event, stream));
    call!(bench, capture_begin(capturing, 1));
    let mut context = 0;
    call!(bench, reset_context(0));
    check_equal!(bench.fake.live_on(0), Counts { retained: 1, ..Counts::default() });
    // Not even what it waited for was forced; what could reach it is forgotten.
    let live = bench.fake.live_on(1);
    check_equal!((live.pending, live.peers, live.blocks, live.streams, live.events), (2, 0, 1, 1, 1));
    let mut unused = 0;
    answers!(DESTROYED, bench, allocate(&raw mut unused, 8));
    bench.no_violation()?;
    // Retained again it is another one; the first retain is still to be released.
    call!(bench, retain(&raw mut context, 0));
    check!(context != bench.context && context == bench.fake.primary_context(0));
    check_equal!(bench.fake.live_on(0).retained, 2);
    call!(bench, set_current(context));
    let (fresh, stream_again) = (bench.block(8)?, bench.stream()?);
    call!(bench, fill(fresh, 1, 8, stream_again));
    call!(bench, stream_synchronize(stream_again));
    bench.no_violation()?;
    // Every handle is stale.
    answers!(INVALID_CONTEXT, bench, set_current(bench.context));
    answers!(INVALID_HANDLE, bench, stream_synchronize(stream));
    answers!(INVALID_HANDLE, bench, event_destroy(event));
    answers!(INVALID_VALUE, bench, free(block));
    answers!(INVALID_VALUE, bench, host_free(pinned.as_mut_ptr()));
    answers!(713, bench, host_unregister(registered.as_mut_ptr()));
    answers!(INVALID_HANDLE, bench, unload(module));
    answers!(INVALID_HANDLE, bench, link_destroy(link));
    answers!(INVALID_VALUE, bench, instance_destroy(instance));
    answers!(INVALID_VALUE, bench, graph_destroy(graph));
    check_equal!(bench.fake.violations().len(), 10);
    bench.fake.reset();
    call!(bench, set_current(other_context));
    call!(bench, stream_synchronize(far));
    check_equal!(bench.fake.device_read(there, 8), Some(vec![5; 8]));
    bench.no_violation()
}

fn released() -> Outcome {
    let bench = Bench::new()?;
    let (_, _, mut context) = (bench.stream()?, bench.block(8)?, 0);
    call!(bench, retain(&raw mut context, 0));
    check_equal!((context, bench.fake.live().retained), (bench.context, 2));
    call!(bench, release_context(0));
    check_equal!((bench.fake.live().retained, bench.fake.live().blocks), (1, 1));
    call!(bench, release_context(0));
    check_equal!(bench.fake.live(), Counts::default());
    bench.no_violation()?;
    answers!(INVALID_CONTEXT, bench, release_context(0));
    bench.one_violation(&["released more often than it was retained"])?;
    answers!(101, bench, release_context(2));
    answers!(101, bench, reset_context(-1));
    call!(bench, retain(&raw mut context, 0));
    check!(context != bench.context);
    // A release happens even when it answers an error; a reset does not.
    bench.fake.fail("cuDevicePrimaryCtxReset", 1, LOST);
    answers!(LOST, bench, reset_context(0));
    check_equal!(bench.fake.primary_context(0), context);
    bench.fake.fail("cuDevicePrimaryCtxRelease", 1, LOST);
    answers!(LOST, bench, release_context(0));
    check!(bench.fake.primary_context(0) != context && bench.fake.live().retained == 0);
    Ok(())
}

/// A fault, a reset, and whether the device is well after it.
fn faults() -> Outcome {
    for (recovers, spreads) in [(true, false), (false, false), (true, true), (false, true)] {
        let bench = Bench::new()?;
        bench.fake.set_reset_recovers(recovers);
        bench.fake.set_faults_spread(spreads);
        let other = bench.bind(1)?;
        let far = bench.stream()?;
        call!(bench, set_current(bench.context));
        let (stream, mut context) = (bench.stream()?, 0);
        let fault = bench.function(bench.module(PTX.as_bytes())?, "fault_now")?;
        check_equal!(bench.launch(fault, stream, &[]), SUCCESS);
        answers!(LOST, bench, stream_synchronize(stream));
        call!(bench, set_current(other));
        answers!(if spreads { LOST } else { SUCCESS }, bench, stream_synchronize(far));
        call!(bench, retain(&raw mut context, 0)); // before the reset nothing is wrong with that
        for device in [0, 1] {
            call!(bench, reset_context(device));
            let well = recovers || (device == 1 && !spreads);
            answers!(if well { SUCCESS } else { LOST }, bench, retain(&raw mut context, device));
            if well {
                call!(bench, set_current(context));
                call!(bench, stream_synchronize(bench.stream()?));
            }
        }
        let live = bench.fake.live();
        check_equal!((live.modules, live.streams <= 2, live.blocks), (0, true, 0));
        bench.no_violation()?;
        // The test's own repair helps always.
        for device in [0, 1] {
            bench.fake.lose_context(device, 0);
            call!(bench, retain(&raw mut context, device));
        }
    }
    Ok(())
}

pub fn tests() -> Vec<Test> {
    vec![
        test("resets of contexts", reset),
        test("releases of contexts", released),
        test("resets after faults", faults),
    ]
}
