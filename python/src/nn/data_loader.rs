//! `selvedge.nn.DataLoader`.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use selvedge::nn::{DataLoader, DataLoaderOptions, DataLoaderState};
use selvedge::{Device, Tensor};

use crate::arguments::{DeviceArgument, InRange, TensorArgument};
use crate::error::{Result, invalid, type_name, wrong_type};
use crate::tensor::PyTensor;

/// Batches of the rows of a tensor or an array, or of a tuple or list of them with the same number of rows.
///
/// `DataLoader(data, batch_size=1, shuffle=False, *, num_workers=0, drop_last=False, seed=0, prefetch_factor=2, device=None)` gives a tensor
/// (batch_size, ...) for each batch, or a tuple of one for each part of a tuple or list. Each iteration is the next epoch. The order of an
/// epoch is a function of the seed and the epoch, and the same on every machine. `num_workers` threads prepare `prefetch_factor` batches
/// each ahead, for tensors on the CPU. With a device, batches are copied to it.
///
/// >>> loader = sv.nn.DataLoader((sv.arange(6), sv.arange(6) * 10), batch_size=4, shuffle=True, seed=1)
/// >>> [(x.tolist(), y.tolist()) for x, y in loader]
/// [([2, 5, 4, 1], [20, 50, 40, 10]), ([3, 0], [30, 0])]
/// >>> len(loader), loader.epoch
/// (2, 1)
#[pyclass(name = "DataLoader", module = "selvedge.nn", frozen)]
pub struct PyDataLoader {
    position: Mutex<Position>,
    is_tuple: bool,
    device: Option<Device>,
}

struct Position {
    loader: DataLoader,
    /// The number of the newest iterator.
    iterator: u64,
    /// Set if the next iterator continues within the epoch.
    is_resumed: bool,
}

impl PyDataLoader {
    /// Works on the loader while other threads of Python run.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Position) -> T + Send) -> T {
        py.detach(|| work(&mut self.position.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn state(&self, py: Python<'_>) -> DataLoaderState {
        self.with(py, |position| position.loader.state())
    }
}

#[pymethods]
impl PyDataLoader {
    #[new]
    #[pyo3(
        signature = (data, batch_size=InRange(1), shuffle=false, *, num_workers=InRange(0), drop_last=false, seed=InRange(0), prefetch_factor=InRange(2), device=None),
        text_signature = "(data, batch_size=1, shuffle=False, *, num_workers=0, drop_last=False, seed=0, prefetch_factor=2, device=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "the options of a loader")]
    fn new(
        data: &Bound<'_, PyAny>,
        batch_size: InRange<usize>,
        shuffle: bool,
        num_workers: InRange<usize>,
        drop_last: bool,
        seed: InRange<u64>,
        prefetch_factor: InRange<usize>,
        device: Option<DeviceArgument>,
    ) -> Result<PyDataLoader> {
        let is_tuple = data.is_instance_of::<PyTuple>() || data.is_instance_of::<PyList>();
        let tensors: Vec<Tensor> = if is_tuple {
            let parts = data.try_iter()?.map(|part| Ok(part?.extract::<TensorArgument>()?.0));
            parts.collect::<PyResult<_>>()?
        } else {
            vec![data.extract::<TensorArgument>()?.0]
        };
        let options = DataLoaderOptions {
            batch_size: batch_size.0,
            is_shuffled: shuffle,
            seed: seed.0,
            drop_last,
            workers: num_workers.0,
            prefetch: prefetch_factor.0,
        };
        let loader = DataLoader::new(tensors, options)?;
        let position = Mutex::new(Position { loader, iterator: 0, is_resumed: false });
        Ok(PyDataLoader { position, is_tuple, device: device.map(|device| device.0) })
    }

    /// Begins the next epoch, or continues within one after `load_state_dict`.
    fn __iter__(slf: &Bound<'_, Self>) -> PyDataLoaderIterator {
        let iterator = slf.get().with(slf.py(), |position| {
            let state = position.loader.state();
            if !std::mem::take(&mut position.is_resumed) && state.batch > 0 {
                position.loader.set_epoch(state.epoch.wrapping_add(1));
            }
            position.iterator += 1;
            position.iterator
        });
        PyDataLoaderIterator { loader: slf.clone().unbind(), iterator, is_ended: Mutex::new(false) }
    }

    /// The batches of an epoch.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.with(py, |position| position.loader.batches() as usize)
    }

    /// The epoch of the next batch, from 0.
    #[getter]
    fn epoch(&self, py: Python<'_>) -> u64 {
        self.state(py).epoch
    }

    /// The rows of a batch.
    #[getter]
    fn batch_size(&self, py: Python<'_>) -> u64 {
        self.state(py).batch_size
    }

    /// The position: the seed, the epoch and its next batch, with the numbers that the data must have.
    ///
    /// >>> loader = sv.nn.DataLoader(sv.arange(6), batch_size=2)
    /// >>> first = next(iter(loader))
    /// >>> other = sv.nn.DataLoader(sv.arange(6), batch_size=2)
    /// >>> other.load_state_dict(loader.state_dict())
    /// >>> [batch.tolist() for batch in other]
    /// [[2, 3], [4, 5]]
    fn state_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let state = self.state(py);
        let entries = PyDict::new(py);
        for (name, number) in [
            ("seed", state.seed),
            ("epoch", state.epoch),
            ("batch", state.batch),
            ("rows", state.rows),
            ("batch_size", state.batch_size),
        ] {
            entries.set_item(name, number)?;
        }
        entries.set_item("shuffle", state.is_shuffled)?;
        entries.set_item("drop_last", state.drop_last)?;
        Ok(entries)
    }

