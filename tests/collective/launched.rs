//! `selvedge launch`: ranks of this program, of shells, and of two launchers that stand for two hosts.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::free_port;

fn launch(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.arg("launch").args(arguments).env_remove("SELVEDGE_SECRET").env_remove("SELVEDGE_THREADS");
    command
}

/// Runs ranks of a shell script.
fn script(arguments: &[&str], script: &str) -> Output {
    launch(arguments).args(["--", "sh", "-c", script]).output().unwrap()
}

/// Returns the lines of an output in the order of their letters, since those of ranks come in any order.
fn lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn as_worker(command: &mut Command) -> &mut Command {
    let worker = ["--exact", "processes::worker", "--ignored", "--nocapture", "--test-threads=1"];
    command
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args(worker)
        .env("SELVEDGE_TEST_COLLECTIVE_WORK", "sum")
}

#[test]
fn ranks_know_their_numbers_and_their_lines_begin_with_them() {
    let output = script(
        &["--ranks", "3"],
        "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE, $MASTER_ADDR",
    );
    assert_eq!(output.status.code(), Some(0));
    let wanted: Vec<String> =
        (0..3).map(|rank| format!("[rank {rank}] {rank} of 3, {rank} of 3, 127.0.0.1")).collect();
    assert_eq!(lines(&output.stdout), wanted);
    // The errors go to stderr, and a line without an end is one too.
    let output = script(&["--ranks", "2"], "printf wrong >&2");
    assert_eq!(lines(&output.stderr), ["[rank 0] wrong", "[rank 1] wrong"]);
}

#[test]
fn launched_ranks_are_a_world() {
    let output = as_worker(&mut launch(&["--ranks", "3"])).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(lines(&output.stdout).iter().filter(|line| line.contains("FOUND 3")).count(), 3);
}

#[test]
fn launchers_of_two_hosts_make_one_world() {
    let port = free_port().to_string();
    let start = |node: &str| -> Child {
        let arguments =
            ["--ranks", "2", "--nodes", "2", "--node", node, "--address", "127.0.0.1", "--port", &port];
        let mut command = launch(&arguments);
        as_worker(&mut command).env("SELVEDGE_SECRET", "of both").stdout(Stdio::piped()).spawn().unwrap()
    };
    for (node, host) in [start("0"), start("1")].into_iter().enumerate() {
        let output = host.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        for rank in [2 * node, 2 * node + 1] {
            let line = format!("[rank {rank}]");
            let found = lines(&output.stdout);
            assert!(
                found.iter().any(|text| text.starts_with(&line) && text.contains("FOUND 6")),
                "{found:?}"
            );
        }
    }
}

#[test]
fn a_failed_rank_ends_the_others_and_gives_the_exit_code() {
    let start = Instant::now();
    // Rank 0 has a child of its own that ignores the end of its parent.
    let output = script(&["--ranks", "3", "--grace", "5"], "[ $RANK = 1 ] && exit 7; sleep 60 & wait");
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(output.status.code(), Some(7));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("rank 1 failed") && text.contains("ending the other 2 ranks"), "{text}");
    // A signal counts as in a shell.
    assert_eq!(script(&["--ranks", "1"], "kill -9 $$").status.code(), Some(137));
}

#[test]
fn a_rank_that_does_not_end_is_killed_after_the_grace_time() {
    let start = Instant::now();
    let script_text = "trap '' TERM; [ $RANK = 1 ] && exit 3; while true; do sleep 0.05; done";
    let output = script(&["--ranks", "2", "--grace", "0.5"], script_text);
    assert!((Duration::from_millis(500)..Duration::from_secs(5)).contains(&start.elapsed()));
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("rank 0 did not end within 0.5 s: killed"));
}

#[test]
fn signals_are_passed_on() {
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let text = "trap 'echo got it; exit 0' TERM INT; echo up; while true; do sleep 0.02; done";
        let mut command = launch(&["--ranks", "2"]);
        let mut child = command
            .args(["--", "sh", "-c", text])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        let read = |output: &mut std::io::BufReader<_>| {
            let mut line = String::new();
            std::io::BufRead::read_line(output, &mut line).unwrap();
            line
        };
        assert!((0..2).all(|_| read(&mut output).contains("up")));
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        assert!((0..2).all(|_| read(&mut output).contains("got it")));
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn ranks_end_with_their_launcher() {
    let mut command = launch(&["--ranks", "1"]);
    let mut child =
        command.args(["--", "sh", "-c", "echo $$; sleep 60"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
        .unwrap();
    let rank = line.trim().rsplit(' ').next().unwrap().to_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    let is_running =
        || Command::new("kill").args(["-0", &rank]).stderr(Stdio::null()).status().unwrap().success();
    let end = Instant::now() + Duration::from_secs(5);
    while cfg!(target_os = "linux") && is_running() {
        // Of a container without init, the ended process may stay as a zombie.
        let state = std::fs::read_to_string(format!("/proc/{rank}/stat")).unwrap_or_default();
        if state.split(' ').nth(2) == Some("Z") {
            break;
        }
        assert!(Instant::now() < end, "rank {rank} outlives its launcher");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn wrong_options_are_named() {
    let error = |arguments: &[&str]| {
        let output = script(arguments, "true");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = error(&["--ranks", "2", "--nodes", "2", "--node", "2", "--address", "a"]);
    assert!(code == Some(2) && text.contains("--node"), "{text}");
    let (code, text) = error(&["--ranks", "2", "--nodes", "2"]);
    assert!(code == Some(2) && text.contains("--address"), "{text}");
    let (code, text) = error(&["--ranks", "2", "--grace", "-1"]);
    assert!(code == Some(2) && text.contains("--grace"), "{text}");
    assert_eq!(error(&["--ranks", "0"]).0, Some(2));
    assert_eq!(error(&["--ranks", "1", "--gpus", "1"]).0, Some(2));
    // No driver, so no devices.
    let output = launch(&["--gpus", "1", "--", "true"]).env("SELVEDGE_LIBCUDA", "none").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let output = launch(&["--ranks", "2", "--", "/no/such/program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/program cannot be started"));
}
