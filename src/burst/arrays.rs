//! Networks from `.npz` files, and recorded spikes into them.

use std::path::Path;

use super::host_memory::check_host_memory;
use super::network::{Area, Network};
use super::neurons::Neurons;
use super::simulation::Simulation;
use super::synapses::{SynapseArrays, Synapses, check_neurons};
use crate::io::HostArray;
use crate::io::npz::{NpzFile, NpzWriter};
use crate::types::DType;
use crate::{Error, Result};

/// The arrays of one element per neuron.
const NEURON_FIELDS: [&str; 11] = [
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
    "area",
];

/// The other arrays with names of their own.
const OTHER_ARRAYS: [&str; 7] = ["source", "target", "weight", "psp", "kind", "neurons", "position"];

/// The arrays of a file by name.
struct Arrays<'a> {
    path: &'a Path,
    file: NpzFile,
    names: Vec<String>,
}

impl Network {
    /// Reads a network from the arrays of an `.npz` file.
    ///
    /// | array | content |
    /// |---|---|
    /// | `source`, `target`, `weight`, `psp`, `kind` | the synapses in any order; a missing `kind` is excitatory |
    /// | `neurons` | the number of neurons; without it, that of the first neuron field |
    /// | `threshold`, `leak`, … | the fields of [`Neurons`]; a missing one has its default, and `neuron_kind` is the kind |
    /// | `position` | three columns: x, y, z |
    /// | `area`, `area:NAME` | the area of each neuron; for each area its index and its flags: 1 shares, 2 driven by potentials |
    /// | `population:NAME` | first and last + 1 id of a population |
    ///
    /// Without areas there is one, `all`. Arrays of integers may have any integer type.
    ///
    /// # Errors
    /// [`Error::File`] for a file that cannot be read, an array of another name, a missing array or a value out of range, naming
    /// the array; the errors of [`Network::with_areas`] and [`add_population`](Network::add_population);
    /// [`Error::OutOfMemory`].
    pub fn read_npz(path: impl AsRef<Path>) -> Result<Network> {
        let path = path.as_ref();
        let file = NpzFile::open(path)?;
        let names = file.names();
        let mut arrays = Arrays { path, file, names };
        arrays.check_names()?;
        let count = arrays.neuron_count()?;
        check_neurons(count)?;
        check_host_memory(count as u64, arrays.file.array("source")?.len() as u64)?;
        let neurons = arrays.neurons(count)?;
        let areas = arrays.areas()?;
        let source: Vec<u32> = arrays.integers("source")?;
        let target: Vec<u32> = arrays.integers("target")?;
        let weight: Vec<u8> = arrays.integers("weight")?;
        let psp: Vec<u8> = arrays.integers("psp")?;
        let kind: Vec<u8> = if arrays.has("kind") { arrays.integers("kind")? } else { vec![0; source.len()] };
        let synapses =
            SynapseArrays { source: &source, target: &target, weight: &weight, psp: &psp, kind: &kind };
        let synapses = Synapses::from_arrays(neurons.len(), &synapses)?;
        let mut network = Network::with_areas(neurons, synapses, areas)?;
        for (name, array) in arrays.named("population:") {
            let [first, end] = arrays.two(&array)?;
            network.add_population(name, first..end)?;
        }
        Ok(network)
    }
}

impl Simulation {
    /// Writes the recorded spikes to an `.npz` file: the arrays `burst` (u64) and `id` (u32).
    ///
    /// # Errors
    /// [`Error::FileNotWritten`].
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

