//! Copies in batches, and pitched ones between contexts.

use super::*;

const STREAM: c_int = 1;
const DURING_CALL: c_int = 2;
const ANY_TIME: c_int = 3;

fn attributes(orders: &[c_int]) -> Vec<BatchAttributes> {
    orders.iter().map(|&order| BatchAttributes { order, rest: [0; 5] }).collect()
}

fn batches() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block, other) = (bench.stream()?, bench.block(64)?, bench.block(64)?);
    let (pinned, mut pageable) = (bench.pinned(16)?, vec![3u8; 16]);
    pinned.fill(2);
    call!(bench, fill(block, 1, 64, stream));
    let to = [other, other + 16, other + 32];
    let from = [block, pinned.as_ptr() as u64, pageable.as_ptr() as u64];
    let (sizes, first, mut failed) = ([16usize; 3], [0, 2], 0);
    let list = attributes(&[STREAM, DURING_CALL]);
    call!(
        bench,
        batch(
            to.as_ptr(),
            from.as_ptr(),
            sizes.as_ptr(),
            3,
            list.as_ptr(),
            first.as_ptr(),
            2,
            &raw mut failed,
            stream
        )
    );
    check_equal!(failed, usize::MAX);
    // The call has read its host memory.
    check_equal!(bench.fake.pageable_pending(), 0);
    bench.fake.host_write(&pageable);
    pageable.fill(0);
    bench.no_violation()?;
    // Nothing else has.
    check_equal!(bench.fake.live().pending, 4);
    call!(bench, stream_synchronize(stream));
    let expected = [vec![1; 16], vec![2; 16], vec![3; 16]].concat();
    check_equal!(bench.fake.device_read(other, 48), Some(expected));
    // Each is a use of its bytes.
    let (back, second) = (pinned.as_ptr() as u64, bench.stream()?);
    let (list, first) = (attributes(&[STREAM]), [0]);
    call!(
        bench,
        batch_2(
            &raw const back,
            &raw const other,
            sizes.as_ptr(),
            1,
            list.as_ptr(),
            first.as_ptr(),
            1,
            stream
        )
    );
    call!(bench, fill(other + 16, 1, 8, second));
    bench.no_violation()?;
    call!(bench, fill(other + 15, 1, 1, second));
    bench.one_violation(&["write by cuMemsetD8Async", "the read by cuMemcpyBatchAsync_v2"])?;
    bench.fake.host_read(pinned);
    check_equal!(bench.fake.violations().len(), 2);
    Ok(())
}

fn misuse() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block) = (bench.stream()?, bench.block(64)?);
    let mut failed = 0;
    let mut run = |to: &[u64], from: &[u64], orders: &[c_int], first: &[usize], stream: u64| {
        let (sizes, list) = (vec![16usize; to.len()], attributes(orders));
        // SAFETY: lists of as many elements as are said.
        let code = unsafe {
            (bench.driver.batch)(
                to.as_ptr(),
                from.as_ptr(),
                sizes.as_ptr(),
                to.len(),
                list.as_ptr(),
                first.as_ptr(),
                list.len(),
                &raw mut failed,
                stream,
            )
        };
        (code, failed)
    };
    let wrong = (INVALID_VALUE, usize::MAX);
    let (to, from) = ([block, block + 16], [block + 32, block + 48]);
    check_equal!(run(&[], &[], &[], &[], stream), wrong);
    check_equal!(run(&to, &from, &[], &[], stream), wrong);
    check_equal!(run(&to, &from, &[STREAM], &[1], stream), wrong);
    check_equal!(run(&to, &from, &[STREAM, STREAM], &[0, 0], stream), wrong);
    check_equal!(run(&to, &from, &[STREAM, STREAM], &[0, 2], stream), wrong);
    check_equal!(run(&to, &from, &[STREAM; 3], &[0, 1, 2], stream), wrong);
    check_equal!(run(&to, &from, &[STREAM], &[0], 0), wrong);
    check_equal!(run(&to, &from, &[STREAM, 4], &[0, 1], stream), (INVALID_VALUE, 1));
    check_equal!(run(&to, &from, &[0], &[0], stream), (INVALID_VALUE, 0));
    bench.no_violation()?;
    check_equal!(run(&to, &[block, block + 60], &[STREAM], &[0], stream), (INVALID_VALUE, 1));
    bench.one_violation(&["past the end"])?;
    check_equal!(bench.fake.live().pending, 0);
    bench.fake.reset();
    // In no order with each other.
    for (to, from) in [
        ([block, block + 15], [block + 32, block + 48]),
        ([block, block + 16], [block + 32, block + 15]),
        ([block, block + 16], [block + 16, block + 48]),
    ] {
        check_equal!(run(&to, &from, &[STREAM], &[0], stream), (SUCCESS, usize::MAX));
        bench.one_violation(&["copies 0 and 1 of a batch are in no order"])?;
        bench.fake.reset();
    }
    // In no order with the stream.
    for order in [DURING_CALL, ANY_TIME] {
        check_equal!(run(&to, &from, &[STREAM, order], &[0, 1], stream), (SUCCESS, usize::MAX));
        bench.one_violation(&["copy 1 of a batch reads device memory in no order with its stream"])?;
        bench.fake.reset();
    }
    // Not captured.
    let mut graph = 0;
    call!(bench, capture_begin(stream, 1));
    check_equal!(run(&to, &from, &[STREAM], &[0], stream).0, 900);
    answers!(901, bench, capture_end(stream, &raw mut graph));
    bench.no_violation()
}

