//! [`WorldOptions`]: a rank's place in a world, and how it finds the others.

use std::time::Duration;

use crate::error::{Error, Result};

/// The port of rank 0 without another choice.
pub(super) const DEFAULT_PORT: u16 = 29501;
/// The time within which ranks must come, and take part in each call, without another choice.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
/// The longest time-out, so that a deadline is a time.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// The most ranks of a world.
pub(super) const MAX_WORLD: usize = 1 << 16;

/// A rank's number, the size of its world, and the address at which rank 0 waits for the others.
///
/// ```
/// use std::time::Duration;
/// use selvedge::collective::WorldOptions;
///
/// let options = WorldOptions::new(0, 1)?.with_address("127.0.0.1", 0).with_timeout(Duration::from_secs(5));
/// assert_eq!((options.rank(), options.world_size()), (0, 1));
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Clone)]
pub struct WorldOptions {
    pub(super) rank: usize,
    pub(super) world_size: usize,
    pub(super) local_rank: usize,
    pub(super) local_size: usize,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) secret: String,
    pub(super) run: String,
    pub(super) timeout: Duration,
}

/// The secret is not shown.
impl std::fmt::Debug for WorldOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let WorldOptions { rank, world_size, local_rank, local_size, host, port, run, timeout, secret } =
            self;
        formatter
            .debug_struct("WorldOptions")
            .field("rank", rank)
            .field("world_size", world_size)
            .field("local_rank", local_rank)
            .field("local_size", local_size)
            .field("host", host)
            .field("port", port)
            .field("run", run)
            .field("timeout", timeout)
            .field("has_secret", &!secret.is_empty())
            .finish()
    }
}

impl WorldOptions {
    /// Creates the options of a rank on one host: the address is 127.0.0.1, port 29501, and the time-out 10 minutes.
    ///
    /// # Errors
    ///
    /// The world has no ranks or more than 65,536, or the rank is not one of them.
    pub fn new(rank: usize, world_size: usize) -> Result<WorldOptions> {
        let found = format!("rank {rank} of {world_size}");
        if world_size == 0 || world_size > MAX_WORLD {
            return Err(Error::invalid("WorldOptions", found, format!("a world of 1 to {MAX_WORLD} ranks")));
        }
        if rank >= world_size {
            return Err(Error::invalid("WorldOptions", found, "a rank below the size of its world"));
        }
        Ok(WorldOptions {
            rank,
            world_size,
            local_rank: rank,
            local_size: world_size,
            host: "127.0.0.1".to_owned(),
            port: DEFAULT_PORT,
            secret: String::new(),
            run: String::new(),
            timeout: DEFAULT_TIMEOUT,
        })
    }

    /// Names the host and the port of rank 0. With port 0, a rank 0 that is alone takes any.
    #[must_use]
    pub fn with_address(mut self, host: impl Into<String>, port: u16) -> WorldOptions {
        (self.host, self.port) = (host.into(), port);
        self
    }

    /// Sets the rank among those of this host, and their number.
    #[must_use]
    pub fn with_local(mut self, local_rank: usize, local_size: usize) -> WorldOptions {
        (self.local_rank, self.local_size) = (local_rank, local_size);
        self
    }

    /// Sets the secret that the ranks share.
    #[must_use]
    pub fn with_secret(mut self, secret: impl Into<String>) -> WorldOptions {
        self.secret = secret.into();
        self
    }

    /// Names the run, so that ranks of another one are refused.
    #[must_use]
    pub fn with_run(mut self, run: impl Into<String>) -> WorldOptions {
        self.run = run.into();
        self
    }

    /// Sets the time within which all ranks must come, and within which they must take part in each call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> WorldOptions {
        self.timeout = timeout.min(MAX_TIMEOUT);
        self
    }

    /// Returns the rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn world_size(&self) -> usize {
        self.world_size
    }

    /// Returns the rank among those of this host, which usually is the device's ordinal.
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// Returns the number of ranks on this host.
    pub fn local_size(&self) -> usize {
        self.local_size
    }

    /// Returns the host and the port of rank 0.
    pub fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}
