//! The values of each operation.

use half::bf16;
use selvedge::collective::{Communicator, ReduceOp};
use selvedge::{Complex, Error};

use super::with_ranks;

/// Lengths below and above those at which the number of exchanges changes, also without equal parts.
const LENGTHS: [usize; 5] = [0, 1, 7, 5000, 300_001];

#[test]
fn an_all_reduce_gives_every_rank_the_sum_in_the_order_of_ranks() {
    for world_size in [1, 2, 3, 5] {
        for length in LENGTHS {
            let value = |rank: usize, at: usize| ((rank * 31 + at * 7) % 1000) as f32 * 0.37 - 100.0;
            let results = with_ranks(world_size, |rank| {
                let mut values: Vec<f32> = (0..length).map(|at| value(rank.rank(), at)).collect();
                rank.all_reduce(&mut values, ReduceOp::Sum).unwrap();
                values
            });
            let wanted: Vec<f32> = (0..length)
                .map(|at| (1..world_size).fold(value(0, at), |sum, rank| sum + value(rank, at)))
                .collect();
            assert!(results.iter().all(|result| *result == wanted), "{world_size} ranks, {length} elements");
        }
    }
}

#[test]
fn every_operation_of_a_reduction_has_the_value_of_plain_arithmetic() {
    let values = |rank: usize| [rank as i64 + 1, -(rank as i64), 3];
    let wanted = [[6, -3, 9], [2, -1, 3], [6, 0, 27], [1, -2, 3], [3, 0, 3]];
    for (op, wanted) in ReduceOp::ALL.into_iter().zip(wanted) {
        let results = with_ranks(3, |rank| {
            let mut own = values(rank.rank());
            rank.all_reduce(&mut own, op).unwrap();
            own
        });
        assert_eq!(results, [wanted; 3], "{op:?}");
    }
}

#[test]
fn a_reduce_gives_the_result_to_the_root_alone() {
    for length in LENGTHS {
        let results = with_ranks(4, |rank| {
            let values = vec![bf16::from_f32(rank.rank() as f32 + 0.5); length];
            let mut reduced = vec![bf16::ZERO; length];
            let to = (rank.rank() == 2).then_some(&mut reduced[..]);
            rank.reduce(&values, to, 2, ReduceOp::Mean).unwrap();
            reduced
        });
        for (rank, result) in results.into_iter().enumerate() {
            let wanted = if rank == 2 { 2.0 } else { 0.0 };
            assert!(result.iter().all(|x| x.to_f32() == wanted) && result.len() == length);
        }
    }
}

#[test]
fn complex_numbers_are_summed_by_their_parts() {
    let results = with_ranks(2, |rank| {
        let mut values = [Complex::new(rank.rank() as f64, 1.0)];
        rank.all_reduce(&mut values, ReduceOp::Sum).unwrap();
        values
    });
    assert_eq!(results, [[Complex::new(1.0, 2.0)]; 2]);
}

#[test]
fn values_move_to_where_each_operation_says() {
    for length in LENGTHS {
        let results = with_ranks(3, |rank| {
            let own = rank.rank();
            let tagged =
                |tag: usize| -> Vec<u32> { (0..length).map(|at| (tag * 1000 + at % 1000) as u32).collect() };
            let mut values = tagged(own);
            rank.broadcast(&mut values, 1).unwrap();
            assert_eq!(values, tagged(1));
            let in_order: Vec<u32> = (0..3).flat_map(tagged).collect();
            let mut gathered = vec![0; 3 * length];
            rank.all_gather(&tagged(own), &mut gathered).unwrap();
            assert_eq!(gathered, in_order);
            let mut at_root = vec![0; 3 * length];
            rank.gather(&tagged(own), (own == 2).then_some(&mut at_root[..]), 2).unwrap();
            assert_eq!(at_root, if own == 2 { in_order.clone() } else { vec![0; 3 * length] });
            let mut part = vec![0; length];
            rank.scatter((own == 0).then_some(&in_order[..]), &mut part, 0).unwrap();
            assert_eq!(part, tagged(own));
            let mut reduced = vec![0; length];
            rank.reduce_scatter(&in_order, &mut reduced, ReduceOp::Max).unwrap();
            assert_eq!(reduced, tagged(own));
            // From rank f to rank t: the tag 10 f + t.
            let outgoing: Vec<u32> = (0..3).flat_map(|to| tagged(10 * own + to)).collect();
            let mut received = vec![0; 3 * length];
            rank.all_to_all(&outgoing, &mut received).unwrap();
            assert_eq!(received, (0..3).flat_map(|from| tagged(10 * from + own)).collect::<Vec<_>>());
            rank.barrier().unwrap();
        });
        assert_eq!(results.len(), 3);
    }
}