fn side(kind: c_uint, host: *mut u8, device: u64, context: u64) -> Side {
    Side { x: 0, y: 0, z: 0, level: 0, kind, host, device, array: 0, context, pitch: 4, height: 2 }
}

fn pitched() -> Outcome {
    let bench = Bench::new()?;
    let (stream, block, host) = (bench.stream()?, bench.block(64)?, bench.pinned(64)?);
    let target = host.as_mut_ptr();
    let good =
        || Copy3d { source: side(2, null_mut(), block, 0), target: side(1, target, 0, 0), extent: [4, 2, 2] };
    let whole = good();
    call!(bench, copy_3d(&raw const whole, stream));
    // One plane needs no height, one row no pitch.
    let flat = |pitch, height, extent| {
        let mut copy = good();
        (copy.source.pitch, copy.source.height, copy.extent) = (pitch, height, extent);
        copy
    };
    for copy in [flat(4, 0, [4, 2, 1]), flat(0, 0, [4, 1, 1]), flat(4, 2, [4, 2, 1]), flat(0, 0, [0, 9, 9])] {
        call!(bench, copy_3d(&raw const copy, stream));
    }
    for copy in [
        flat(3, 2, [4, 2, 2]),
        flat(0, 2, [4, 2, 2]),
        flat(4, 1, [4, 2, 2]),
        flat(4, 0, [4, 2, 2]),
        flat(4, 1, [4, 2, 1]),
        flat(1 << 31, 2, [4, 2, 2]),
    ] {
        answers!(INVALID_VALUE, bench, copy_3d(&raw const copy, stream));
    }
    let mut copy = flat(4, 2, [4, 2, 2]);
    (copy.source.y, copy.target.x) = (1, 0);
    answers!(INVALID_VALUE, bench, copy_3d(&raw const copy, stream));
    (copy.source.y, copy.target.x) = (0, 1);
    answers!(INVALID_VALUE, bench, copy_3d(&raw const copy, stream));
    (copy.target.x, copy.source.z, copy.source.height) = (0, 1, 0);
    copy.extent[2] = 1;
    answers!(INVALID_VALUE, bench, copy_3d(&raw const copy, stream));
    (copy.source.height, copy.source.level) = (2, 1);
    answers!(INVALID_VALUE, bench, copy_3d(&raw const copy, stream));
    (copy.source.level, copy.source.context) = (0, bench.context);
    answers!(INVALID_VALUE, bench, copy_3d(&raw const copy, stream));
    bench.no_violation()
}

fn between_contexts() -> Outcome {
    let bench = Bench::new()?;
    let (stream, here) = (bench.stream()?, bench.block(16)?);
    let other = bench.bind(1)?;
    let there = bench.block(64)?;
    call!(bench, set_current(bench.context));
    call!(bench, fill(here, 6, 16, stream));
    let mut copy = Copy3d {
        source: side(2, null_mut(), here, bench.context),
        target: Side { pitch: 8, height: 3, ..side(2, null_mut(), there, other) },
        extent: [4, 2, 2],
    };
    call!(bench, copy_3d_peer(&raw const copy, stream));
    call!(bench, stream_synchronize(stream));
    let mut expected = [0xCD; 40];
    for row in [0, 8, 24, 32] {
        expected[row..row + 4].fill(6);
    }
    check_equal!(bench.fake.device_read(there, 40), Some(expected.to_vec()));
    bench.no_violation()?;
    copy.target.context = bench.context;
    answers!(INVALID_VALUE, bench, copy_3d_peer(&raw const copy, stream));
    bench.one_violation(&["wrong context"])?;
    copy.target.context = other + (1 << 32);
    answers!(INVALID_CONTEXT, bench, copy_3d_peer(&raw const copy, stream));
    bench.fake.lose_context(1, LOST);
    copy.target.context = other;
    answers!(LOST, bench, copy_3d_peer(&raw const copy, stream));
    Ok(())
}

pub fn tests() -> Vec<Test> {
    vec![
        test("batches of copies", batches),
        test("misuse of batches", misuse),
        test("pitches and heights", pitched),
        test("pitched copies between contexts", between_contexts),
    ]
}
