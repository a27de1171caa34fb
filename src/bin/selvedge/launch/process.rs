//! A rank of this host: its process, and the threads that read its output.

use std::ffi::OsString;
use std::io::Result;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::lines::Lines;
use super::{World, code_of};
use crate::signals::Signal;

/// The longest time for which the lines of a rank that has ended are waited for.
const MAX_LINES_TIME: Duration = Duration::from_secs(2);

/// How a rank stands.
pub enum End {
    /// It runs, or it has ended before.
    None,
    /// It has ended since the last look, without success.
    Failed { code: u8, reason: String },
}

/// A rank of this host.
pub struct Rank {
    pub number: usize,
    child: Child,
    has_ended: bool,
    readers: Vec<JoinHandle<()>>,
}

impl Rank {
    /// Starts a rank, whose lines are shown with its number.
    pub fn start(command: &[OsString], world: &World, local_rank: usize, lines: &Lines) -> Result<Rank> {
        let number = world.first_rank + local_rank;
        let mut process = Command::new(&command[0]);
        process
            .args(&command[1..])
            .env("RANK", number.to_string())
            .env("WORLD_SIZE", world.size.to_string())
            .env("LOCAL_RANK", local_rank.to_string())
            .env("LOCAL_WORLD_SIZE", world.local_size.to_string())
            .env("MASTER_ADDR", &world.address)
            .env("MASTER_PORT", world.port.to_string())
            .env("SELVEDGE_PORT", (world.port + 1).to_string())
            .env("SELVEDGE_SECRET", &world.secret)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if std::env::var_os("SELVEDGE_THREADS").is_none() {
            process.env("SELVEDGE_THREADS", world.threads.to_string());
        }
        in_its_own_group(&mut process);
        let mut child = process.spawn()?;
        let mut readers = Vec::new();
        // Both were asked for.
        readers.extend(child.stdout.take().map(|stream| lines.read(number, stream, false)));
        readers.extend(child.stderr.take().map(|stream| lines.read(number, stream, true)));
        let readers = readers.into_iter().collect::<Result<Vec<_>>>();
        let mut rank = Rank { number, child, has_ended: false, readers: Vec::new() };
        match readers {
            Ok(readers) => rank.readers = readers,
            Err(error) => {
                rank.kill();
                return Err(error);
            }
        }
        Ok(rank)
    }

    /// Returns whether the rank has not ended.
    pub fn is_running(&self) -> bool {
        !self.has_ended
    }

    /// Looks whether the rank has ended.
    pub fn poll(&mut self) -> Result<End> {
        if self.has_ended {
            return Ok(End::None);
        }
        let Some(status) = self.child.try_wait()? else { return Ok(End::None) };
        self.has_ended = true;
        // At once, while no other process can have its number.
        self.end_group();
        if status.success() {
            return Ok(End::None);
        }
        Ok(End::Failed { code: code_of(status), reason: status.to_string() })
    }

    /// Sends a signal to the rank and to what it has started.
    pub fn signal(&mut self, signal: Signal) {
        if self.has_ended {
            return;
        }
        #[cfg(unix)]
        self.signal_group(match signal {
            Signal::Interrupt => rustix::process::Signal::INT,
            Signal::Terminate => rustix::process::Signal::TERM,
        });
        #[cfg(not(unix))]
        {
            let _ = signal;
            self.kill();
        }
    }

    /// Ends the rank and what it has started at once.
    pub fn kill(&mut self) {
        if !self.has_ended {
            self.end_group();
            // It may have ended since it was looked at.
            let _ = self.child.kill();
            let _ = self.child.wait();
            self.has_ended = true;
        }
    }

    /// Waits until the lines of the rank are shown: for a while, since a process that left the group may keep its streams open.
    pub fn finish(self) {
        let limit = Instant::now() + MAX_LINES_TIME;
        while self.readers.iter().any(|reader| !reader.is_finished()) && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends what the rank has started and left.
    fn end_group(&self) {
        #[cfg(unix)]
        self.signal_group(rustix::process::Signal::KILL);
    }

    /// Sends a signal to the rank's group.
    #[cfg(unix)]
    fn signal_group(&self, signal: rustix::process::Signal) {
        let leader = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(group) = leader {
            // It is empty if the rank has ended and left nothing.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

/// Makes the rank the leader of a group of processes, and on Linux has it end with this process.
fn in_its_own_group(process: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(process, 0);
    #[cfg(target_os = "linux")]
    {
        let end_with_parent = || {
            let signal = Some(rustix::process::Signal::KILL);
            rustix::process::set_parent_process_death_signal(signal).map_err(std::io::Error::from)
        };
        // SAFETY: the function makes one system call, which is allowed between fork and exec.
        unsafe { std::os::unix::process::CommandExt::pre_exec(process, end_with_parent) };
    }
    #[cfg(not(unix))]
    let _ = process;
}
