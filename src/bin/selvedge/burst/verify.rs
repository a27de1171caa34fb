//! `selvedge burst verify`: the worked example and the golden hashes on every device of this machine.

use std::sync::Arc;
use std::time::Instant;

use selvedge::burst::{Backend, Cpu, Cuda, GeneratedNetwork, InProcess, Network, Shards, SpikeHash};
use selvedge::driver::Device;
use selvedge::thread_count;
use serde_json::{Value, json};

use super::worked_example;
use crate::device::{is_reason_for_the_cpu, reason_text};
use crate::failure::Failure;
use crate::output::{self, Progress, Report, Style, Table};

/// A generated network with the hashes of its spikes and its last state.
struct Golden {
    name: &'static str,
    network: GeneratedNetwork,
    bursts: u64,
    seed: u32,
    spikes: u64,
    spike_hash: u64,
    state_hash: u64,
}

fn goldens() -> [Golden; 3] {
    [
        Golden {
            name: "G(1000, 20)",
            network: GeneratedNetwork::g(1000, 20),
            bursts: 200,
            seed: 7,
            spikes: 68_669,
            spike_hash: 0x7ab2_78ea_f9e8_14ea,
            state_hash: 0x5284_7a73_f592_73c2,
        },
        Golden {
            name: "G(5000, 50)",
            network: GeneratedNetwork::g(5000, 50),
            bursts: 60,
            seed: 99,
            spikes: 116_202,
            spike_hash: 0x5539_724a_2ef9_bff9,
            state_hash: 0xbc75_10d3_2daf_c972,
        },
        Golden {
            name: "S(10000, 100)",
            network: GeneratedNetwork::s(10_000, 100, 100),
            bursts: 10,
            seed: 1,
            spikes: 981,
            spike_hash: 0xfbf7_fc1b_44e5_0ce7,
            state_hash: 0xf9a0_dafb_fe83_fed8,
        },
    ]
}

impl Golden {
    /// Returns the difference of a run, if there is one.
    fn check(&self, network: &Arc<Network>, backend: &mut dyn Backend) -> selvedge::Result<Option<String>> {
        backend.load(network, self.seed)?;
        let (mut hash, mut spikes) = (SpikeHash::new(), 0);
        for burst in 1..=self.bursts {
            backend.inject(&self.network.injections(burst))?;
            let result = backend.run_burst()?;
            hash.add(result.burst, &result.fired);
            spikes += result.fired.len() as u64;
        }
        let found = (spikes, hash.value(), backend.state()?.hash());
        let wanted = (self.spikes, self.spike_hash, self.state_hash);
        let describe = |(spikes, hash, state): (u64, u64, u64)| {
            format!("{spikes} spikes of hash {hash:016x}, state {state:016x}")
        };
        Ok((found != wanted).then(|| format!("found {}; wanted {}", describe(found), describe(wanted))))
    }
}

/// The results of one backend.
struct Verified {
    name: String,
    seconds: f64,
    /// By column: the difference or error.
    outcomes: Vec<Option<String>>,
}

/// Returns the report, and whether everything is equal.
pub fn verify() -> Result<(Report, bool), Failure> {
    let goldens = goldens();
    let networks: Vec<Arc<Network>> =
        goldens.iter().map(|golden| golden.network.network().map(Arc::new)).collect::<Result<_, _>>()?;
    let (backends, reason) = backends()?;
    let progress = Progress::of_steps("devices", backends.len() as u64);
    let mut verified = Vec::new();
    for (name, mut backend) in backends {
        let start = Instant::now();
        let mut outcomes = vec![flat(worked_example::check(&mut *backend))];
        for (golden, network) in goldens.iter().zip(&networks) {
            outcomes.push(flat(golden.check(network, &mut *backend)));
        }
        verified.push(Verified { name, seconds: start.elapsed().as_secs_f64(), outcomes });
        progress.set(verified.len() as u64);
    }
    drop(progress);
    let names: Vec<&str> =
        std::iter::once("worked example").chain(goldens.iter().map(|golden| golden.name)).collect();
    Ok(report(&names, &verified, reason.as_ref()))
}

fn flat(outcome: selvedge::Result<Option<String>>) -> Option<String> {
    outcome.unwrap_or_else(|error| Some(error.to_string()))
}

/// The reason for no CUDA device, and a sentence of it.
type Unverified = (String, String);
type Named = (String, Box<dyn Backend>);

