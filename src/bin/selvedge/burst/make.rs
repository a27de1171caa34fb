//! `selvedge burst make`: a network file from a generated network or from arrays.

use std::path::Path;

use selvedge::Error;
use selvedge::burst::{Cpu, GeneratedNetwork, Network, Simulation};
use selvedge::io::npy;
use serde_json::json;

use crate::failure::Failure;
use crate::files;
use crate::options::{BurstMakeOptions, NetworkSource};
use crate::output::{Progress, Report, counted};

pub fn make(options: &BurstMakeOptions) -> Result<Report, Failure> {
    files::check_writable(&options.output)?;
    options.input.as_deref().map(files::check_writable).transpose()?;
    let generated = generated(options)?;
    let network = {
        let _progress = Progress::spinner("the network");
        match (&generated, &options.source) {
            (Some(generated), _) => generated.network()?,
            (None, NetworkSource::Arrays(path)) => Network::read_npz(path)?,
            (None, _) => return Err(Failure::failed("no network was named")),
        }
    };
    let (neurons, synapses) = (network.len() as u64, network.synapses().len() as u64);
    let mut simulation = Simulation::new(network.into(), Box::new(Cpu::with_threads(1)), options.seed)?;
    simulation.save(&options.output)?;
    let output = options.output.display().to_string();
    let mut text = format!("{output}: {}, {}\n", counted(neurons, "neuron"), counted(synapses, "synapse"));
    let mut json =
        json!({ "network": output, "neurons": neurons, "synapses": synapses, "seed": options.seed });
    if let (Some(path), Some(generated)) = (&options.input, &generated) {
        let rows = write_input(path, generated, options.bursts)?;
        let path = path.display().to_string();
        text += &format!("{path}: {} for {}\n", counted(rows, "injection"), counted(options.bursts, "burst"));
        json["input"] = json!({ "file": path, "bursts": options.bursts, "rows": rows });
    }
    Ok(Report { text, json })
}

/// Returns the generated network, or none for arrays, which refuse the options of generated networks.
fn generated(options: &BurstMakeOptions) -> Result<Option<GeneratedNetwork>, Failure> {
    let refused = |option: &str, wanted: &str| -> Failure {
        Error::InvalidArgument {
            operation: "burst make",
            found: option.to_owned(),
            wanted: wanted.to_owned(),
        }
        .into()
    };
    let size = |neurons, degree| (options.neurons.unwrap_or(neurons), options.degree.unwrap_or(degree));
    match options.source {
        NetworkSource::Varied if options.every.is_some() => {
            Err(refused("--every for network G", "network S, whose rate it sets"))
        }
        NetworkSource::Varied => {
            let (neurons, degree) = size(1000, 20);
            Ok(Some(GeneratedNetwork::g(neurons, degree)))
        }
        NetworkSource::Steady => {
            let (neurons, degree) = size(10_000, 100);
            Ok(Some(GeneratedNetwork::s(neurons, degree, options.every.unwrap_or(100))))
        }
        NetworkSource::Arrays(_) => {
            let given = [
                ("--neurons", options.neurons.is_some()),
                ("--degree", options.degree.is_some()),
                ("--every", options.every.is_some()),
                ("--input", options.input.is_some()),
            ];
            match given.into_iter().find(|(_, given)| *given) {
                Some((option, _)) => Err(refused(&format!("{option} for an .npz file"), "network G or S")),
                None => Ok(None),
            }
        }
    }
}

/// Writes the input of bursts from 1 as rows of burst, id and potential; returns their number.
fn write_input(path: &Path, generated: &GeneratedNetwork, bursts: u64) -> Result<u64, Failure> {
    let progress = Progress::of_steps("the input", bursts);
    let mut rows: Vec<f64> = Vec::new();
    for burst in 1..=bursts {
        for injection in generated.injections(burst) {
            rows.extend([burst as f64, f64::from(injection.id), injection.thousandths as f64 / 1000.0]);
        }
        progress.set(burst);
    }
    let count = rows.len() / 3;
    npy::write_slice(path, &rows, &[count, 3])?;
    Ok(count as u64)
}
