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
            println!("READY");
            // The test kills rank 1 when all are ready.
            if rank == 1 {
                std::thread::sleep(Duration::from_secs(60));
            }
            println!("FOUND {}", communicator.barrier().unwrap_err());
        }
        "stopped" => {
            println!("READY");
            communicator.set_timeout(Duration::from_millis(500));
            if rank == 1 {
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

/// A process and its output.
struct Rank {
    child: Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Rank {
    /// Starts a rank of three.
    fn start(work: &str, rank: usize, port: u16) -> Rank {
        use std::io::{BufRead, BufReader};
        let mut child = start(work, rank, 3, port);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Rank { child, lines }
    }

    /// Waits until the process is in the state that the test waits for.
    fn wait_until_ready(&mut self) {
        assert!(self.lines.by_ref().map_while(Result::ok).any(|line| line.contains("READY")));
    }

    /// Returns what the process says until its end.
    fn said(self) -> String {
        let text: Vec<String> = self.lines.map_while(Result::ok).collect();
        let mut child = self.child;
        child.wait().unwrap();
        text.join("\n")
    }
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

/// Starts three ranks, and returns the first and the last with rank 1, when all are ready.
fn ranks_of(work: &str) -> (Vec<Rank>, Rank) {
    let port = free_port();
    let mut ranks: Vec<Rank> = (0..3).map(|rank| Rank::start(work, rank, port)).collect();
    ranks.iter_mut().for_each(Rank::wait_until_ready);
    let one = ranks.remove(1);
    (ranks, one)
}

#[test]
fn a_killed_process_is_named_by_the_others_at_once() {
    let (ranks, mut victim) = ranks_of("killed");
    victim.child.kill().unwrap();
    let killed = Instant::now();
    victim.child.wait().unwrap();
    for rank in ranks {
        let said = rank.said();
        assert!(said.contains("because of rank 1") && said.contains("the process is gone"), "{said}");
    }
    assert!(killed.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_process_that_hangs_is_named_after_the_time_out() {
    let (ranks, mut hanging) = ranks_of("stopped");
    let ready = Instant::now();
    for rank in ranks {
        let said = rank.said();
        assert!(said.contains("because of rank 1") && said.contains("time-out"), "{said}");
    }
    assert!(ready.elapsed() < Duration::from_secs(5));
    hanging.child.kill().unwrap();
    hanging.child.wait().unwrap();
}
