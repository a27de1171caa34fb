//! A launch has the shape that it was asked for, and as much shared memory as the device has when asked.

use selvedge::driver::{Attribute, Dim3, LaunchConfig};

use crate::support::{Lab, Numbers, Outcome, assert_all, device_tests};

device_tests! {
    shapes_in_three_dimensions, a_kernel_without_parameters, one_thread_for_each_element, shared_memory_up_to_the_limit,
    shared_memory_beside_static, the_largest_block, the_largest_grids, a_long_burst, clones_of_a_function,
    functions_on_many_threads,
}

fn shapes_in_three_dimensions() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("linear_index")?;
    let shapes: [(Dim3, Dim3); 6] = [
        (1.into(), 1.into()),
        (7.into(), 33.into()),
        ((3, 5).into(), (8, 4).into()),
        ((2, 3, 4).into(), (4, 3, 2).into()),
        ((1, 1, 9).into(), (1, 1, 64).into()),
        ((1, 70, 1).into(), (1, 512, 1).into()),
    ];
    for (grid, block) in shapes {
        let count = (grid.count() * block.count()) as usize;
        let mut out = lab.stream.upload(&vec![u32::MAX; count + 1])?;
        // SAFETY: linear_index(unsigned*) writes one element a thread.
        unsafe { kernel.launch(&lab.stream, LaunchConfig::new(grid, block), (&mut out,))? };
        let out = lab.stream.download(&out)?;
        assert!(out[..count].iter().copied().eq(0..count as u32), "{grid} of {block}");
        assert_eq!(out[count], u32::MAX, "{grid} of {block} wrote too far");
    }
    Ok(())
}

fn a_kernel_without_parameters() -> Outcome {
    let lab = Lab::new()?;
    let empty = lab.kernel("empty")?;
    assert_eq!(empty.parameters().map(<[_]>::len), Some(0));
    // SAFETY: it does nothing.
    unsafe { empty.launch(&lab.stream, LaunchConfig::new(3, 5), ())? };
    // SAFETY: as above.
    unsafe { empty.launch(&lab.stream, LaunchConfig::new(3, 5), &[])? };
    lab.stream.synchronize()?;
    Ok(())
}

fn one_thread_for_each_element() -> Outcome {
    let lab = Lab::new()?;
    let saxpy = lab.kernel("saxpy")?;
    for length in [1usize, 255, 256, 257, 100_000] {
        let (x, mut y) =
            (lab.stream.upload(&vec![2.0f32; length])?, lab.stream.upload(&vec![1.0f32; length])?);
        let config = LaunchConfig::for_elements(length);
        // SAFETY: saxpy(float, const float*, float*, unsigned) touches `length` elements of each.
        unsafe { saxpy.launch(&lab.stream, config, (3.0f32, &x, &mut y, length as u32))? };
        assert_all(&lab.stream.download(&y)?, 7.0, "3 · 2 + 1");
    }
    Ok(())
}

fn reversed(lab: &Lab, kernel: &str, words: u32) -> selvedge::Result<(Vec<u32>, Vec<u32>)> {
    let mut numbers = Numbers(u64::from(words));
    let values: Vec<u32> = (0..words).map(|_| numbers.next() >> 1).collect();
    let input = lab.stream.upload(&values)?;
    let mut out = lab.stream.zeros::<u32>(words as usize)?;
    let config = LaunchConfig::new(1, 256).shared(4 * words);
    // SAFETY: the kernel reads and writes `words` elements, and uses as many words of dynamic shared memory.
    unsafe { lab.kernel(kernel)?.launch(&lab.stream, config, (&input, &mut out, words))? };
    Ok((values, lab.stream.download(&out)?))
}

