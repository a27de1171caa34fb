//! Addresses and memory apart: reserving, mapping, access.

use super::*;

const READ_WRITE: c_int = 3;

impl Bench {
    fn reserved(&self, pages: usize) -> Result<u64, Failed> {
        let mut address = 0;
        call!(self, reserve(&raw mut address, pages * PAGE, 0, 0, 0));
        Ok(address)
    }

    fn physical(&self, pages: usize, device: c_int) -> Result<u64, Failed> {
        let properties =
            AllocationProperties { kind: 1, handle_types: 0, location: [1, device], rest: [0; 2] };
        let mut memory = 0;
        call!(self, create(&raw mut memory, pages * PAGE, &raw const properties, 0));
        Ok(memory)
    }

    fn map_for(&self, device: c_int, address: u64, pages: usize) -> Result<u64, Failed> {
        let memory = self.physical(pages, device)?;
        call!(self, map(address, pages * PAGE, 0, memory, 0));
        call!(self, set_access(address, pages * PAGE, &[1, device, READ_WRITE], 1));
        Ok(memory)
    }
}

fn growing_segment() -> Outcome {
    let bench = Bench::new()?;
    let (range, stream) = (bench.reserved(8)?, bench.stream()?);
    let first = bench.map_for(0, range, 1)?;
    let second = bench.map_for(0, range + PAGE as u64, 2)?;
    check_equal!(bench.fake.device_read(range, 1), Some(vec![0xCD]));
    // One use over both.
    call!(bench, fill(range + 4000, 7, 200, stream));
    call!(bench, stream_synchronize(stream));
    check_equal!(bench.fake.device_read(range + 4000, 200), Some(vec![7; 200]));
    check_equal!(bench.fake.device_read(range + 2 * PAGE as u64, 2 * PAGE), None);
    let live = bench.fake.live();
    check_equal!((live.reservations, live.reserved_bytes, live.mappings), (1, 8 * PAGE as u64, 2));
    check_equal!((live.physical, live.physical_bytes), (2, 3 * PAGE as u64));
    // Released memory lives while it is mapped.
    call!(bench, release(first));
    check_equal!(bench.fake.live().physical, 2);
    call!(bench, unmap(range, 3 * PAGE));
    check_equal!(bench.fake.live().physical, 1);
    // A second mapping of a handle is the same memory.
    call!(bench, map(range, 2 * PAGE, 0, second, 0));
    call!(bench, set_access(range, 2 * PAGE, &[1, 0, READ_WRITE], 1));
    check_equal!(bench.fake.device_read(range, 104), Some(vec![7; 104]));
    call!(bench, unmap(range, 2 * PAGE));
    call!(bench, release(second));
    call!(bench, unreserve(range, 8 * PAGE));
    bench.no_violation()?;
    let left = bench.fake.live();
    check_equal!((left.physical_bytes, left.mappings, left.reservations), (0, 0, 0));
    Ok(())
}

fn unordered_unmap() -> Outcome {
    let bench = Bench::new()?;
    let (range, one, other) = (bench.reserved(4)?, bench.stream()?, bench.stream()?);
    bench.map_for(0, range, 1)?;
    bench.map_for(0, range + PAGE as u64, 1)?;
    call!(bench, fill(range, 1, PAGE, one));
    call!(bench, fill(range + PAGE as u64, 1, PAGE, other));
    bench.no_violation()?;
    call!(bench, stream_synchronize(other));
    call!(bench, unmap(range + PAGE as u64, PAGE));
    bench.no_violation()?;
    call!(bench, unmap(range, PAGE));
    bench.one_violation(&["release by cuMemUnmap", "the write by cuMemsetD8Async", "physical memory"])?;
    call!(bench, stream_synchronize(one)); // into the void
    bench.fake.reset();
    let memory = bench.map_for(0, range, 1)?;
    call!(bench, map(range + 2 * PAGE as u64, PAGE, 0, memory, 0));
    call!(bench, set_access(range + 2 * PAGE as u64, PAGE, &[1, 0, READ_WRITE], 1));
    call!(bench, fill(range, 1, 64, one));
    call!(bench, fill(range + 2 * PAGE as u64 + 64, 1, 64, other));
    bench.no_violation()?;
    call!(bench, fill(range + 2 * PAGE as u64, 1, 64, other));
    bench.one_violation(&["physical memory", "bytes 0 to 64"])
}

fn access() -> Outcome {
    let bench = Bench::new()?;
    let (range, stream) = (bench.reserved(4)?, bench.stream()?);
    let memory = bench.physical(1, 0)?;
    answers!(INVALID_VALUE, bench, fill(range, 1, 1, stream));
    bench.one_violation(&["reserved memory", "no memory behind"])?;
    bench.fake.reset();
    call!(bench, map(range, PAGE, 0, memory, 0));
    call!(bench, fill(range, 1, 1, stream));
    bench.one_violation(&["no access"])?;
    bench.fake.reset();
    call!(bench, set_access(range, PAGE, &[1, 0, 1], 1));
    let target = bench.block(8)?;
    call!(bench, copy(target, range, 8, stream));
    bench.no_violation()?;
    call!(bench, fill(range, 1, 1, stream));
    bench.one_violation(&["no access"])?;
    bench.fake.reset();
    // Another device needs its own.
    bench.bind(1)?;
    let there = bench.stream()?;
    call!(bench, fill(range, 1, 1, there));
    bench.one_violation(&["no access"])?;
    bench.fake.reset();
    call!(bench, set_access(range, PAGE, &[1, 1, READ_WRITE], 1));
    call!(bench, fill(range, 1, 1, there));
    bench.no_violation()?;
    answers!(INVALID_VALUE, bench, set_access(range, 2 * PAGE, &[1, 1, READ_WRITE], 1));
    answers!(101, bench, set_access(range, PAGE, &[1, 9, READ_WRITE], 1));
    bench.fake.set_peer_access(false);
    answers!(101, bench, set_access(range, PAGE, &[1, 1, READ_WRITE], 1));
    bench.fake.set_peer_access(true);
    Ok(())
}

