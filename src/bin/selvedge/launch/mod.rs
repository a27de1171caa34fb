//! `selvedge launch`: starts the ranks of a program on this host, shows their lines, and ends all of them when one fails.

mod lines;
mod process;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::failure::{BAD_INPUT, FAILED, Failure};
use crate::options::LaunchOptions;
use crate::signals::{Signal, Signals};
use lines::Lines;
use process::{End, Rank};

/// The port of torchrun.
const DEFAULT_PORT: u16 = 29500;
/// How often the ranks are looked at.
const TICK: Duration = Duration::from_millis(10);

/// The world, as the environment of all ranks of this host describes it.
struct World {
    first_rank: usize,
    local_size: usize,
    size: usize,
    address: String,
    port: u16,
    secret: String,
    threads: usize,
}

/// Runs `selvedge launch`.
pub fn launch(options: &LaunchOptions) -> ExitCode {
    match run(options) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.print(false),
    }
}

fn run(options: &LaunchOptions) -> Result<u8, Failure> {
    let world = world(options)?;
    let grace = Duration::try_from_secs_f64(options.grace)
        .map_err(|_| bad_input(format!("--grace: found {}; wanted seconds, 0 or more", options.grace)))?;
    let signals = Signals::catch_all()?;
    let lines = Lines::default();
    let mut ranks: Vec<Rank> = Vec::new();
    for local_rank in 0..world.local_size {
        match Rank::start(&options.command, &world, local_rank, &lines) {
            Ok(rank) => ranks.push(rank),
            Err(error) => {
                ranks.iter_mut().for_each(Rank::kill);
                let program = options.command[0].to_string_lossy();
                return Err(bad_input(format!("{program} cannot be started: {error}")));
            }
        }
    }
    let code = wait(&mut ranks, &signals, grace, &lines)?;
    ranks.into_iter().for_each(Rank::finish);
    // The code of a rank says more than that its lines were not shown.
    match lines.failure() {
        Some(failure) if code == 0 => Err(failure),
        _ => Ok(code),
    }
}

/// Waits for all ranks, and returns the exit code of the first that failed.
fn wait(ranks: &mut [Rank], signals: &Signals, grace: Duration, lines: &Lines) -> Result<u8, Failure> {
    let mut code = None;
    let mut passed = None;
    // The time at which what still runs is killed.
    let mut limit: Option<Instant> = None;
    loop {
        if let Some(signal) = signals.received().filter(|signal| passed != Some(*signal)) {
            passed = Some(signal);
            code.get_or_insert(signal.exit_code());
            limit.get_or_insert(Instant::now() + grace);
            lines.note(&format!("{}: passed on to all ranks", signal.name()));
            ranks.iter_mut().for_each(|rank| rank.signal(signal));
        }
        for at in 0..ranks.len() {
            let End::Failed { code: of_rank, reason } = ranks[at].poll().map_err(Failure::failed)? else {
                continue;
            };
            if code.is_none() {
                let others = ranks.iter_mut().filter_map(|rank| rank.is_running().then_some(rank));
                let others: Vec<&mut Rank> = others.collect();
                let number = ranks_text(others.len());
                others.into_iter().for_each(|rank| rank.signal(Signal::Terminate));
                lines.note(&format!("rank {} failed: {reason}; ending {number}", ranks[at].number));
                code = Some(of_rank);
                limit = Some(Instant::now() + grace);
            }
        }
        if !ranks.iter().any(Rank::is_running) {
            return Ok(code.unwrap_or(0));
        }
        if limit.is_some_and(|limit| Instant::now() >= limit) {
            let running: Vec<&mut Rank> = ranks.iter_mut().filter(|rank| rank.is_running()).collect();
            let numbers: Vec<String> = running.iter().map(|rank| rank.number.to_string()).collect();
            lines.note(&format!(
                "rank {} did not end within {:.1} s: killed",
                numbers.join(", "),
                grace.as_secs_f64()
            ));
            running.into_iter().for_each(Rank::kill);
            limit = None;
        }
        std::thread::sleep(TICK);
    }
}

fn ranks_text(count: usize) -> String {
    match count {
        0 => "nothing: no other rank runs".to_owned(),
        1 => "the other rank".to_owned(),
        count => format!("the other {count} ranks"),
    }
}

/// Returns the world that the options describe.
fn world(options: &LaunchOptions) -> Result<World, Failure> {
    let local_size = usize::from(options.gpus.or(options.ranks).unwrap_or(1));
    if options.gpus.is_some() {
        let devices = selvedge::driver::Device::count()?;
        if devices < local_size {
            return Err(bad_input(format!(
                "--gpus: found {local_size}; wanted at most the {devices} devices that this host shows (CUDA_VISIBLE_DEVICES \
                 hides the others); --ranks starts ranks without a device of their own"
            )));
        }
    }
    let (nodes, node) = (usize::from(options.nodes), usize::from(options.node));
    if node >= nodes {
        return Err(bad_input(format!("--node: found {node}; wanted a number below --nodes {nodes}")));
    }
    let secret = std::env::var("SELVEDGE_SECRET").ok().filter(|secret| !secret.is_empty());
    let address = match (&options.address, nodes) {
        (Some(address), _) => address.clone(),
        (None, 1) => "127.0.0.1".to_owned(),
        (None, nodes) => {
            return Err(bad_input(format!(
                "--address is missing: {nodes} hosts need a name or an address of host 0"
            )));
        }
    };
    let secret = match (secret, nodes) {
        (Some(secret), _) => secret,
        (None, 1) => random_secret()?,
        (None, _) => {
            log::warn!("SELVEDGE_SECRET is not set: anybody who reaches {address} can take part in this run");
            String::new()
        }
    };
    let port = match (options.port, nodes) {
        (Some(port), _) => port,
        (None, 1) => free_ports()?,
        (None, _) => DEFAULT_PORT,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(World {
        first_rank: node * local_size,
        local_size,
        size: nodes * local_size,
        address,
        port,
        secret,
        threads: (cores / local_size).max(1),
    })
}

/// Returns a secret of 128 random bits.
fn random_secret() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::failed(format!("the system has no random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns a port that is free, as is the one after it.
fn free_ports() -> Result<u16, Failure> {
    let bind =
        |port| std::net::TcpListener::bind(("127.0.0.1", port)).and_then(|listener| listener.local_addr());
    for _ in 0..100 {
        let port = bind(0)
            .map_err(|error| Failure::failed(format!("no port of 127.0.0.1 is free: {error}")))?
            .port();
        if port < u16::MAX && bind(port + 1).is_ok() {
            return Ok(port);
        }
    }
    Err(Failure::failed("no two ports of 127.0.0.1 one after the other are free: name one with --port"))
}

fn bad_input(message: String) -> Failure {
    Failure { code: BAD_INPUT, message }
}

/// The exit code of a rank that a signal ended, or that has none.
fn code_of(status: std::process::ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128u8.saturating_add(u8::try_from(signal).unwrap_or(127));
    }
    // A code that a byte does not hold is a failure too.
    status.code().map_or(FAILED, |code| u8::try_from(code).unwrap_or(FAILED))
}