    /// Refuses an array that no part of a network reads: it would be a field whose name is misspelt.
    fn check_names(&self) -> Result<()> {
        let is_known = |name: &str| {
            NEURON_FIELDS.contains(&name)
                || OTHER_ARRAYS.contains(&name)
                || name.starts_with("area:")
                || name.starts_with("population:")
        };
        match self.names.iter().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(name) => {
                let known = [&OTHER_ARRAYS[..], &NEURON_FIELDS[..]].concat().join(", ");
                let wanted = format!("arrays of the names {known}, area:NAME and population:NAME");
                Err(self.error(format!("array '{name}'"), wanted))
            }
        }
    }

    fn neurons(&mut self, count: usize) -> Result<Neurons> {
        let mut neurons = Neurons::new(count);
        for (name, field) in [
            ("threshold", &mut neurons.threshold),
            ("threshold_max", &mut neurons.threshold_max),
            ("leak", &mut neurons.leak),
            ("rest", &mut neurons.rest),
            ("excitability", &mut neurons.excitability),
        ] {
            if self.has(name) {
                *field = self.floats(name)?;
            }
        }
        for (name, field) in [
            ("refractory", &mut neurons.refractory),
            ("fire_limit", &mut neurons.fire_limit),
            ("snooze", &mut neurons.snooze),
        ] {
            if self.has(name) {
                *field = self.integers(name)?;
            }
        }
        if self.has("accumulates") {
            let flags: Vec<u8> = self.integers("accumulates")?;
            neurons.accumulates = flags.into_iter().map(|flag| flag != 0).collect();
        }
        if self.has("neuron_kind") {
            neurons.kind = self.integers("neuron_kind")?;
        }
        if self.has("area") {
            neurons.area = self.integers("area")?;
        }
        if self.has("position") {
            let array = self.file.array("position")?.read()?;
            if array.shape().get(1..) != Some(&[3]) {
                let found = format!("array 'position' of shape {:?}", array.shape());
                return Err(self.error(found, "three columns: x, y, z"));
            }
            let numbers: Vec<u32> = self.integers_of("position", &array)?;
            neurons.position = numbers.chunks_exact(3).map(|at| [at[0], at[1], at[2]]).collect();
        }
        Ok(neurons)
    }

    /// Returns the areas in the order of their indices.
    fn areas(&mut self) -> Result<Vec<Area>> {
        let named = self.named("area:");
        if named.is_empty() {
            return Ok(vec![Area::new("all")]);
        }
        let mut areas = vec![None; named.len()];
        for (name, array) in named {
            let [index, flags] = self.two(&array)?;
            if flags > 3 {
                let wanted = "1 for shares, 2 for driven by potentials, their sum or 0";
                return Err(self.error(format!("flags {flags} of array '{array}'"), wanted));
            }
            let count = areas.len();
            match areas.get_mut(index as usize) {
                Some(area @ None) => {
                    *area = Some(Area { name, shares: flags & 1 != 0, potential_driven: flags & 2 != 0 });
                }
                _ => {
                    let wanted = format!("each of 0 to {} once: the file has {count} areas", count - 1);
                    return Err(self.error(format!("index {index} of array '{array}'"), wanted));
                }
            }
        }
        Ok(areas.into_iter().flatten().collect())
    }

    /// Returns what follows the prefix in the names that have it, and those names, in the order of the file.
    fn named(&self, prefix: &str) -> Vec<(String, String)> {
        let rest = |name: &String| Some((name.strip_prefix(prefix)?.to_owned(), name.clone()));
        self.names.iter().filter_map(rest).collect()
    }

    /// Returns the two numbers of an array.
    fn two(&mut self, name: &str) -> Result<[u32; 2]> {
        let numbers: Vec<u32> = self.integers(name)?;
        <[u32; 2]>::try_from(numbers.as_slice())
            .map_err(|_| self.error(format!("{} elements of array '{name}'", numbers.len()), "two"))
    }

    fn neuron_count(&mut self) -> Result<usize> {
        if self.has("neurons") {
            return match self.integers::<u32>("neurons")?[..] {
                [count] => Ok(count as usize),
                ref many => Err(self.error(
                    format!("{} elements of array 'neurons'", many.len()),
                    "one: the number of neurons",
                )),
            };
        }
        match NEURON_FIELDS.into_iter().find(|name| self.has(name)) {
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
        self.integers_of(name, &array)
    }

    fn integers_of<T: TryFrom<i128>>(&self, name: &str, array: &HostArray) -> Result<Vec<T>> {
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
