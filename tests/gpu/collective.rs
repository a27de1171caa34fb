//! Collective operations by NCCL: a world of one rank on one device, captured too, and a world of all devices where there are several.

use libtest_mimic::Failed;
use selvedge::collective::{DeviceCommunicator, ReduceOp};
use selvedge::driver::{Device, Stream};
use selvedge::types::DType;
use selvedge::{Error, bf16, f16};

use crate::support::{Need, Outcome, assert_error, device_tests};

device_tests! {
    a_rank_alone_has_its_own_values => in_child(WITHOUT_MULTICAST),
    a_captured_call_is_a_part_of_the_graph => in_child(WITHOUT_MULTICAST),
    an_aborted_communicator_says_so => in_child(WITHOUT_MULTICAST),
    ranks_of_all_devices_compute_what_one_computes => needs(Need::TwoDevices) => in_child(WITHOUT_MULTICAST),
}

/// NVLink's multicast is not for tests: a process that ends in it may leave a device that needs a reset.
const WITHOUT_MULTICAST: &[(&str, &str)] = &[("NCCL_NVLS_ENABLE", "0")];

/// Returns the ranks of devices, or `None` without NCCL.
fn ranks(devices: &[Device]) -> Result<Option<Vec<DeviceCommunicator>>, Failed> {
    match selvedge::nccl::version() {
        Ok(_) => Ok(Some(DeviceCommunicator::in_process(devices)?)),
        Err(error) => {
            println!("not run: {error}");
            assert_error!(DeviceCommunicator::in_process(devices), Error::LibraryUnavailable { library, .. } if library == "NCCL");
            Ok(None)
        }
    }
}

fn alone() -> Result<Option<(DeviceCommunicator, Stream)>, Failed> {
    let device = Device::new(0)?;
    let Some(mut ranks) = ranks(&[device])? else { return Ok(None) };
    Ok(Some((ranks.remove(0), device.stream()?)))
}

fn a_rank_alone_has_its_own_values() -> Outcome {
    let Some((rank, stream)) = alone()? else { return Ok(()) };
    assert_eq!((rank.rank(), rank.world_size()), (0, 1));
    for length in [1, 1000, 1 << 20] {
        let values: Vec<f32> = (0..length).map(|at| at as f32).collect();
        let mut memory = stream.upload(&values)?;
        for op in ReduceOp::ALL {
            rank.all_reduce(&stream, &mut memory, op)?;
        }
        rank.reduce(&stream, &mut memory, 0, ReduceOp::Max)?;
        rank.broadcast(&stream, &mut memory, 0)?;
        let mut other = stream.zeros::<f32>(length)?;
        rank.all_gather(&stream, &memory, &mut other)?;
        rank.reduce_scatter(&stream, &other, &mut memory, ReduceOp::Mean)?;
        rank.all_to_all(&stream, &memory, &mut other)?;
        let to = other.slice_mut(..)?;
        rank.gather(&stream, &memory, Some(to), 0)?;
        rank.scatter(&stream, Some(other.slice(..)?), &mut memory, 0)?;
        rank.synchronize(&stream)?;
        assert_eq!(stream.download(&memory)?, values);
    }
    let mut halves = (stream.upload(&[f16::ONE; 9])?, stream.upload(&[bf16::ONE; 9])?);
    rank.all_reduce(&stream, &mut halves.0, ReduceOp::Sum)?;
    rank.all_reduce(&stream, &mut halves.1, ReduceOp::Mean)?;
    assert_eq!(stream.download(&halves.0)?, [f16::ONE; 9]);
    assert_eq!(stream.download(&halves.1)?, [bf16::ONE; 9]);
    let mut short = stream.upload(&[1i16; 4])?;
    assert_error!(
        rank.all_reduce(&stream, &mut short, ReduceOp::Sum),
        Error::DTypeMismatch { found, .. } if found.contains(&DType::I16.to_string())
    );
    rank.barrier()?;
    Ok(())
}

fn a_captured_call_is_a_part_of_the_graph() -> Outcome {
    let Some((rank, stream)) = alone()? else { return Ok(()) };
    let mut memory = stream.upload(&[3i32; 256])?;
    let mut gathered = stream.zeros::<i32>(256)?;
    // The first call sets up connections, which a capture cannot.
    rank.all_gather(&stream, &memory, &mut gathered)?;
    let (graph, ()) = stream.capture(|stream| {
        rank.all_reduce(stream, &mut memory, ReduceOp::Sum)?;
        rank.all_gather(stream, &memory, &mut gathered)
    })?;
    let graph = graph.instantiate()?;
    stream.fill(&mut memory, 7)?;
    graph.launch(&stream)?;
    assert_eq!(stream.download(&gathered)?, [7; 256]);
    Ok(())
}

fn an_aborted_communicator_says_so() -> Outcome {
    let Some((rank, stream)) = alone()? else { return Ok(()) };
    let mut memory = stream.upload(&[1.0f32; 16])?;
    rank.abort();
    assert_error!(stream.synchronize(), Error::Collective { culprit: Some(0), .. });
    assert_error!(
        rank.all_reduce(&stream, &mut memory, ReduceOp::Sum),
        Error::Collective { culprit: Some(0), .. }
    );
    // The device goes on without it.
    drop(rank);
    assert_eq!(stream.download(&memory)?, [1.0; 16]);
    Ok(())
}

fn ranks_of_all_devices_compute_what_one_computes() -> Outcome {
    let devices = (0..Device::count()?).map(Device::new).collect::<selvedge::Result<Vec<_>>>()?;
    let Some(ranks) = ranks(&devices)? else { return Ok(()) };
    let count = devices.len();
    const LENGTH: usize = 1 << 20;
    // Whole numbers, whose sums are exact in any order.
    let value = |rank: usize, at: usize| ((rank * 31 + at) % 1000) as f32;
    std::thread::scope(|scope| {
        let run = |rank: DeviceCommunicator| {
            scope.spawn(move || -> selvedge::Result<()> {
                let (own, stream) = (rank.rank(), rank.device().stream()?);
                let values: Vec<f32> = (0..LENGTH).map(|at| value(own, at)).collect();
                let mut memory = stream.upload(&values)?;
                rank.all_reduce(&stream, &mut memory, ReduceOp::Sum)?;
                let wanted: Vec<f32> =
                    (0..LENGTH).map(|at| (0..count).map(|rank| value(rank, at)).sum()).collect();
                assert!(stream.download(&memory)? == wanted, "the sum on rank {own}");
                let mut gathered = stream.zeros::<f32>(LENGTH * count)?;
                rank.all_gather(&stream, &stream.upload(&values)?, &mut gathered)?;
                let wanted: Vec<f32> =
                    (0..count * LENGTH).map(|at| value(at / LENGTH, at % LENGTH)).collect();
                assert!(stream.download(&gathered)? == wanted, "the values of all on rank {own}");
                rank.synchronize(&stream)
            })
        };
        let threads: Vec<_> = ranks.into_iter().map(run).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a rank that ends"))
    })?;
    Ok(())
}
