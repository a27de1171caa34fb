//! Calls that fail: every rank gets an error that names the one at fault, and no rank hangs.

use std::time::{Duration, Instant};

use selvedge::Error;
use selvedge::collective::{Communicator, ReduceOp};

use super::{run, with_ranks};

/// Returns the rank at fault and the text of an error.
fn fault(result: selvedge::Result<()>) -> (Option<usize>, String) {
    match result.unwrap_err() {
        error @ Error::Collective { culprit, .. } => (culprit, error.to_string()),
        other => panic!("{other}"),
    }
}

/// Runs ranks of which each first gets a time-out.
fn with_timeout<R: Send>(
    world_size: usize,
    timeout: Duration,
    work: impl Fn(&Communicator) -> R + Sync,
) -> Vec<R> {
    let mut ranks = Communicator::in_process(world_size).unwrap();
    ranks.iter_mut().for_each(|rank| rank.set_timeout(timeout));
    run(ranks, work)
}

#[test]
fn ranks_that_disagree_are_told_both_calls() {
    type Made = fn(&Communicator) -> selvedge::Result<()>;
    let calls: [(&str, Made); 5] = [
        ("all_reduce of 3 f32 with sum", |rank| rank.all_reduce(&mut [0f32; 3], ReduceOp::Sum)),
        ("all_reduce of 2 f64 with sum", |rank| rank.all_reduce(&mut [0f64; 2], ReduceOp::Sum)),
        ("all_reduce of 2 f32 with max", |rank| rank.all_reduce(&mut [0f32; 2], ReduceOp::Max)),
        ("broadcast of 2 f32 with root 0", |rank| rank.broadcast(&mut [0f32; 2], 0)),
        ("barrier", Communicator::barrier),
    ];
    for (name, other) in calls {
        let found = with_ranks(3, |rank| match rank.rank() {
            1 => fault(other(rank)),
            _ => fault(rank.all_reduce(&mut [0f32; 2], ReduceOp::Sum)),
        });
        for (culprit, text) in found {
            // Either side may see the difference first.
            assert!(culprit.is_some(), "{text}");
            assert!(text.contains(name) && text.contains("all_reduce of 2 f32 with sum"), "{name}: {text}");
        }
    }
}

#[test]
fn ranks_that_disagree_about_an_uneven_part_are_told() {
    let found = with_ranks(2, |rank| match rank.rank() {
        // It receives what it wants, so it may learn of the difference by the next call.
        0 => {
            fault(rank.all_to_all_uneven(&[1i32, 2], &[0, 2], &mut [], &[0, 0]).and_then(|()| rank.barrier()))
        }
        _ => fault(rank.all_to_all_uneven(&[], &[0, 0], &mut [0i32; 3], &[3, 0])),
    });
    for (_, text) in found {
        assert!(text.contains("8 bytes") && text.contains("12 bytes"), "{text}");
    }
}

#[test]
fn a_rank_that_does_not_come_is_named_after_the_time_out() {
    let start = Instant::now();
    let found = with_timeout(3, Duration::from_secs(1), |rank| {
        if rank.rank() == 2 {
            // Longer than the others wait.
            std::thread::sleep(Duration::from_secs(3));
        }
        fault(rank.barrier())
    });
    for (rank, (culprit, text)) in found.into_iter().enumerate() {
        assert_eq!(culprit, Some(2), "rank {rank}: {text}");
        assert!(text.contains("within the time-out"), "{text}");
    }
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_rank_that_has_finished_is_named_by_a_further_call() {
    let found = with_ranks(2, |rank| match rank.rank() {
        0 => None,
        _ => {
            // Rank 0 drops its communicator.
            std::thread::sleep(Duration::from_millis(200));
            Some(fault(rank.barrier()))
        }
    });
    let (culprit, text) = found[1].clone().unwrap();
    assert_eq!(culprit, Some(0));
    assert!(text.contains("has finished"), "{text}");
}

#[test]
fn an_abort_ends_calls_in_progress_and_all_further_ones() {
    let found = with_ranks(3, |rank| {
        if rank.rank() == 1 {
            std::thread::sleep(Duration::from_millis(100));
            rank.abort();
        }
        let start = Instant::now();
        let first = fault(rank.all_reduce(&mut vec![1f32; 100_000], ReduceOp::Sum));
        assert!(start.elapsed() < Duration::from_secs(5));
        // It stays so.
        assert_eq!(fault(rank.barrier()).0, Some(1));
        first
    });
    for (culprit, text) in found {
        assert_eq!(culprit, Some(1));
        assert!(text.contains("aborted"), "{text}");
    }
}

#[test]
fn an_abort_does_not_wait_for_the_call_that_it_ends() {
    let aborted = std::sync::Barrier::new(2);
    let found = with_ranks(2, |rank| {
        if rank.rank() == 1 {
            aborted.wait();
            return rank.barrier().map_err(|error| error.to_string());
        }
        let start = Instant::now();
        std::thread::scope(|scope| {
            let call = scope.spawn(|| rank.all_reduce(&mut [1f32], ReduceOp::Sum));
            std::thread::sleep(Duration::from_millis(100));
            rank.abort();
            assert!(start.elapsed() < Duration::from_secs(5));
            assert_eq!(fault(call.join().unwrap()).0, Some(0));
        });
        aborted.wait();
        Ok(())
    });
    assert!(found[1].is_err());
}
