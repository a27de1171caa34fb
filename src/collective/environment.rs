//! The variables by which launchers tell a process its rank.

use std::time::Duration;

use super::world::{DEFAULT_PORT, WorldOptions};
use crate::error::{Error, Result};

const OPERATION: &str = "the launcher's environment";

/// Reads a variable; `None` if it is not set or empty.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The names of a launcher's variables.
struct Launcher {
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
    local_size: &'static str,
    /// The variable that names the run; empty if there is none.
    run: &'static str,
}

/// The launchers, in the order in which they are looked for: torchrun within a job of Slurm counts.
const LAUNCHERS: [Launcher; 4] = [
    Launcher {
        rank: "RANK",
        size: "WORLD_SIZE",
        local_rank: "LOCAL_RANK",
        local_size: "LOCAL_WORLD_SIZE",
        run: "TORCHELASTIC_RUN_ID",
    },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
        run: "OMPI_MCA_ess_base_jobid",
    },
    Launcher {
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        local_size: "MPI_LOCALNRANKS",
        run: "",
    },
    Launcher {
        rank: "SLURM_PROCID",
        size: "SLURM_NTASKS",
        local_rank: "SLURM_LOCALID",
        local_size: "SLURM_NTASKS_PER_NODE",
        run: "SLURM_JOB_ID",
    },
];

impl WorldOptions {
    /// Reads the options from the variables that a launcher sets; `None` if none did.
    ///
    /// | launcher | variables |
    /// |---|---|
    /// | torchrun, `selvedge launch` | `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`, `TORCHELASTIC_RUN_ID` |
    /// | Open MPI | `OMPI_COMM_WORLD_RANK`, `…_SIZE`, `…_LOCAL_RANK`, `…_LOCAL_SIZE` |
    /// | MPICH | `PMI_RANK`, `PMI_SIZE`, `MPI_LOCALRANKID`, `MPI_LOCALNRANKS` |
    /// | Slurm | `SLURM_PROCID`, `SLURM_NTASKS`, `SLURM_LOCALID`, `SLURM_STEP_NODELIST`, `SLURM_JOB_ID` |
    ///
    /// The first of these that is there counts. `MASTER_ADDR` names the host of rank 0 for all of them; without it, it is the first
    /// node of Slurm's list, or this host if all ranks are on it. The port is `SELVEDGE_PORT`, or the one after `MASTER_PORT`, which
    /// torchrun itself uses, or 29501. `SELVEDGE_SECRET` is the secret that ranks prove, and `SELVEDGE_COLLECTIVE_TIMEOUT` the time-out in
    /// seconds.
    ///
    /// # Errors
    ///
    /// A variable is missing beside others of its launcher, or is no number in its range. The host of rank 0 is unknown.
    pub fn from_environment() -> Result<Option<WorldOptions>> {
        read(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }
}

/// As [`WorldOptions::from_environment`], with the variables of a function.
fn read(variable: Variable<'_>) -> Result<Option<WorldOptions>> {
    // A shell in a Slurm allocation has SLURM_NTASKS, and no rank.
    let is_complete =
        |launcher: &&Launcher| variable(launcher.rank).is_some() && variable(launcher.size).is_some();
    let Some(launcher) = LAUNCHERS.iter().find(is_complete) else {
        let torchrun = &LAUNCHERS[0];
        return match (variable(torchrun.rank), variable(torchrun.size)) {
            (Some(rank), None) => Err(missing(torchrun.rank, &rank, torchrun.size)),
            (None, Some(size)) => Err(missing(torchrun.size, &size, torchrun.rank)),
            _ => Ok(None),
        };
    };
    let (Some(rank), Some(size)) = (number(variable, launcher.rank)?, number(variable, launcher.size)?)
    else {
        return Ok(None);
    };
    let options = WorldOptions::new(rank, size)?;
    let local_rank = number(variable, launcher.local_rank)?;
    let local_size = number(variable, launcher.local_size)?;
    let host = match (variable("MASTER_ADDR"), local_size) {
        (Some(host), _) => host,
        (None, _) if launcher.rank == "SLURM_PROCID" => slurm_host(variable, rank, size)?,
        (None, local_size) if local_size == Some(size) || size == 1 => "127.0.0.1".to_owned(),
        _ => {
            let found = format!("{size} ranks, perhaps on several hosts, and no MASTER_ADDR");
            return Err(Error::invalid(
                OPERATION,
                found,
                "MASTER_ADDR: a name or address of the host of rank 0",
            ));
        }
    };
    let port = match (number::<u16>(variable, "SELVEDGE_PORT")?, number::<u16>(variable, "MASTER_PORT")?) {
        (Some(port), _) => port,
        (None, Some(u16::MAX)) => {
            return Err(Error::invalid(
                OPERATION,
                "MASTER_PORT=65535",
                "a port with one after it, or SELVEDGE_PORT",
            ));
        }
        (None, Some(port)) => port + 1,
        (None, None) => DEFAULT_PORT,
    };
    let mut options = options
        .with_address(host, port)
        .with_local(local_rank.unwrap_or(rank), local_size.unwrap_or(size))
        .with_run(variable(launcher.run).unwrap_or_default())
        .with_secret(variable("SELVEDGE_SECRET").unwrap_or_default());
    if let Some(seconds) = variable("SELVEDGE_COLLECTIVE_TIMEOUT") {
        let timeout = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        match timeout.filter(|timeout| !timeout.is_zero()) {
            Some(timeout) => options = options.with_timeout(timeout),
            None => {
                let found = format!("SELVEDGE_COLLECTIVE_TIMEOUT={seconds}");
                return Err(Error::invalid(OPERATION, found, "a number of seconds above 0"));
            }
        }
    }
    Ok(Some(options))
}

fn missing(found: &str, value: &str, wanted: &str) -> Error {
    Error::invalid(
        OPERATION,
        format!("{found}={value} without {wanted}"),
        format!("both {found} and {wanted}"),
    )
}

/// Reads a variable that is a number.
fn number<T: std::str::FromStr>(variable: Variable<'_>, name: &str) -> Result<Option<T>> {
    let Some(text) = variable(name) else { return Ok(None) };
    match text.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Error::invalid(OPERATION, format!("{name}={text}"), "a number in its range")),
    }
}