fn misuse() -> Outcome {
    let bench = Bench::new()?;
    let range = bench.reserved(4)?;
    let memory = bench.map_for(0, range, 2)?;
    let mut unused = 0;
    answers!(INVALID_VALUE, bench, reserve(&raw mut unused, 100, 0, 0, 0));
    let properties = AllocationProperties { kind: 1, handle_types: 0, location: [1, 0], rest: [0; 2] };
    answers!(INVALID_VALUE, bench, create(&raw mut unused, 100, &raw const properties, 0));
    let mut bytes = 0;
    call!(bench, granularity(&raw mut bytes, &raw const properties, 1));
    check_equal!(bytes, PAGE);
    bench.no_violation()?;
    answers!(INVALID_VALUE, bench, map(range + PAGE as u64, 2 * PAGE, 0, memory, 0));
    answers!(INVALID_VALUE, bench, unmap(range, PAGE));
    answers!(INVALID_VALUE, bench, unreserve(range, 4 * PAGE));
    check_equal!(bench.fake.violations().len(), 3);
    call!(bench, unmap(range, 2 * PAGE));
    call!(bench, release(memory));
    answers!(INVALID_VALUE, bench, release(memory));
    answers!(INVALID_VALUE, bench, map(range, 2 * PAGE, 0, memory, 0));
    answers!(INVALID_VALUE, bench, unmap(range, 2 * PAGE));
    answers!(INVALID_VALUE, bench, unreserve(range, PAGE));
    call!(bench, unreserve(range, 4 * PAGE));
    answers!(INVALID_VALUE, bench, unreserve(range, 4 * PAGE));
    check_equal!(bench.fake.violations().len(), 8);
    Ok(())
}

fn capacity() -> Outcome {
    let bench = Bench::new()?;
    bench.fake.set_memory(10 * PAGE as u64);
    let properties = AllocationProperties { kind: 1, handle_types: 0, location: [1, 0], rest: [0; 2] };
    let (first, _block) = (bench.physical(6, 0)?, bench.block(2 * PAGE)?);
    let mut other = 0;
    answers!(OUT_OF_MEMORY, bench, create(&raw mut other, 3 * PAGE, &raw const properties, 0));
    answers!(OUT_OF_MEMORY, bench, allocate(&raw mut other, 3 * PAGE));
    let (mut free, mut total) = (0, 0);
    call!(bench, memory_info(&raw mut free, &raw mut total));
    check_equal!((free, total), (2 * PAGE, 10 * PAGE));
    call!(bench, release(first));
    call!(bench, create(&raw mut other, 8 * PAGE, &raw const properties, 0));
    check!(bench.fake.describe_live().contains("physical memory"));
    check_equal!(bench.fake.reset(), 2);
    bench.no_violation()
}

fn aligned_ranges() -> Outcome {
    let bench = Bench::new()?;
    let mut range = 0;
    call!(bench, reserve(&raw mut range, 1 << 30, 1 << 30, 0, 0));
    check_equal!(range % (1 << 30), 0);
    bench.map_for(0, range + (1 << 29), 1)?;
    let stream = bench.stream()?;
    call!(bench, fill(range + (1 << 29), 5, PAGE, stream));
    call!(bench, stream_synchronize(stream));
    check_equal!(bench.fake.device_read(range + (1 << 29), 1), Some(vec![5]));
    bench.no_violation()
}

/// A box of 3 by 2 by 2 bytes out of one of 8 by 4 by 3.
fn boxes() -> Outcome {
    let bench = Bench::new()?;
    let (block, stream) = (bench.block(96)?, bench.stream()?);
    let (source, target) = (bench.pinned(96)?, bench.pinned(12)?);
    for (index, byte) in source.iter_mut().enumerate() {
        *byte = index as u8;
    }
    call!(bench, upload(block, source.as_ptr(), 96, stream));
    let side = |kind, host, device, pitch, height| Side {
        x: 0,
        y: 0,
        z: 0,
        level: 0,
        kind,
        host,
        device,
        array: 0,
        context: 0,
        pitch,
        height,
    };
    let mut copy = Copy3d {
        source: Side { x: 2, y: 1, z: 1, ..side(2, null_mut(), block, 8, 4) },
        target: side(1, target.as_mut_ptr(), 0, 3, 2),
        extent: [3, 2, 2],
    };
    call!(bench, copy_3d(&raw const copy, stream));
    call!(bench, stream_synchronize(stream));
    check_equal!(target, &[42, 43, 44, 50, 51, 52, 74, 75, 76, 82, 83, 84]);
    bench.no_violation()?;
    copy.source.height = 2;
    answers!(INVALID_VALUE, bench, copy_3d(&raw const copy, stream));
    copy.source.height = 4;
    copy.source.z = 2;
    answers!(INVALID_VALUE, bench, copy_3d(&raw const copy, stream));
    bench.one_violation(&["past the end"])
}

pub fn tests() -> Vec<Test> {
    vec![
        test("a growing segment", growing_segment),
        test("unordered unmap", unordered_unmap),
        test("access", access),
        test("misuse of ranges", misuse),
        test("capacity of physical memory", capacity),
        test("aligned ranges", aligned_ranges),
        test("boxes", boxes),
    ]
}