fn shared_memory_up_to_the_limit() -> Outcome {
    let lab = Lab::new()?;
    let limit = lab.device.attribute(Attribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as u32;
    for bytes in [0, 4, 48 << 10, (48 << 10) + 4, limit - 4, limit] {
        let (values, out) = reversed(&lab, "turn_around", bytes / 4)?;
        assert!(out.iter().eq(values.iter().rev()), "{bytes} bytes");
    }
    Ok(())
}

fn shared_memory_beside_static() -> Outcome {
    let lab = Lab::new()?;
    let limit = lab.device.attribute(Attribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as u32 - 4096;
    for bytes in [44 << 10, 48 << 10, limit] {
        let (values, out) = reversed(&lab, "turn_around_beside_static", bytes / 4)?;
        let wanted = (0u32..).zip(values.iter().rev()).map(|(index, value)| value + (index & 1023));
        assert!(out.iter().copied().eq(wanted), "{bytes} bytes");
    }
    let one_more = reversed(&lab, "turn_around_beside_static", limit / 4 + 1);
    crate::support::assert_error!(one_more, selvedge::Error::LaunchLimit { .. });
    Ok(())
}

fn the_largest_block() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("linear_index")?;
    let threads = kernel.attributes()?.max_threads_per_block;
    let mut out = lab.stream.zeros::<u32>(2 * threads as usize)?;
    // SAFETY: linear_index(unsigned*) writes one element a thread.
    unsafe { kernel.launch(&lab.stream, LaunchConfig::new(2, threads), (&mut out,))? };
    assert!(lab.stream.download(&out)?.iter().copied().eq(0..2 * threads));
    Ok(())
}

fn the_largest_grids() -> Outcome {
    let lab = Lab::new()?;
    let empty = lab.kernel("empty")?;
    for grid in [Dim3::from((1, 65_535, 1)), (1, 1, 65_535).into(), (10_000_000, 1, 1).into()] {
        // SAFETY: it does nothing.
        unsafe { empty.launch(&lab.stream, LaunchConfig::new(grid, 32), ())? };
    }
    lab.stream.synchronize()?;
    Ok(())
}

fn a_long_burst() -> Outcome {
    let lab = Lab::new()?;
    let mut values = lab.stream.zeros::<u32>(500)?;
    // Longer than the driver's queue, so that the host has to wait in between.
    for _ in 0..20_000 {
        lab.increment(&lab.stream, values.slice_mut(..)?, 0)?;
    }
    assert_all(&lab.stream.download(&values)?, 20_000, "the counters");
    Ok(())
}

fn clones_of_a_function() -> Outcome {
    let lab = Lab::new()?;
    let first = lab.kernel("slow_increment")?;
    let (second, third) = (first.clone(), lab.kernel("slow_increment")?);
    let mut values = lab.stream.zeros::<u32>(500)?;
    for function in [&first, &second, &third] {
        let config = LaunchConfig::new(1, 128);
        // SAFETY: slow_increment(unsigned*, unsigned, u64) touches 500 elements.
        unsafe { function.launch(&lab.stream, config, (&mut values, 500u32, 0u64))? };
    }
    assert_all(&lab.stream.download(&values)?, 3, "the counters");
    Ok(())
}

fn functions_on_many_threads() -> Outcome {
    let lab = Lab::new()?;
    let kernel = lab.kernel("turn_around")?;
    let limit = lab.device.attribute(Attribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as u32;
    // Threads that each need another amount of shared memory opt in at the same time.
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8u32)
            .map(|index| {
                let (lab, kernel) = (&lab, kernel.clone());
                scope.spawn(move || -> selvedge::Result<bool> {
                    let stream = lab.device.stream()?;
                    let words = (48 << 10) / 4 + (limit - (48 << 10)) / 32 * index;
                    let values: Vec<u32> = (0..words).collect();
                    let (input, mut out) = (stream.upload(&values)?, stream.zeros::<u32>(words as usize)?);
                    let config = LaunchConfig::new(1, 256).shared(4 * words);
                    // SAFETY: the kernel touches `words` elements of each and as many words of shared memory.
                    unsafe { kernel.launch(&stream, config, (&input, &mut out, words))? };
                    Ok(stream.download(&out)?.iter().eq(values.iter().rev()))
                })
            })
            .collect();
        for worker in workers {
            assert!(worker.join().expect("no thread panics")?, "reversed wrongly");
        }
        Ok(())
    })
}
