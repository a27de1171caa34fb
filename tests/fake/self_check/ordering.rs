//! Which operations count as ordered, and when queued work runs.

use super::*;

fn unordered_use() -> Outcome {
    let bench = Bench::new()?;
    let (block, one, other) = (bench.block(64)?, bench.stream()?, bench.stream()?);
    bench.fake.step(3);
    call!(bench, fill(block, 1, 64, one));
    bench.fake.step(4);
    call!(bench, fill_32(block, 2, 16, other));
    bench.one_violation(&[
        "write by cuMemsetD32Async",
        "the write by cuMemsetD8Async",
        "step 3",
        "step 4",
    ])?;
    bench.fake.step(0);
    Ok(())
}

fn event_orders() -> Outcome {
    let bench = Bench::new()?;
    let (block, one, other, event) = (bench.block(64)?, bench.stream()?, bench.stream()?, bench.event()?);
    call!(bench, fill(block, 1, 64, one));
    call!(bench, event_record(event, one));
    call!(bench, stream_wait(other, event, 0));
    call!(bench, fill(block, 2, 64, other));
    bench.no_violation()?;
    // An event orders in one direction only, and only work before its record.
    call!(bench, fill(block, 3, 32, one));
    bench.one_violation(&["cuMemsetD8Async"])?;
    call!(bench, stream_synchronize(other));
    call!(bench, stream_synchronize(one));
    check_equal!(bench.fake.device_read(block, 64), Some([[3; 32], [2; 32]].concat()));
    Ok(())
}

fn two_readers_then_a_writer() -> Outcome {
    let bench = Bench::new()?;
    let (block, one, other, event) = (bench.block(64)?, bench.stream()?, bench.stream()?, bench.event()?);
    let (a, b) = (bench.block(64)?, bench.block(64)?);
    call!(bench, fill(block, 1, 64, one));
    call!(bench, stream_synchronize(one));
    call!(bench, copy(a, block, 64, one));
    call!(bench, copy(b, block, 64, other));
    bench.no_violation()?;
    call!(bench, event_record(event, one));
    call!(bench, stream_wait(other, event, 0));
    call!(bench, fill(block, 2, 64, other));
    bench.no_violation()?;
    call!(bench, copy(b, block, 64, other));
    call!(bench, fill(block, 2, 64, one));
    let found = bench.fake.violations();
    check_equal!(found.len(), 2);
    check!(found[1].contains("after the read by cuMemcpyDtoDAsync_v2"));
    Ok(())
}

fn copies_are_late() -> Outcome {
    let bench = Bench::new()?;
    let (block, stream) = (bench.block(16)?, bench.stream()?);
    let (source, target) = (bench.pinned(16)?, bench.pinned(16)?);
    bench.fake.host_write(source);
    source.fill(5);
    target.fill(0);
    call!(bench, upload(block, source.as_ptr(), 16, stream));
    call!(bench, download(target.as_mut_ptr(), block, 16, stream));
    answers!(NOT_READY, bench, stream_query(stream));
    check_equal!(target[0], 0);
    check_equal!(bench.fake.live().pending, 2);
    source.fill(6); // too early, and the copy takes it
    bench.no_violation()?;
    bench.fake.host_write(source);
    bench.one_violation(&["write by host write", "the read by cuMemcpyHtoDAsync_v2", "pinned"])?;
    bench.fake.host_read(target);
    check_equal!(bench.fake.violations().len(), 2);
    call!(bench, stream_synchronize(stream));
    check_equal!(target, &[6; 16]);
    bench.fake.host_read(target);
    check_equal!(bench.fake.violations().len(), 2);
    call!(bench, stream_query(stream));
    Ok(())
}

fn pageable_copies() -> Outcome {
    let bench = Bench::new()?;
    let (block, stream) = (bench.block(16)?, bench.stream()?);
    let (mut early, mut late) = (false, false);
    for _ in 0..64 {
        let mut source = [1u8; 16];
        call!(bench, upload(block, source.as_ptr(), 16, stream));
        check_equal!(bench.fake.pageable_pending(), 1);
        source.fill(2);
        std::hint::black_box(&source);
        call!(bench, stream_synchronize(stream));
        check_equal!(bench.fake.pageable_pending(), 0);
        let taken = bench.fake.device_read(block, 1);
        early |= taken == Some(vec![1]);
        late |= taken == Some(vec![2]);
    }
    check!(early && late);
    let mut target = [0u8; 16];
    call!(bench, download(target.as_mut_ptr(), block, 16, stream));
    bench.fake.host_read(&target[8..]);
    bench.one_violation(&["pageable", "cuMemcpyDtoHAsync_v2"])?;
    call!(bench, stream_synchronize(stream));
    Ok(())
}

fn destroyed_with_work() -> Outcome {
    let bench = Bench::new()?;
    let (block, stream, event) = (bench.block(8)?, bench.stream()?, bench.event()?);
    call!(bench, fill(block, 1, 8, stream));
    call!(bench, event_record(event, stream));
    call!(bench, stream_destroy(stream));
    answers!(NOT_READY, bench, event_query(event));
    call!(bench, event_synchronize(event));
    check_equal!(bench.fake.device_read(block, 8), Some(vec![1; 8]));
    call!(bench, free(block));
    // The same through the context, with the stream gone before the wait.
    let (block, stream) = (bench.block(8)?, bench.stream()?);
    call!(bench, fill(block, 1, 8, stream));
    call!(bench, stream_destroy(stream));
    bench.fake.drain();
    call!(bench, context_synchronize());
    call!(bench, free(block));
    bench.no_violation()
}

