//! Uses of parts of a block: disjoint ones are free of each other, overlapping ones are not.

use super::*;

fn disjoint_parts() -> Outcome {
    let bench = Bench::new()?;
    let (block, one, other) = (bench.block(256)?, bench.stream()?, bench.stream()?);
    let module = bench.module(PTX.as_bytes())?;
    let part = bench.function(module, "part")?;
    let pinned = bench.pinned(128)?;
    call!(bench, fill(block, 1, 64, one));
    call!(bench, fill(block + 64, 2, 64, other));
    check_equal!(bench.launch(part, one, &[&word(block + 128), &word(64)]), SUCCESS);
    check_equal!(bench.launch(part, other, &[&word(block + 192), &word(64)]), SUCCESS);
    call!(bench, download(pinned.as_mut_ptr(), block, 64, one));
    call!(bench, download(pinned[64..].as_mut_ptr(), block + 64, 64, other));
    call!(bench, copy(block, block + 128, 64, one));
    bench.no_violation()?;
    // The host may look at what has come, and at nothing else.
    call!(bench, stream_synchronize(one));
    bench.fake.host_read(&pinned[..64]);
    bench.no_violation()?;
    bench.fake.host_read(&pinned[..65]);
    bench.one_violation(&["read by host read", "the write by cuMemcpyDtoHAsync_v2", "bytes 0 to 65"])
}

fn overlapping_parts() -> Outcome {
    let bench = Bench::new()?;
    let (block, one, other) = (bench.block(256)?, bench.stream()?, bench.stream()?);
    call!(bench, fill(block, 1, 65, one));
    call!(bench, fill(block + 64, 2, 64, other));
    bench.one_violation(&["write by cuMemsetD8Async", "bytes 64 to 128"])?;
    // One use over many parts names each earlier use once.
    bench.fake.reset();
    let block = bench.block(256)?;
    let target = bench.block(8)?;
    call!(bench, fill(block, 1, 256, one));
    for offset in (0..256).step_by(16) {
        call!(bench, copy(target, block + offset, 8, one));
    }
    call!(bench, fill_32(block, 3, 8, other));
    let found = bench.fake.violations();
    check_equal!(found.len(), 3); // the fill and two reads
    check!(found[1].contains("the read by cuMemcpyDtoDAsync_v2"));
    bench.fake.reset();
    let block = bench.block(256)?;
    call!(bench, fill(block + 8, 1, 8, one));
    call!(bench, fill(block, 2, 256, one));
    call!(bench, fill(block + 100, 1, 8, other));
    bench.one_violation(&["bytes 100 to 108", "the write by cuMemsetD8Async"])
}

fn parts_without_a_size() -> Outcome {
    let bench = Bench::new()?;
    let (block, one, other) = (bench.block(256)?, bench.stream()?, bench.stream()?);
    let module = bench.module(PTX.as_bytes())?;
    let produce = bench.function(module, "produce")?;
    call!(bench, fill(block, 1, 64, one));
    check_equal!(bench.launch(produce, other, &[&word(block + 64)]), SUCCESS);
    bench.no_violation()?;
    check_equal!(bench.launch(produce, other, &[&word(block + 63)]), SUCCESS);
    bench.one_violation(&["write by cuLaunchKernel[produce]", "bytes 63 to 256"])
}

/// As a pool does: parts of one block, in use on different streams, handed from one to the next with an event.
fn a_split_block() -> Outcome {
    let bench = Bench::new()?;
    let (one, other, event) = (bench.stream()?, bench.stream()?, bench.event()?);
    let block = bench.block(4096)?;
    for round in 0..200u64 {
        let (size, at) = (64 << (round % 3), round * 8 % 2048);
        call!(bench, fill(block + at, 1, size, one));
        call!(bench, fill(block + 2048 + at, 2, size, other));
        if round % 5 == 0 {
            call!(bench, event_record(event, one));
            call!(bench, stream_wait(other, event, 0));
            call!(bench, fill(block, 3, 2048 + 8, other));
            call!(bench, event_record(event, other));
            call!(bench, stream_wait(one, event, 0));
        }
    }
    bench.no_violation()?;
    // A free concerns all of it.
    call!(bench, stream_synchronize(one));
    call!(bench, free(block));
    check!(!bench.fake.violations().is_empty());
    check!(bench.fake.violations().iter().all(|text| text.contains("release by cuMemFree_v2")));
    Ok(())
}

pub fn tests() -> Vec<Test> {
    vec![
        test("disjoint parts", disjoint_parts),
        test("overlapping parts", overlapping_parts),
        test("parts without a size", parts_without_a_size),
        test("a split block", a_split_block),
    ]
}