#[test]
fn parts_of_an_uneven_exchange_have_their_counts() {
    // Rank f sends f + 2 t elements to rank t.
    let count = |from: usize, to: usize| from + 2 * to;
    with_ranks(4, |rank| {
        let own = rank.rank();
        let counts: Vec<usize> = (0..4).map(|to| count(own, to)).collect();
        let received_counts: Vec<usize> = (0..4).map(|from| count(from, own)).collect();
        let values: Vec<i16> = (0..4).flat_map(|to| vec![(10 * own + to) as i16; count(own, to)]).collect();
        let mut received = vec![0; received_counts.iter().sum()];
        rank.all_to_all_uneven(&values, &counts, &mut received, &received_counts).unwrap();
        let wanted: Vec<i16> =
            (0..4).flat_map(|from| vec![(10 * from + own) as i16; count(from, own)]).collect();
        assert_eq!(received, wanted);
    });
}

#[test]
fn messages_go_from_one_rank_to_another_beside_collective_calls() {
    with_ranks(3, |rank| {
        let own = rank.rank();
        // A ring with messages that fit no buffer of a connection.
        let values = vec![own as u64; 1 << 20];
        let mut received = vec![0; 1 << 20];
        rank.send_receive(&values, (own + 1) % 3, &mut received, (own + 2) % 3).unwrap();
        assert!(received.iter().all(|x| *x == ((own + 2) % 3) as u64));
        match own {
            0 => rank.send(&[7u8, 8], 2).unwrap(),
            2 => {
                let mut two = [0u8; 2];
                rank.receive(&mut two, 0).unwrap();
                assert_eq!(two, [7, 8]);
            }
            _ => {}
        }
        let mut sum = [1.0f64];
        rank.all_reduce(&mut sum, ReduceOp::Sum).unwrap();
        assert_eq!(sum, [3.0]);
    });
}

#[test]
fn a_world_is_divided_by_colors_and_ordered_by_keys() {
    with_ranks(5, |rank| {
        let own = rank.rank();
        // Even ranks in reverse order, odd ones in order; the last has no color.
        let color = (own < 4).then_some(own % 2);
        let key = if own % 2 == 0 { -(own as i64) } else { 0 };
        let group = rank.split(color, key).unwrap();
        let Some(group) = group else {
            assert_eq!(own, 4);
            return rank.barrier().unwrap();
        };
        assert_eq!((group.world_size(), group.rank()), (2, [1, 0, 0, 1][own]));
        let mut members = [0u64; 2];
        group.all_gather(&[own as u64], &mut members).unwrap();
        assert_eq!(members, if own % 2 == 0 { [2, 0] } else { [1, 3] });
        rank.barrier().unwrap();
    });
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_sent() {
    with_ranks(2, |rank| {
        let text = |result: selvedge::Result<()>| result.unwrap_err().to_string();
        let (mut two, own) = ([0f32; 2], rank.rank());
        assert!(text(rank.broadcast(&mut two, 2)).contains("root 2"));
        assert!(text(rank.all_gather(&two, &mut [0.0; 3])).contains("needs 4 elements"));
        assert!(text(rank.reduce_scatter(&two, &mut [0.0; 2], ReduceOp::Sum)).contains("needs 4 elements"));
        assert!(text(rank.all_to_all(&[0.0; 3], &mut [0.0f32; 3])).contains("multiple of the 2 ranks"));
        assert!(text(rank.all_to_all_uneven(&two, &[1], &mut [0.0; 2], &[1, 1])).contains("1 counts"));
        assert!(text(rank.all_to_all_uneven(&two, &[2, 1], &mut [0.0; 2], &[1, 1])).contains("needs 3"));
        let kept = [[0, 2], [2, 0]][own];
        let received = [[1, 1], [1, 1]][own];
        assert!(
            text(rank.all_to_all_uneven(&two, &kept, &mut [0.0; 2], &received)).contains("all_to_all_uneven")
        );
        assert!(text(rank.gather(&two, None, own)).contains("without the memory of the root"));
        assert!(text(rank.scatter(Some(&two), &mut [0.0], 1 - own)).contains("with the memory of the root"));
        assert!(text(rank.send(&two, own)).contains("another rank"));
        assert!(text(rank.receive(&mut two, 2)).contains("another rank"));
        let error = rank.all_reduce(&mut [selvedge::types::Bool::from(true)], ReduceOp::Sum).unwrap_err();
        assert!(matches!(error, Error::DTypeMismatch { .. }), "{error}");
        // All of it left the communicator as it was.
        rank.barrier().unwrap();
    });
    assert!(Communicator::in_process(0).is_err());
}