fn queries() -> Outcome {
    let bench = Bench::new()?;
    let (block, one, other, event) = (bench.block(8)?, bench.stream()?, bench.stream()?, bench.event()?);
    for _ in 0..20 {
        call!(bench, fill(block, 1, 8, one));
    }
    call!(bench, event_record(event, one));
    call!(bench, stream_wait(other, event, 0));
    call!(bench, fill(block, 2, 8, other));
    for _ in 0..100 {
        answers!(NOT_READY, bench, event_query(event));
        answers!(NOT_READY, bench, stream_query(other));
    }
    bench.fake.run(5);
    check_equal!(bench.fake.live().pending, 18);
    bench.fake.set_strict(false);
    let mut polls = 0;
    // SAFETY: a live handle.
    while unsafe { (bench.driver.stream_query)(other) } == NOT_READY {
        polls += 1;
        check!(polls < 1000);
    }
    call!(bench, free(block));
    bench.no_violation()
}

fn orders_vary() -> Outcome {
    let bench = Bench::new()?;
    bench.fake.set_strict(false);
    let mut seen = std::collections::HashSet::new();
    for seed in 0..32 {
        bench.fake.reset();
        bench.fake.set_seed(seed);
        let (a, b, one, other) = (bench.block(8)?, bench.block(8)?, bench.stream()?, bench.stream()?);
        call!(bench, fill(a, 1, 8, one));
        call!(bench, fill(b, 1, 8, other));
        for _ in 0..4 {
            bench.event()?;
        }
        seen.insert((bench.fake.device_read(a, 8), bench.fake.device_read(b, 8)));
    }
    check_equal!(seen.len(), 4);
    bench.no_violation()
}

fn host_threads() -> Outcome {
    let bench = Bench::new()?;
    bench.fake.reset();
    bench.fake.set_host_threads_ordered(false);
    let (block, stream) = (bench.block(8)?, bench.stream()?);
    let wait = || {
        bench.fake.foreign_set(bench.context);
        // SAFETY: live handles.
        unsafe { (bench.driver.stream_synchronize)(stream) }
    };
    call!(bench, fill(block, 1, 8, stream));
    // Another thread has waited; this one knows nothing of it until it acquires.
    let code = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let code = wait();
                bench.fake.thread_release(9);
                code
            })
            .join()
    });
    check_equal!(code.ok(), Some(SUCCESS));
    bench.fake.thread_acquire(9);
    call!(bench, free(block));
    bench.no_violation()?;
    let block = bench.block(8)?;
    call!(bench, fill(block, 1, 8, stream));
    let code = std::thread::scope(|scope| scope.spawn(wait).join());
    check_equal!(code.ok(), Some(SUCCESS));
    call!(bench, free(block));
    bench.one_violation(&["release by cuMemFree_v2"])?;
    bench.fake.reset();
    bench.fake.set_host_threads_ordered(true);
    Ok(())
}

fn many_streams() -> Outcome {
    let bench = Bench::new()?;
    let block = bench.block(8)?;
    for _ in 0..5000 {
        let stream = bench.stream()?;
        call!(bench, fill(block, 1, 8, stream));
        call!(bench, stream_synchronize(stream));
        call!(bench, stream_destroy(stream));
    }
    call!(bench, free(block));
    bench.no_violation()?;
    // Handles stay through a reset, their histories do not.
    let (block, stream) = (bench.block(8)?, bench.stream()?);
    call!(bench, fill(block, 1, 8, stream));
    check_equal!(bench.fake.reset(), 2);
    check_equal!(bench.fake.calls(), 0);
    let other = bench.stream()?;
    call!(bench, fill(block, 1, 8, other));
    bench.no_violation()
}

static FROM_CALLBACK: AtomicI32 = AtomicI32::new(0);

extern "C" fn well_behaved(argument: *mut c_void) {
    // SAFETY: the test passes an AtomicI32 and waits for the call.
    unsafe { &*argument.cast::<AtomicI32>() }.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn calls_the_driver(query: *mut c_void) {
    // SAFETY: the test passes the address of cuCtxSynchronize, which takes no argument.
    let synchronize: unsafe extern "C" fn() -> c_int = unsafe { std::mem::transmute(query) };
    // SAFETY: as above.
    FROM_CALLBACK.store(unsafe { synchronize() }, Ordering::SeqCst);
}

fn host_functions() -> Outcome {
    let bench = Bench::new()?;
    let (stream, other, event) = (bench.stream()?, bench.stream()?, bench.event()?);
    let count = AtomicI32::new(0);
    let argument = (&raw const count).cast_mut().cast();
    call!(bench, host_function(stream, well_behaved, argument));
    call!(bench, event_record(event, stream));
    call!(bench, stream_wait(other, event, 0));
    call!(bench, host_function(other, well_behaved, argument));
    check_equal!(count.load(Ordering::SeqCst), 0);
    call!(bench, stream_synchronize(other));
    check_equal!(count.load(Ordering::SeqCst), 2);
    bench.no_violation()?;
    let synchronize = bench.driver.context_synchronize as *mut c_void;
    call!(bench, host_function(stream, calls_the_driver, synchronize));
    call!(bench, stream_synchronize(stream));
    check_equal!(FROM_CALLBACK.load(Ordering::SeqCst), NOT_PERMITTED);
    bench.one_violation(&["cuCtxSynchronize", "host function"])
}

pub fn tests() -> Vec<Test> {
    vec![
        test("an unordered use names both sites", unordered_use),
        test("an event orders", event_orders),
        test("a write waits for all reads", two_readers_then_a_writer),
        test("copies take effect late", copies_are_late),
        test("pageable copies", pageable_copies),
        test("destroyed with work", destroyed_with_work),
        test("queries", queries),
        test("orders vary with the seed", orders_vary),
        test("host functions", host_functions),
        test("host threads", host_threads),
        test("many streams", many_streams),
    ]
}
