//! Networks from `.npz` files, and recorded spikes into them.

use std::path::Path;

use super::host_memory::check_host_memory;
use super::network::Network;
use super::neurons::Neurons;
use super::simulation::Simulation;
use super::synapses::{SynapseArrays, check_neurons};
use crate::io::HostArray;
use crate::io::npz::{NpzFile, NpzWriter};
use crate::types::DType;
use crate::{Error, Result};

/// The arrays of a file by name.
struct Arrays<'a> {
    path: &'a Path,
    file: NpzFile,
    names: Vec<String>,
}

impl Network {
    /// Reads a network of one area from the arrays of an `.npz` file: `source`, `target`, `weight`, `psp` and `kind` of the
    /// synapses in any order, and the fields of [`Neurons`] by their names (`threshold`, `leak`, …). Missing neuron fields
    /// have their defaults, a missing `kind` is excitatory. The number of neurons is that of the first field, or the
    /// one element of `neurons`. The kind of the neurons is `neuron_kind`. Arrays of integers may have any integer type.
    ///
    /// # Errors
    /// [`Error::File`] for a file that cannot be read, a missing array or a value out of range, naming the array; the
    /// errors of [`Network::from_arrays`]; [`Error::OutOfMemory`].
    pub fn read_npz(path: impl AsRef<Path>) -> Result<Network> {
        let path = path.as_ref();
        let file = NpzFile::open(path)?;
        let names = file.names();
        let mut arrays = Arrays { path, file, names };
        let count = arrays.neuron_count()?;
        check_neurons(count)?;
        check_host_memory(count as u64, arrays.file.array("source")?.len() as u64)?;
        let mut neurons = Neurons::new(count);
        for (name, field) in [
            ("threshold", &mut neurons.threshold),
            ("threshold_max", &mut neurons.threshold_max),
            ("leak", &mut neurons.leak),
            ("rest", &mut neurons.rest),
            ("excitability", &mut neurons.excitability),
        ] {
            if arrays.has(name) {
                *field = arrays.floats(name)?;
            }
        }
        for (name, field) in [
            ("refractory", &mut neurons.refractory),
            ("fire_limit", &mut neurons.fire_limit),
            ("snooze", &mut neurons.snooze),
        ] {
            if arrays.has(name) {
                *field = arrays.integers(name)?;
            }
        }
        if arrays.has("accumulates") {
            let flags: Vec<u8> = arrays.integers("accumulates")?;
            neurons.accumulates = flags.into_iter().map(|flag| flag != 0).collect();
        }
        if arrays.has("neuron_kind") {
            neurons.kind = arrays.integers("neuron_kind")?;
        }
        let source: Vec<u32> = arrays.integers("source")?;
        let target: Vec<u32> = arrays.integers("target")?;
        let weight: Vec<u8> = arrays.integers("weight")?;
        let psp: Vec<u8> = arrays.integers("psp")?;
        let kind: Vec<u8> = if arrays.has("kind") { arrays.integers("kind")? } else { vec![0; source.len()] };
        let arrays =
            SynapseArrays { source: &source, target: &target, weight: &weight, psp: &psp, kind: &kind };
        Network::from_arrays(neurons, &arrays)
    }
}

impl Simulation {
    /// Writes the recorded spikes to an `.npz` file: the arrays `burst` (u64) and `id` (u32).
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be written.
    pub fn write_spikes_npz(&self, path: impl AsRef<Path>) -> Result<()> {
        let (bursts, ids) = self.spikes();
        let mut writer = NpzWriter::create(path)?;
        writer.begin("burst", DType::U64, &[bursts.len()])?;
        writer.write(bytemuck::cast_slice(bursts))?;
        writer.begin("id", DType::U32, &[ids.len()])?;
        writer.write(bytemuck::cast_slice(ids))?;
        writer.finish()
    }
}

impl Arrays<'_> {
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn neuron_count(&mut self) -> Result<usize> {
        const FIELDS: [&str; 10] = [
            "threshold",
            "threshold_max",
            "leak",
            "rest",
            "excitability",
            "refractory",
            "fire_limit",
            "snooze",
            "accumulates",
            "neuron_kind",
        ];
        if self.has("neurons") {
            return match self.integers::<u32>("neurons")?[..] {
                [count] => Ok(count as usize),
                ref many => Err(self.error(
                    format!("{} elements of array 'neurons'", many.len()),
                    "one: the number of neurons",
                )),
            };
        }
        match FIELDS.into_iter().find(|name| self.has(name)) {
            Some(name) => Ok(self.file.array(name)?.len()),
            None => Err(self.error("no array of a neuron field", "'neurons' or a field such as 'threshold'")),
        }
    }

    fn error(&self, found: impl Into<String>, wanted: impl Into<String>) -> Error {
        Error::File { path: self.path.display().to_string(), found: found.into(), wanted: wanted.into() }
    }

    fn read(&mut self, name: &str) -> Result<HostArray> {
        let array = self.file.array(name)?.read()?;
        if array.shape().len() > 1 {
            return Err(self.error(format!("array '{name}' of shape {:?}", array.shape()), "one dimension"));
        }
        Ok(array)
    }

    fn floats(&mut self, name: &str) -> Result<Vec<f32>> {
        let array = self.read(name)?;
        match array.dtype() {
            DType::F32 => Ok(array.as_slice::<f32>()?.to_vec()),
            DType::F64 => Ok(array.as_slice::<f64>()?.iter().map(|&value| value as f32).collect()),
            other => Err(self.error(format!("array '{name}' of {other}"), "f32 or f64")),
        }
    }

    fn integers<T: TryFrom<i128>>(&mut self, name: &str) -> Result<Vec<T>> {
        let array = self.read(name)?;
        match array.dtype() {
            DType::Bool | DType::U8 => self.narrow(name, array.as_bytes()),
            DType::I8 => self.narrow(name, array.as_slice::<i8>()?),
            DType::U16 => self.narrow(name, array.as_slice::<u16>()?),
            DType::I16 => self.narrow(name, array.as_slice::<i16>()?),
            DType::U32 => self.narrow(name, array.as_slice::<u32>()?),
            DType::I32 => self.narrow(name, array.as_slice::<i32>()?),
            DType::U64 => self.narrow(name, array.as_slice::<u64>()?),
            DType::I64 => self.narrow(name, array.as_slice::<i64>()?),
            other => Err(self.error(format!("array '{name}' of {other}"), "an integer type")),
        }
    }

    fn narrow<S: Copy + Into<i128>, T: TryFrom<i128>>(&self, name: &str, values: &[S]) -> Result<Vec<T>> {
        let mut narrowed = Vec::with_capacity(values.len());
        for (at, &value) in values.iter().enumerate() {
            let value: i128 = value.into();
            let fits = T::try_from(value).map_err(|_| {
                let wanted = format!("values that fit {} bytes without a sign", size_of::<T>());
                self.error(format!("{value} at {at} of array '{name}'"), wanted)
            })?;
            narrowed.push(fits);
        }
        Ok(narrowed)
    }
}