/// Returns the backends of this machine, and the reason if there is no CUDA device among them.
fn backends() -> Result<(Vec<Named>, Option<Unverified>), Failure> {
    let mut backends: Vec<Named> = Vec::new();
    let mut threads = vec![1, thread_count().max(2)];
    threads.push(threads[1] + 1);
    for threads in threads {
        let cpu = Cpu::with_threads(threads);
        backends.push((cpu.name(), Box::new(cpu)));
    }
    let cpu = || -> Result<Box<dyn Backend>, Failure> { Ok(Box::new(Cpu::with_threads(1))) };
    for count in [2, 3, 8] {
        backends.push((format!("CPU, {count} shards"), shards(count, &cpu)?));
    }
    let count = match Device::count() {
        Ok(0) => {
            return Ok((
                backends,
                Some((
                    "the driver has no device".to_owned(),
                    "No GPU is verified: the driver has no device.\n".to_owned(),
                )),
            ));
        }
        Ok(count) => count,
        Err(error) if is_reason_for_the_cpu(&error) => {
            return Ok((backends, Some((error.to_string(), reason_text(&error)))));
        }
        Err(error) => return Err(error.into()),
    };
    for ordinal in 0..count {
        let device = Device::new(ordinal)?;
        let name = format!("device {ordinal}, {}", device.name());
        let cuda =
            || -> Result<Box<dyn Backend>, Failure> { Ok(Box::new(Cuda::new(Device::new(ordinal)?)?)) };
        backends.push((name, cuda()?));
        for count in [2, 3, 8] {
            backends.push((format!("device {ordinal}, {count} shards"), shards(count, &cuda)?));
        }
    }
    Ok((backends, None))
}

fn shards(
    count: usize,
    backend: &dyn Fn() -> Result<Box<dyn Backend>, Failure>,
) -> Result<Box<dyn Backend>, Failure> {
    let backends = (0..count).map(|_| backend()).collect::<Result<_, _>>()?;
    Ok(Box::new(Shards::new(backends, Box::new(InProcess))?))
}

fn report(names: &[&str], verified: &[Verified], reason: Option<&Unverified>) -> (Report, bool) {
    let style = Style::of_stdout();
    let mut table = Table::new(&format!("<{}>", "<".repeat(names.len())));
    let head = std::iter::once("device").chain(names.iter().copied()).chain(["time"]);
    table.row(head.map(str::to_owned));
    let (mut details, mut checks, mut differing) = (String::new(), 0, 0);
    for one in verified {
        let cells = one.outcomes.iter().map(|outcome| match outcome {
            None => "equal".to_owned(),
            Some(_) => "DIFFERS".to_owned(),
        });
        let row = std::iter::once(one.name.clone()).chain(cells).chain([output::seconds(one.seconds)]);
        table.row(row);
        for (name, outcome) in names.iter().zip(&one.outcomes) {
            checks += 1;
            if let Some(difference) = outcome {
                differing += 1;
                details += &format!("{name} on {}: {difference}\n", one.name);
            }
        }
    }
    let mut text = table.render(style);
    if let Some((_, sentence)) = reason {
        text += &format!("\n{sentence}");
    }
    text += &match differing {
        0 => format!("\nAll {checks} results are equal bit for bit.\n"),
        count => format!("\n{count} of {checks} results differ.\n{details}"),
    };
    let rows: Vec<Value> = verified
        .iter()
        .map(|one| {
            let checks: serde_json::Map<String, Value> = names
                .iter()
                .zip(&one.outcomes)
                .map(|(name, outcome)| {
                    ((*name).to_owned(), json!({ "equal": outcome.is_none(), "difference": outcome }))
                })
                .collect();
            json!({ "device": one.name, "seconds": one.seconds, "checks": checks })
        })
        .collect();
    let json =
        json!({ "equal": differing == 0, "reason": reason.map(|(reason, _)| reason), "devices": rows });
    (Report { text, json }, differing == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_and_fails() {
        let outcomes = vec![None, Some("found 1; wanted 2".to_owned())];
        let verified = [Verified { name: "CPU".to_owned(), seconds: 0.5, outcomes }];
        let (report, good) = report(&["example", "G"], &verified, None);
        assert!(!good);
        assert!(report.text.contains("DIFFERS") && report.text.contains("1 of 2 results differ"));
        assert!(report.text.contains("G on CPU: found 1; wanted 2"), "{}", report.text);
        assert_eq!(report.json["devices"][0]["checks"]["G"]["equal"], false);
    }

    #[test]
    fn a_wrong_seed_differs_from_the_golden_hash() {
        let [golden, ..] = goldens();
        let golden = Golden { seed: 8, ..golden };
        let network = Arc::new(golden.network.network().unwrap());
        let difference = golden.check(&network, &mut Cpu::with_threads(1)).unwrap();
        assert!(difference.is_some_and(|text| text.contains("wanted 68669 spikes of hash 7ab278eaf9e814ea")));
    }
}
