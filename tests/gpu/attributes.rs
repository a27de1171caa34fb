//! Launch attributes reach the device: clusters, cooperative grids, priorities, programmatic dependent launches.

use selvedge::driver::{Attribute, Device, LaunchConfig, Module};

use crate::support::{Lab, Need, Outcome, SLOW, assert_all, device_tests, serialised};

device_tests! {
    clusters_share_their_memory => needs(Need::Capability(9, 0)),
    clusters_in_three_dimensions => needs(Need::Capability(9, 0)),
    active_clusters_are_counted => needs(Need::Capability(9, 0)),
    a_cooperative_grid_meets, too_large_a_cooperative_grid_is_an_error, launches_have_priorities,
    a_dependent_starts_early_and_waits => needs(Need::Capability(9, 0)),
    attributes_combine => needs(Need::Capability(9, 0)),
}

pub fn hopper(device: Device) -> selvedge::Result<Module> {
    device.load(include_bytes!("../data/gpu/hopper.ptx"))
}

fn clusters_share_their_memory() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let ring = hopper(device)?.function("cluster_ring")?;
    for size in [1u32, 2, 4, 8] {
        let blocks = 24;
        let mut out = stream.zeros::<u32>(3 * blocks as usize)?;
        let config = LaunchConfig::new(blocks, 64).cluster(size);
        // SAFETY: cluster_ring(unsigned*) writes three elements a block.
        unsafe { ring.launch(&stream, config, (&mut out,))? };
        let out = stream.download(&out)?;
        for (block, found) in (0u32..).zip(out.chunks(3)) {
            let (rank, first) = (block % size, block / size * size);
            assert_eq!(
                found,
                [rank, size, 1000 + first + (rank + 1) % size],
                "block {block}, clusters of {size}"
            );
        }
    }
    Ok(())
}

fn clusters_in_three_dimensions() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let ring = hopper(device)?.function("cluster_ring")?;
    let mut out = stream.zeros::<u32>(3 * 8)?;
    // The kernel numbers blocks by x alone, so the grid is flat and only the cluster's form differs.
    let config = LaunchConfig::new((8, 1, 1), 32).cluster((4, 1, 1)).priority(0);
    // SAFETY: as above.
    unsafe { ring.launch(&stream, config, (&mut out,))? };
    let sizes: Vec<u32> = stream.download(&out)?.chunks(3).map(|found| found[1]).collect();
    assert_all(&sizes, 4, "blocks of a cluster");
    Ok(())
}

fn active_clusters_are_counted() -> Outcome {
    let device = Device::new(0)?;
    let ring = hopper(device)?.function("cluster_ring")?;
    let small = ring.active_clusters(&LaunchConfig::new(64, 128).cluster(2))?;
    let large = ring.active_clusters(&LaunchConfig::new(64, 128).cluster(8))?;
    assert!(small >= large && large > 0, "{small} {large}");
    Ok(())
}

fn a_cooperative_grid_meets() -> Outcome {
    let lab = Lab::new()?;
    let meet = lab.kernel("meet")?;
    let processors = lab.device.attribute(Attribute::MULTIPROCESSOR_COUNT)? as u32;
    // As many blocks as the device holds at all: each has to run for any to end.
    let blocks = meet.occupancy(128, 0)? * processors;
    let mut arrived = lab.stream.zeros::<u32>(1)?;
    let mut found = lab.stream.zeros::<u32>(blocks as usize)?;
    let mut sums = lab.stream.zeros::<u64>(blocks as usize)?;
    let config = LaunchConfig::new(blocks, 128).cooperative();
    // SAFETY: meet(unsigned*, unsigned*, u64*) uses one counter and one element a block.
    unsafe { meet.launch(&lab.stream, config, (&mut arrived, &mut found, &mut sums))? };
    let blocks = u64::from(blocks);
    assert_all(&lab.stream.download(&sums)?, blocks * (blocks + 1) / 2, "what each block saw");
    Ok(())
}

