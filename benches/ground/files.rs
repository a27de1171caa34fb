//! A safetensors file in the system's page cache to the device, beside the bare driver's copy of pinned memory.

use std::time::Instant;

use selvedge::io::safetensors::SafetensorsFile;
use selvedge::tensor::{Device, Tensor};

use crate::Options;
use crate::harness::bare::Bare;
use crate::harness::machine::Recorder;
use crate::harness::random::Random;
use crate::harness::report::{Failure, Rule, Unit};
use crate::harness::turns::{Subject, measure as turns};

/// Bytes of the file's tensors.
const BYTES: usize = 1 << 30;
const TENSORS: usize = 4;
const GOAL: f64 = 0.95;

type Load = fn(&std::path::Path, &Device) -> Result<Vec<Tensor>, Failure>;

/// Both paths of a file to the device.
pub fn measure(bare: &Bare, options: &Options) -> Result<(), Failure> {
    let mut recorder = Recorder::new(
        bare,
        "files",
        "Files to the device",
        "The host's time from the call to the end of the last copy, for a safetensors file of four tensors of f32, 1 GiB in \
         all, which the page cache holds because it was just written, to a file system in memory if there is one. The \
         reference is one copy of as many bytes from pinned memory. All of the data is compared before.",
    )?;
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let path = folder.path().join("weights.safetensors");
    let mut words = vec![0u64; BYTES / TENSORS / 8];
    let (mut random, cpu, device) = (Random::new(23), Device::cpu(), Device::cuda(0)?);
    let mut written = Vec::new();
    for number in 0..TENSORS {
        random.fill(&mut words);
        let elements: &[f32] = bytemuck::cast_slice(&words);
        written.push((number.to_string(), Tensor::from_slice(elements, &[elements.len()], &cpu)?));
    }
    let named: Vec<(&str, &Tensor)> = written.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    Tensor::write_safetensors(&path, &named, &[])?;

    let address = bare.allocate(BYTES)?;
    let mut pinned = bare.pinned(BYTES)?;
    random.fill(pinned.words());
    let loads: [(&str, Load); 2] =
        [("read_safetensors of 1 GiB", read), ("map_safetensors_tensor of 1 GiB", map)];
    for (name, load) in loads {
        for ((_, wanted), found) in written.iter().zip(load(&path, &device)?) {
            if found.to_bytes()? != wanted.to_bytes()? {
                return Err(format!("{name}: the device holds other data").into());
            }
        }
        let subject = Subject {
            name,
            against: "the bare driver's pinned copy",
            unit: Unit::Microseconds,
            bytes: Some((BYTES as u64, BYTES as u64)),
            rule: Rule::Speed,
            goal: Some(GOAL),
        };
        let own = || {
            let start = Instant::now();
            let loaded = load(&path, &device)?;
            device.stream()?.synchronize()?;
            let time = start.elapsed().as_secs_f64() * 1e6;
            drop(loaded);
            Ok(time)
        };
        let reference = || {
            let start = Instant::now();
            bare.upload(address, &pinned)?;
            bare.synchronize()?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        };
        recorder.add(turns(options.turns(3, 20), &subject, own, reference)?);
    }
    bare.free(address)?;
    bare.free_pinned(pinned)?;
    recorder.finish(&options.out)
}

fn read(path: &std::path::Path, device: &Device) -> Result<Vec<Tensor>, Failure> {
    let tensors = Tensor::read_safetensors(path, device)?;
    Ok(tensors.into_iter().map(|(_, tensor)| tensor).collect())
}

fn map(path: &std::path::Path, device: &Device) -> Result<Vec<Tensor>, Failure> {
    let mut file = SafetensorsFile::open(path)?;
    let mut tensors = Vec::new();
    for name in file.names().to_vec() {
        // SAFETY: the file is in a folder of this process, which writes it no more.
        tensors.push(unsafe { Tensor::map_safetensors_tensor(&mut file, &name, device)? });
    }
    Ok(tensors)
}