    /// Continues at a position of `state_dict`: the next iteration begins with its next batch.
    fn load_state_dict(&self, py: Python<'_>, state_dict: &Bound<'_, PyDict>) -> Result<()> {
        let entry = |name: &str| -> Result<Bound<'_, PyAny>> {
            let missing =
                || invalid("DataLoader", format!("a state without \"{name}\""), "one of state_dict");
            Ok(state_dict.get_item(name)?.ok_or_else(missing)?)
        };
        let number = |name: &str| -> Result<u64> { Ok(entry(name)?.extract::<InRange<u64>>()?.0) };
        let flag = |name: &'static str| -> Result<bool> {
            let value = entry(name)?;
            let found = || format!("{} for \"{name}\"", type_name(&value));
            Ok(value.extract::<bool>().map_err(|_| wrong_type("DataLoader", found(), "a bool"))?)
        };
        let state = DataLoaderState {
            seed: number("seed")?,
            epoch: number("epoch")?,
            batch: number("batch")?,
            rows: number("rows")?,
            batch_size: number("batch_size")?,
            is_shuffled: flag("shuffle")?,
            drop_last: flag("drop_last")?,
        };
        self.with(py, |position| {
            position.loader.set_state(&state)?;
            position.is_resumed = true;
            // Iterators from before have another position.
            position.iterator += 1;
            Ok(())
        })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = self.state(py);
        format!("DataLoader(rows={}, batch_size={}, epoch={})", state.rows, state.batch_size, state.epoch)
    }
}

/// An iterator over an epoch.
#[pyclass(module = "selvedge.nn", frozen)]
pub struct PyDataLoaderIterator {
    loader: Py<PyDataLoader>,
    iterator: u64,
    is_ended: Mutex<bool>,
}

#[pymethods]
impl PyDataLoaderIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        py.check_signals()?;
        let loader = self.loader.get();
        let batch = loader.with(py, |position| {
            let mut is_ended = self.is_ended.lock().unwrap_or_else(PoisonError::into_inner);
            if *is_ended {
                return Ok(None);
            }
            if position.iterator != self.iterator {
                let found = "an iterator of a loader that began anew";
                return Err(invalid("DataLoader", found, "the newest iterator, or a loader for each"));
            }
            let Some(batch) = position.loader.next_batch()? else {
                *is_ended = true;
                return Ok(None);
            };
            let moved = |tensor: Tensor| match &loader.device {
                Some(device) => tensor.to(device),
                None => Ok(tensor),
            };
            batch.into_iter().map(moved).collect::<selvedge::Result<Vec<Tensor>>>().map(Some)
        })?;
        let Some(batch) = batch else { return Ok(None) };
        let mut tensors: Vec<PyTensor> = batch.into_iter().map(PyTensor::from).collect();
        Ok(Some(match tensors.pop() {
            Some(tensor) if !loader.is_tuple => tensor.into_pyobject(py)?.into_any(),
            last => {
                tensors.extend(last);
                PyTuple::new(py, tensors)?.into_any()
            }
        }))
    }
}