/// Returns the host of rank 0 in a job of Slurm: the first node of the step, unless all ranks are on this one.
fn slurm_host(variable: Variable<'_>, rank: usize, size: usize) -> Result<String> {
    let nodes = number::<usize>(variable, "SLURM_STEP_NUM_NODES")?.or(number(variable, "SLURM_NNODES")?);
    if nodes == Some(1) || size == 1 {
        return Ok("127.0.0.1".to_owned());
    }
    let list = variable("SLURM_STEP_NODELIST").or_else(|| variable("SLURM_JOB_NODELIST"));
    match list.as_deref().and_then(first_node) {
        Some(node) => Ok(node),
        None => {
            let found = format!(
                "rank {rank} of {size} of Slurm and the node list {}",
                list.as_deref().unwrap_or("none")
            );
            Err(Error::invalid(OPERATION, found, "SLURM_STEP_NODELIST, or MASTER_ADDR: the host of rank 0"))
        }
    }
}

/// Returns the first node of Slurm's list, such as `gpu[07-09,12]-a,other`: `gpu07-a`.
fn first_node(list: &str) -> Option<String> {
    let end = list
        .char_indices()
        .scan(0, |depth, (at, letter)| {
            *depth += i32::from(letter == '[') - i32::from(letter == ']');
            Some((at, letter, *depth))
        })
        .find(|(_, letter, depth)| *letter == ',' && *depth == 0)
        .map_or(list.len(), |(at, ..)| at);
    let mut node = list[..end].to_owned();
    while let Some(open) = node.find('[') {
        let close = open + node[open..].find(']')?;
        let first = node[open + 1..close].split([',', '-']).next()?.to_owned();
        node.replace_range(open..=close, &first);
    }
    (!node.is_empty()).then_some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(variables: &[(&str, &str)]) -> Result<Option<WorldOptions>> {
        read(&|name| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned()))
    }

    /// Rank, size, local rank, local size, host and port.
    fn placed(variables: &[(&str, &str)]) -> (usize, usize, usize, usize, String, u16) {
        let options = read_from(variables).unwrap().unwrap();
        let (host, port) = options.address();
        let (host, port) = (host.to_owned(), port);
        (options.rank(), options.world_size(), options.local_rank(), options.local_size(), host, port)
    }

    #[test]
    fn variables_of_each_launcher_are_read() {
        let torchrun = [
            ("RANK", "5"),
            ("WORLD_SIZE", "8"),
            ("LOCAL_RANK", "1"),
            ("LOCAL_WORLD_SIZE", "4"),
            ("MASTER_ADDR", "node0"),
            ("MASTER_PORT", "29500"),
            ("SLURM_PROCID", "1"),
            ("SLURM_NTASKS", "2"),
        ];
        assert_eq!(placed(&torchrun), (5, 8, 1, 4, "node0".to_owned(), 29501));
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        assert_eq!(placed(&open_mpi), (1, 2, 1, 2, "127.0.0.1".to_owned(), DEFAULT_PORT));
        let mpich = [("PMI_RANK", "0"), ("PMI_SIZE", "3"), ("MASTER_ADDR", "::1"), ("SELVEDGE_PORT", "7")];
        assert_eq!(placed(&mpich), (0, 3, 0, 3, "::1".to_owned(), 7));
        let slurm = [
            ("SLURM_PROCID", "3"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_NTASKS_PER_NODE", "2"),
            ("SLURM_NNODES", "2"),
            ("SLURM_STEP_NODELIST", "gpu[07-09,12]-a,other"),
        ];
        assert_eq!(placed(&slurm), (3, 4, 1, 2, "gpu07-a".to_owned(), DEFAULT_PORT));
    }

    #[test]
    fn a_process_without_a_launcher_has_no_rank() {
        assert!(read_from(&[]).unwrap().is_none());
        // A shell in an allocation.
        assert!(read_from(&[("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "1")]).unwrap().is_none());
    }

    #[test]
    fn wrong_variables_are_named() {
        let error = |variables: &[(&str, &str)]| read_from(variables).unwrap_err().to_string();
        assert!(error(&[("RANK", "1")]).contains("RANK=1 without WORLD_SIZE"));
        assert!(error(&[("WORLD_SIZE", "2")]).contains("WORLD_SIZE=2 without RANK"));
        assert!(error(&[("RANK", "one"), ("WORLD_SIZE", "2")]).contains("RANK=one"));
        assert!(error(&[("RANK", "2"), ("WORLD_SIZE", "2")]).contains("rank 2 of 2"));
        assert!(error(&[("RANK", "0"), ("WORLD_SIZE", "0")]).contains("rank 0 of 0"));
        assert!(error(&[("RANK", "0"), ("WORLD_SIZE", "2")]).contains("no MASTER_ADDR"));
        let with = |name, value| error(&[("RANK", "0"), ("WORLD_SIZE", "1"), (name, value)]);
        assert!(with("MASTER_PORT", "65535").contains("SELVEDGE_PORT"));
        assert!(with("SELVEDGE_PORT", "70000").contains("SELVEDGE_PORT=70000"));
        assert!(with("SELVEDGE_COLLECTIVE_TIMEOUT", "0").contains("seconds"));
    }

    #[test]
    fn the_first_node_of_a_list_is_found() {
        for (list, node) in
            [("a", "a"), ("a,b", "a"), ("n[1,3]", "n1"), ("n[01-04]", "n01"), ("r[2-3]n[10-11]", "r2n10")]
        {
            assert_eq!(first_node(list).as_deref(), Some(node), "{list}");
        }
        assert_eq!(first_node("n[1"), None);
        assert_eq!(first_node(""), None);
    }
}
