//! Memory in the order of a stream.

use super::*;

const THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const USED: c_int = 7;
const USED_HIGH: c_int = 8;

impl Bench {
    fn pool(&self) -> Result<u64, Failed> {
        let properties = PoolProperties { kind: 1, handle_types: 0, location: [1, 0], rest: [0; 9] };
        let mut pool = 0;
        call!(self, pool_create(&raw mut pool, &raw const properties));
        Ok(pool)
    }

    fn number(&self, pool: u64, attribute: c_int) -> Result<u64, Failed> {
        let mut value = 0;
        call!(self, pool_get(pool, attribute, &raw mut value));
        Ok(value)
    }
}

fn order() -> Outcome {
    let bench = Bench::new()?;
    let (one, other, event) = (bench.stream()?, bench.stream()?, bench.event()?);
    let mut block = 0;
    call!(bench, allocate_async(&raw mut block, 64, one));
    call!(bench, fill(block, 1, 64, one));
    call!(bench, event_record(event, one));
    call!(bench, stream_wait(other, event, 0));
    call!(bench, fill(block, 2, 64, other));
    call!(bench, free_async(block, other));
    bench.no_violation()?;
    answers!(INVALID_VALUE, bench, fill(block, 3, 64, other));
    bench.one_violation(&["use of freed device memory", "freed by cuMemFreeAsync"])?;
    answers!(INVALID_VALUE, bench, free_async(block, other));
    check_equal!(bench.fake.violations().len(), 2);
    bench.fake.reset();
    // Used before it is there, and freed before all uses.
    call!(bench, allocate_async(&raw mut block, 64, one));
    call!(bench, fill(block, 1, 64, other));
    bench.one_violation(&["write by cuMemsetD8Async", "the write by cuMemAllocAsync"])?;
    bench.fake.reset();
    call!(bench, fill(block, 1, 64, one));
    call!(bench, free_async(block, other));
    bench.one_violation(&["release by cuMemFreeAsync", "the write by cuMemsetD8Async"])?;
    bench.fake.reset();
    // A free by the host is one.
    call!(bench, allocate_async(&raw mut block, 64, one));
    call!(bench, free(block));
    bench.one_violation(&["release by cuMemFree_v2", "the write by cuMemAllocAsync"])?;
    bench.fake.reset();
    let plain = bench.block(8)?;
    answers!(INVALID_VALUE, bench, free_async(plain, one));
    bench.one_violation(&["no allocation of a pool"])?;
    check_equal!(bench.fake.live().blocks, 1);
    Ok(())
}

/// Work that was queued before the free sees the block as it was.
fn late_free() -> Outcome {
    let bench = Bench::new()?;
    let (stream, target) = (bench.stream()?, bench.pinned(64)?);
    let mut block = 0;
    call!(bench, allocate_async(&raw mut block, 64, stream));
    call!(bench, fill(block, 9, 64, stream));
    call!(bench, download(target.as_mut_ptr(), block, 64, stream));
    call!(bench, free_async(block, stream));
    call!(bench, stream_synchronize(stream));
    check_equal!(target, &[9; 64]);
    bench.no_violation()
}

fn numbers() -> Outcome {
    let bench = Bench::new()?;
    let (pool, stream) = (bench.pool()?, bench.stream()?);
    let mut blocks = [0; 3];
    for block in &mut blocks {
        call!(bench, allocate_from(block, 1000, pool, stream));
    }
    check_equal!((bench.number(pool, USED)?, bench.number(pool, RESERVED)?), (3000, 3000));
    call!(bench, free_async(blocks[0], stream));
    check_equal!((bench.number(pool, USED)?, bench.number(pool, RESERVED)?), (2000, 2000));
    call!(bench, pool_set(pool, THRESHOLD, &u64::MAX));
    call!(bench, free_async(blocks[1], stream));
    check_equal!((bench.number(pool, USED)?, bench.number(pool, RESERVED)?), (1000, 2000));
    let (mut free, mut total) = (0, 0);
    call!(bench, memory_info(&raw mut free, &raw mut total));
    check_equal!(total - free, 2000);
    call!(bench, allocate_from(&raw mut blocks[1], 500, pool, stream));
    check_equal!((bench.number(pool, USED)?, bench.number(pool, RESERVED)?), (1500, 2000));
    call!(bench, pool_trim(pool, 1700));
    check_equal!(bench.number(pool, RESERVED)?, 1700);
    call!(bench, pool_trim(pool, 0));
    check_equal!((bench.number(pool, RESERVED)?, bench.number(pool, USED_HIGH)?), (1500, 3000));
    call!(bench, pool_set(pool, USED_HIGH, &0));
    check_equal!(bench.number(pool, USED_HIGH)?, 1500);
    answers!(INVALID_VALUE, bench, pool_set(pool, USED, &0));
    // Cached memory is released for other allocations.
    call!(bench, free_async(blocks[2], stream));
    bench.fake.set_memory(2000);
    bench.block(1400)?;
    check_equal!(bench.number(pool, RESERVED)?, 500);
    let mut unused = 0;
    answers!(OUT_OF_MEMORY, bench, allocate_from(&raw mut unused, 200, pool, stream));
    bench.no_violation()
}

fn lifetime() -> Outcome {
    let bench = Bench::new()?;
    let (pool, stream) = (bench.pool()?, bench.stream()?);
    let mut block = 0;
    call!(bench, allocate_from(&raw mut block, 8, pool, stream));
    check_equal!((bench.fake.live().pools, bench.fake.live().blocks), (1, 1));
    check!(bench.fake.describe_live().contains("pool of device 0"));
    call!(bench, pool_destroy(pool));
    call!(bench, free_async(block, stream)); // a destroyed pool waits for its blocks
    bench.no_violation()?;
    answers!(INVALID_VALUE, bench, pool_destroy(pool));
    bench.one_violation(&["destroyed pool"])?;
    let mut standard = 0;
    call!(bench, default_pool(&raw mut standard, 0));
    answers!(INVALID_VALUE, bench, pool_destroy(standard));
    check_equal!(bench.fake.live().pools, 0);
    check_equal!(bench.fake.violations().len(), 1);
    Ok(())
}

fn peers() -> Outcome {
    let bench = Bench::new()?;
    let (pool, stream, event) = (bench.pool()?, bench.stream()?, bench.event()?);
    let mut block = 0;
    call!(bench, allocate_from(&raw mut block, 8, pool, stream));
    call!(bench, event_record(event, stream));
    bench.bind(1)?;
    call!(bench, enable_peer(bench.context, 0)); // is not enough
    let there = bench.stream()?;
    call!(bench, stream_wait(there, event, 0));
    call!(bench, fill(block, 1, 8, there));
    bench.one_violation(&["no access"])?;
    call!(bench, pool_access(pool, &[1, 1, 3], 1));
    call!(bench, fill(block, 1, 8, there));
    check_equal!(bench.fake.violations().len(), 1);
    Ok(())
}

pub fn tests() -> Vec<Test> {
    vec![
        test("the order of pools", order),
        test("a late free", late_free),
        test("the numbers of a pool", numbers),
        test("the life of a pool", lifetime),
        test("pools and peers", peers),
    ]
}
