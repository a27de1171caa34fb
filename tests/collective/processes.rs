//! Ranks as processes: this program runs itself, with the variables of a launcher.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use selvedge::collective::{Communicator, ReduceOp, WorldOptions};

use super::free_port;

/// The variable that says what a worker does.
const WORK: &str = "SELVEDGE_TEST_COLLECTIVE_WORK";

/// A rank of the other tests. It is no test of its own, so it is left out of a run.
#[test]
#[ignore = "the other tests run it as a process"]
fn worker() {
    let options = WorldOptions::from_environment().unwrap().unwrap();
    let mut communicator = match Communicator::connect(&options) {
        Ok(communicator) => communicator,
        Err(error) => return println!("FOUND {error}"),
    };
    let rank = communicator.rank();
    let mut sum = vec![rank as f32; 100_000];
    communicator.all_reduce(&mut sum, ReduceOp::Sum).unwrap();
    println!("FOUND {}", sum[99_999]);
    match std::env::var(WORK).unwrap().as_str() {
        "killed" => {
            // The test kills rank 1 in this state.
            if rank == 1 {
                println!("READY");
                std::thread::sleep(Duration::from_secs(60));
            }
            println!("FOUND {}", communicator.barrier().unwrap_err());
        }
        "stopped" => {
            communicator.set_timeout(Duration::from_millis(500));
            if rank == 1 {
                println!("READY");
                std::thread::sleep(Duration::from_secs(60));
            }
            println!("FOUND {}", communicator.barrier().unwrap_err());
        }
        _ => {}
    }
}

/// Starts a rank with the variables of torchrun.
fn start(work: &str, rank: usize, world_size: usize, port: u16) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::worker", "--ignored", "--nocapture", "--test-threads=1"])
        .env(WORK, work)
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", world_size.to_string())
        .env("LOCAL_RANK", rank.to_string())
        .env("LOCAL_WORLD_SIZE", world_size.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", (port - 1).to_string())
        .env("SELVEDGE_SECRET", "of the processes")
        .env("SELVEDGE_COLLECTIVE_TIMEOUT", "30")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn found(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    // The first line of a test follows its name.
    let lines = text.lines().filter_map(|line| line.split_once("FOUND ").map(|(_, found)| found.to_owned()));
    lines.collect()
}

/// Reads the output of a process until it is in the state that the test waits for.
fn until_ready(child: &mut Child) {
    use std::io::{BufRead, BufReader};
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("READY")));
}

#[test]
fn ranks_of_several_processes_compute_what_one_process_computes() {
    let port = free_port();
    let ranks: Vec<Child> = (0..4).map(|rank| start("sum", rank, 4, port)).collect();
    for rank in ranks {
        let output = rank.wait_with_output().unwrap();
        assert_eq!(found(&output), ["6"], "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_killed_process_is_named_by_the_others_at_once() {
    let port = free_port();
    let mut ranks: Vec<Child> = (0..3).map(|rank| start("killed", rank, 3, port)).collect();
    until_ready(&mut ranks[1]);
    let mut victim = ranks.remove(1);
    victim.kill().unwrap();
    let killed = Instant::now();
    victim.wait().unwrap();
    for rank in ranks {
        let output = rank.wait_with_output().unwrap();
        let found = found(&output);
        assert_eq!(found.len(), 2, "{found:?}, {}", String::from_utf8_lossy(&output.stderr));
        assert!(
            found[1].contains("because of rank 1") && found[1].contains("the process is gone"),
            "{found:?}"
        );
    }
    assert!(killed.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_process_that_hangs_is_named_after_the_time_out() {
    let port = free_port();
    let mut ranks: Vec<Child> = (0..3).map(|rank| start("stopped", rank, 3, port)).collect();
    until_ready(&mut ranks[1]);
    let ready = Instant::now();
    let mut hanging = ranks.remove(1);
    for rank in ranks {
        let output = rank.wait_with_output().unwrap();
        let found = found(&output);
        assert!(found[1].contains("because of rank 1") && found[1].contains("time-out"), "{found:?}");
    }
    assert!(ready.elapsed() < Duration::from_secs(5));
    hanging.kill().unwrap();
    hanging.wait().unwrap();
}
