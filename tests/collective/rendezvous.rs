//! How ranks find each other, and who is refused.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use selvedge::Error;
use selvedge::collective::{Communicator, WorldOptions};

use super::free_port;

fn options(rank: usize, world_size: usize, port: u16) -> WorldOptions {
    WorldOptions::new(rank, world_size)
        .unwrap()
        .with_address("127.0.0.1", port)
        .with_secret("of this test")
        .with_timeout(Duration::from_secs(10))
}

/// Connects ranks in threads, and returns what each got.
fn connect(all: Vec<WorldOptions>) -> Vec<selvedge::Result<Communicator>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .into_iter()
            .map(|options| {
                scope.spawn(move || {
                    let communicator = Communicator::connect(&options)?;
                    communicator.barrier()?;
                    Ok(communicator)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn text(result: &selvedge::Result<Communicator>) -> String {
    result.as_ref().unwrap_err().to_string()
}

#[test]
fn ranks_of_one_address_are_a_world() {
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        if host == "[::1]" && TcpListener::bind("[::1]:0").is_err() {
            eprintln!("this machine has no IPv6: left out");
            continue;
        }
        let port = free_port();
        // Rank 0 comes last.
        let all = (0..3).rev().map(|rank| options(rank, 3, port).with_address(host, port)).collect();
        let ranks: Vec<Communicator> = connect(all).into_iter().map(Result::unwrap).collect();
        assert_eq!(ranks.iter().map(Communicator::rank).collect::<Vec<_>>(), [2, 1, 0]);
    }
}

#[test]
fn strangers_neither_get_in_nor_keep_ranks_out() {
    let port = free_port();
    let start = Instant::now();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let ranks = std::thread::scope(|scope| {
        let strangers = scope.spawn(|| {
            let mut silent = Vec::new();
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                };
                match silent.len() % 3 {
                    // Nothing, a line of HTTP, and a length without end.
                    0 => {}
                    1 => drop(stream.write_all(b"GET / HTTP/1.1\r\n\r\n")),
                    _ => drop(stream.write_all(&[0xff; 64])),
                }
                silent.push(stream);
                if silent.len() == 12 {
                    break;
                }
            }
            let greetings = silent.iter_mut().map(|stream| {
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                let mut bytes = Vec::new();
                // The end of the connection may be a reset.
                let _ = stream.read_to_end(&mut bytes);
                bytes.len()
            });
            greetings.max().unwrap_or_default()
        });
        let late = (0..2).map(|rank| options(rank, 2, port)).collect();
        let ranks = connect(late);
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        // A greeting of 8 bytes and a nonce is all that a stranger learns.
        assert!(strangers.join().unwrap() <= 40);
        ranks
    });
    assert!(ranks.iter().all(Result::is_ok), "{}", text(ranks.iter().find(|rank| rank.is_err()).unwrap()));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_rank_that_never_comes_is_named_on_all_others() {
    let port = free_port();
    let start = Instant::now();
    let all = [0, 1, 3].map(|rank| options(rank, 4, port).with_timeout(Duration::from_millis(600))).to_vec();
    for result in connect(all) {
        let error = text(&result);
        assert!(error.contains("because of rank 2") && error.contains("rank 2 of 4 did not come"), "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(3));
}

#[test]
fn a_wrong_secret_is_refused_and_the_world_goes_on_without_it() {
    let port = free_port();
    let mut wrong = options(1, 2, port).with_secret("another").with_timeout(Duration::from_secs(2));
    wrong = wrong.with_address("127.0.0.1", port);
    let all = vec![options(0, 2, port), wrong, options(1, 2, port)];
    let results = connect(all);
    assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
    assert!(text(&results[1]).contains("SELVEDGE_SECRET"), "{}", text(&results[1]));
}

#[test]
fn ranks_that_do_not_belong_together_are_told_why() {
    let port = free_port();
    // Two processes of one number. Which of them is the second does not matter.
    let results = connect(vec![options(0, 3, port), options(1, 3, port), options(1, 3, port)]);
    assert!(text(&results[0]).contains("two processes are rank 1"), "{}", text(&results[0]));
    assert!(results.iter().all(Result::is_err));
    // Worlds of two sizes.
    let port = free_port();
    let results = connect(vec![options(0, 2, port), options(1, 3, port)]);
    assert!(results.iter().all(|result| text(result).contains("a world of 3")), "{results:?}");
    // A rank of another run does not end this one. It comes first, and is refused while rank 0 waits.
    let port = free_port();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| Communicator::connect(&options(0, 2, port).with_run("this")));
        let error = Communicator::connect(&options(1, 2, port).with_run("other")).unwrap_err().to_string();
        assert!(error.contains("the run 'other'"), "{error}");
        let second = Communicator::connect(&options(1, 2, port).with_run("this"));
        assert!(second.is_ok() && first.join().unwrap().is_ok());
    });
}

#[test]
fn a_port_in_use_and_a_foreign_address_are_named() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port();
    let error = Communicator::connect(&options(0, 2, port)).unwrap_err();
    assert!(
        matches!(error, Error::InvalidArgument { .. }) && error.to_string().contains("SELVEDGE_PORT"),
        "{error}"
    );
    // An address of documentation, which no machine has.
    let error = Communicator::connect(&options(0, 2, port).with_address("192.0.2.1", port)).unwrap_err();
    assert!(error.to_string().contains("MASTER_ADDR"), "{error}");
    let error = Communicator::connect(&options(1, 2, port).with_address("", port)).unwrap_err();
    assert!(error.to_string().contains("MASTER_ADDR"), "{error}");
}

#[test]
fn another_program_at_the_port_is_not_taken_for_rank_0() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[b'x'; 200]).unwrap();
        // Open until the other side has read.
        let _ = stream.read(&mut [0; 1]);
    });
    let error = Communicator::connect(&options(1, 2, port)).unwrap_err();
    assert!(error.to_string().contains("another program may use the port"), "{error}");
}
