//! Memory: lifetimes, bounds, capacity, peers.

use super::*;

fn frees() -> Outcome {
    let bench = Bench::new()?;
    let (block, stream) = (bench.block(64)?, bench.stream()?);
    call!(bench, fill(block, 1, 64, stream));
    call!(bench, stream_synchronize(stream));
    call!(bench, free(block));
    bench.no_violation()?;
    answers!(INVALID_VALUE, bench, free(block));
    bench.one_violation(&["use of freed device memory", "made by cuMemAlloc_v2", "freed by cuMemFree_v2"])?;
    answers!(INVALID_VALUE, bench, fill(block + 8, 1, 8, stream));
    check_equal!(bench.fake.violations().len(), 2);

    bench.fake.reset();
    let block = bench.block(64)?;
    call!(bench, fill(block, 1, 64, stream));
    call!(bench, free(block));
    bench.one_violation(&["release by cuMemFree_v2", "the write by cuMemsetD8Async"])?;

    bench.fake.reset();
    let pinned = bench.pinned(64)?;
    let block = bench.block(64)?;
    call!(bench, upload(block, pinned.as_ptr(), 64, stream));
    call!(bench, host_free(pinned.as_mut_ptr()));
    bench.one_violation(&["release by cuMemFreeHost", "the read by cuMemcpyHtoDAsync_v2"])?;
    call!(bench, stream_synchronize(stream));
    check_equal!(bench.fake.device_read(block, 1), Some(vec![0xDD]));
    Ok(())
}

fn registered_memory() -> Outcome {
    let bench = Bench::new()?;
    let (block, stream) = (bench.block(64)?, bench.stream()?);
    let mut memory = vec![9u8; 64];
    call!(bench, host_register(memory.as_mut_ptr(), 64, 0));
    answers!(712, bench, host_register(memory.as_mut_ptr(), 8, 0));
    call!(bench, upload(block, memory.as_ptr(), 64, stream));
    check_equal!(bench.fake.pageable_pending(), 0);
    call!(bench, host_unregister(memory.as_mut_ptr()));
    bench.one_violation(&["release by cuMemHostUnregister", "registered"])?;
    call!(bench, stream_synchronize(stream));
    answers!(713, bench, host_unregister(memory.as_mut_ptr()));
    Ok(())
}

fn bounds() -> Outcome {
    let bench = Bench::new()?;
    let (block, stream) = (bench.block(64)?, bench.stream()?);
    call!(bench, fill(block + 63, 1, 1, stream));
    call!(bench, fill(block + 64, 1, 0, stream));
    bench.no_violation()?;
    answers!(INVALID_VALUE, bench, fill(block + 60, 1, 5, stream));
    bench.one_violation(&["past the end", "64 bytes"])?;
    answers!(INVALID_VALUE, bench, fill(block - 1, 1, 1, stream));
    answers!(INVALID_VALUE, bench, fill(0, 1, 1, stream));
    check_equal!(bench.fake.violations().len(), 3);
    // No host address is a device address.
    check!(block >> 47 != 0 && block >> 47 != 0x1_FFFF);
    Ok(())
}

fn capacity() -> Outcome {
    let bench = Bench::new()?;
    bench.fake.set_memory(1000);
    let mut block = 0;
    call!(bench, allocate(&raw mut block, 600));
    let mut other = 0;
    answers!(OUT_OF_MEMORY, bench, allocate(&raw mut other, 600));
    call!(bench, free(block));
    call!(bench, allocate(&raw mut other, 600));
    check_equal!(bench.fake.live().bytes, 600);
    answers!(INVALID_VALUE, bench, allocate(&raw mut other, 0));
    bench.no_violation()
}

fn peers() -> Outcome {
    let bench = Bench::new()?;
    let here = bench.block(8)?;
    let module = bench.module(PTX.as_bytes())?;
    let (produce, stream) = (bench.function(module, "produce")?, bench.stream()?);
    let other_context = bench.bind(1)?;
    let there = bench.block(8)?;
    call!(bench, set_current(bench.context));
    call!(bench, fill(here, 4, 8, stream));
    call!(bench, copy_peer(there, other_context, here, bench.context, 8, stream));
    call!(bench, stream_synchronize(stream));
    check_equal!(bench.fake.device_read(there, 8), Some(vec![4; 8]));
    bench.no_violation()?;
    check_equal!(bench.launch(produce, stream, &[&word(there)]), SUCCESS);
    bench.one_violation(&["without peer access"])?;
    call!(bench, enable_peer(other_context, 0));
    answers!(704, bench, enable_peer(other_context, 0));
    check_equal!(bench.launch(produce, stream, &[&word(there)]), SUCCESS);
    check_equal!(bench.fake.violations().len(), 1);
    answers!(INVALID_VALUE, bench, copy_peer(there, bench.context, here, bench.context, 8, stream));
    Ok(())
}

pub fn tests() -> Vec<Test> {
    vec![
        test("frees", frees),
        test("registered memory", registered_memory),
        test("bounds", bounds),
        test("capacity", capacity),
        test("peers", peers),
    ]
}