fn too_large_a_cooperative_grid_is_an_error() -> Outcome {
    let lab = Lab::new()?;
    let meet = lab.kernel("meet")?;
    let processors = lab.device.attribute(Attribute::MULTIPROCESSOR_COUNT)? as u32;
    let blocks = meet.occupancy(128, 0)? * processors + 1;
    let mut arrived = lab.stream.zeros::<u32>(1)?;
    let mut found = lab.stream.zeros::<u32>(blocks as usize)?;
    let mut sums = lab.stream.zeros::<u64>(blocks as usize)?;
    let config = LaunchConfig::new(blocks, 128).cooperative();
    // SAFETY: as above.
    let launched = unsafe { meet.launch(&lab.stream, config, (&mut arrived, &mut found, &mut sums)) };
    match launched {
        Err(error) => assert!(error.to_string().contains("COOPERATIVE_LAUNCH_TOO_LARGE"), "{error}"),
        Ok(()) => return Err("it was launched".into()),
    }
    assert_eq!(lab.stream.download(&arrived)?, [0], "nothing was launched");
    Ok(())
}

fn launches_have_priorities() -> Outcome {
    let lab = Lab::new()?;
    let set = lab.kernel("slow_set")?;
    let (least, greatest) = lab.device.priority_range()?;
    for priority in [least, greatest] {
        let mut out = lab.stream.zeros::<u32>(100)?;
        let config = LaunchConfig::new(1, 64).priority(priority);
        // SAFETY: slow_set(unsigned*, unsigned, unsigned, u64) writes 100 elements.
        unsafe { set.launch(&lab.stream, config, (&mut out, 100u32, 5u32, 0u64))? };
        assert_all(&lab.stream.download(&out)?, 5, "the buffer");
    }
    Ok(())
}

fn a_dependent_starts_early_and_waits() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let module = hopper(device)?;
    let (first, second) = (module.function("early_trigger")?, module.function("dependent")?);
    let length = 4096u32;
    for round in 0..2 {
        let mut values = stream.zeros::<u32>(length as usize)?;
        let mut out = stream.zeros::<u32>(length as usize)?;
        let (mut ended, mut began) = (stream.zeros::<u64>(1)?, stream.zeros::<u64>(1)?);
        let config = LaunchConfig::new(1, 128);
        // SAFETY: early_trigger(unsigned*, u64*, unsigned, u64) and dependent(const unsigned*, unsigned*, u64*, unsigned)
        // touch `length` elements and one time.
        unsafe {
            first.launch(&stream, config, (&mut values, &mut ended, length, SLOW))?;
            second.launch(
                &stream,
                config.programmatic_dependent(),
                (&values, &mut out, &mut began, length),
            )?;
        }
        let out = stream.download(&out)?;
        assert!(out.iter().copied().eq((0..length).map(|index| 7 * index + 1)), "it did not wait");
        let (ended, began) = (stream.download(&ended)?[0], stream.download(&began)?[0]);
        // The first round may load code in between.
        assert!(
            round == 0 || serialised() || began < ended,
            "it began {} ns late",
            began.saturating_sub(ended)
        );
    }
    Ok(())
}

fn attributes_combine() -> Outcome {
    let device = Device::new(0)?;
    let stream = device.stream()?;
    let ring = hopper(device)?.function("cluster_ring")?;
    let mut out = stream.zeros::<u32>(3 * 16)?;
    let config = LaunchConfig::new(16, 64).cluster(4).cooperative().priority(-1);
    // SAFETY: as above.
    unsafe { ring.launch(&stream, config, (&mut out,))? };
    let out = stream.download(&out)?;
    for (block, found) in (0u32..).zip(out.chunks(3)) {
        assert_eq!(found[..2], [block % 4, 4], "block {block}");
    }
    Ok(())
}
