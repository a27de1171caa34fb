//! Tensors out of `.npy`, `.npz` and safetensors files and into them.
//!
//! To a CUDA device the elements go in chunks: one is read into page-locked memory while the one before it is copied, so a
//! file of any size needs little host memory. Invariants: a file is trusted as little as `io` trusts it, and nothing is
//! allocated that the file does not hold.

use std::collections::VecDeque;
use std::path::Path;

use super::device::{Device, stream};
use super::kernel::Output;
use super::storage::{Memory, MemoryMut, part};
use super::tensor::Tensor;
use crate::driver::{DeviceBuffer, PinnedBuffer, Transfer};
use crate::error::{Error, Result};
use crate::io::npy::{Contents, NpyFile, NpyWriter};
use crate::io::npz::{NpzFile, NpzWriter};
use crate::io::safetensors::{SafetensorsArray, SafetensorsFile, SafetensorsWriter};
use crate::types::DType;

/// Bytes that are read or written at a time, between two reports of progress.
const CHUNK: usize = 16 << 20;
/// Bytes that threads read into page-locked memory at a time: a wait for all of them costs a tenth of the reads.
const UPLOADED_CHUNK: usize = 32 << 20;
/// Bytes of a mapped file that are copied to a device at a time: each copy starts threads, which take a page fault for each page.
const MAPPED_CHUNK: usize = 256 << 20;
/// Chunks that are copied at a time.
const AHEAD: usize = 3;

/// The copies to a device that are on their way. Tensors that share it are read while the ones before them are copied, in a bounded amount of
/// page-locked memory.
#[derive(Default)]
pub(crate) struct Uploads(VecDeque<Transfer<u8>>);

impl Uploads {
    /// Returns page-locked memory, after a wait for the oldest copy if as many are on their way as may be.
    fn memory(&mut self, device: &crate::driver::Device, length: usize) -> Result<PinnedBuffer<u8>> {
        let known = match self.0.len() {
            AHEAD => self.0.pop_front().map(Transfer::wait).transpose()?,
            _ => None,
        };
        match known.filter(|known| known.len() == length) {
            Some(known) => Ok(known),
            None => device.pinned(length),
        }
    }

    /// Waits for all copies.
    ///
    /// # Errors
    ///
    /// Errors of the copies.
    pub fn finish(self) -> Result<()> {
        self.0.into_iter().try_for_each(|transfer| transfer.wait().map(drop))
    }
}

/// Reads the next bytes.
type Read<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<()>;
/// A callback that gets the bytes done and the total.
type Progress<'a> = &'a mut dyn FnMut(u64, u64);

impl Tensor {
    /// The array in an `.npy` file. A Fortran-order array becomes a tensor with column-major strides.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let path = std::env::temp_dir().join(format!("selvedge-doc-tensor-{}.npy", std::process::id()));
    /// Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &Device::cpu())?.write_npy(&path)?;
    /// let x = Tensor::read_npy(&path, &Device::best())?;
    /// assert_eq!((x.to_vec::<f32>()?, x.rank()), (vec![1.0, 2.0, 3.0, 4.0], 2));
    /// # let _ = std::fs::remove_file(&path);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`NpyFile::open`] and [`read_npy_file`](Self::read_npy_file).
    pub fn read_npy(path: impl AsRef<Path>, device: &Device) -> Result<Tensor> {
        Tensor::read_npy_file(&mut NpyFile::open(path)?, device, &mut |_, _| {})
    }

    /// The array in a file that was opened, whose dtype may have been [named](NpyFile::with_dtype); `progress` is called with
    /// the bytes that were read and all bytes, every few megabytes.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the file cannot be read or has become shorter, [`Contents::dtype`]'s, and as
    /// [`zeros`](Self::zeros).
    pub fn read_npy_file(
        file: &mut NpyFile,
        device: &Device,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tensor> {
        let fresh = Reading::of(file, device)?;
        let mut elements = file.elements()?;
        fresh.fill(&mut |bytes| elements.read(bytes), progress)
    }

    /// As [`read_npy_file`](Self::read_npy_file), through the file's own pages, without a read of them: what is in the
    /// system's cache goes to the device from there.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::File`] where the system cannot map the file.
    ///
    /// # Safety
    ///
    /// As [`NpyFile::map`]: nobody writes the file or makes it shorter meanwhile.
    pub unsafe fn map_npy_file(
        file: &NpyFile,
        device: &Device,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tensor> {
        let reading = Reading::of(file, device)?;
        // SAFETY: the caller's word.
        let pages = unsafe { file.map()? };
        reading.copy(&pages, progress)
    }

    /// Writes an `.npy` file, row-major, replacing what the path holds.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`] (the path then keeps what it held), and what happened on the device
    /// before.
    pub fn write_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_npy_with(path, &mut |_, _| {})
    }

    /// As [`write_npy`](Self::write_npy); `progress` is called as [`read_npy_file`](Self::read_npy_file) does.
    ///
    /// # Errors
    ///
    /// As [`write_npy`](Self::write_npy).
    pub fn write_npy_with(&self, path: impl AsRef<Path>, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        // A device's errors come before anything is replaced.
        let dense = self.contiguous()?;
        let mut file = NpyWriter::create(path, self.dtype(), self.shape())?;
        dense.for_each_chunk(&mut |chunk| file.write(chunk), progress)?;
        file.finish()
    }

    /// Reads every array of an `.npz` file as `(name, tensor)`, in the file's order.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let path = std::env::temp_dir().join(format!("selvedge-doc-tensor-{}.npz", std::process::id()));
    /// let (cpu, best) = (Device::cpu(), Device::best());
    /// let (x, y) = (Tensor::new([1i32, 2], &cpu)?, Tensor::new(0.5f64, &best)?);
    /// Tensor::write_npz(&path, &[("x", &x), ("y", &y)])?;
    /// let arrays = Tensor::read_npz(&path, &best)?;
    /// assert_eq!((arrays[1].0.as_str(), arrays[1].1.item::<f64>()?), ("y", 0.5));
    /// # let _ = std::fs::remove_file(&path);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`NpzFile::open`] and [`NpzFile::array`], and as [`zeros`](Self::zeros). An array of 8-bit floats has to be read
    /// by itself, with its dtype named.
    pub fn read_npz(path: impl AsRef<Path>, device: &Device) -> Result<Vec<(String, Tensor)>> {
        let mut file = NpzFile::open(path)?;
        let mut arrays = Vec::new();
        for name in file.names() {
            let mut array = file.array(&name)?;
            let reading = Reading::of(&array, device)?;
            let tensor = reading.fill(&mut |bytes| array.read_bytes(bytes), &mut |_, _| {})?;
            drop(array);
            arrays.push((name, tensor));
        }
        Ok(arrays)
    }

    /// Writes arrays with their names into an `.npz` file, without compression, replacing what the path holds.
    ///
    /// # Errors
    ///
    /// [`Error::FileNotWritten`], [`Error::InvalidArgument`] for two arrays of one name or a name that is no
    /// file's, and what happened on a device before.
    pub fn write_npz(path: impl AsRef<Path>, arrays: &[(&str, &Tensor)]) -> Result<()> {
        write_archive(NpzWriter::create(path)?, arrays)
    }

    /// As [`write_npz`](Self::write_npz), compressed; NumPy's `savez_compressed`.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn write_npz_compressed(path: impl AsRef<Path>, arrays: &[(&str, &Tensor)]) -> Result<()> {
        write_archive(NpzWriter::compressed(path)?, arrays)
    }

    /// Reads every tensor of a safetensors file, or of the files of a `model.safetensors.index.json`, as
    /// `(name, tensor)`, in the file's order.
    ///
    /// ```
    /// use selvedge::tensor::{Device, Tensor};
    /// let path = std::env::temp_dir().join(format!("selvedge-doc-tensor-{}.safetensors", std::process::id()));
    /// let weight = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]], &Device::best())?;
    /// Tensor::write_safetensors(&path, &[("weight", &weight)], &[("format", "pt")])?;
    /// let tensors = Tensor::read_safetensors(&path, &Device::best())?;
    /// assert_eq!((tensors[0].0.as_str(), tensors[0].1.to_vec::<f32>()?), ("weight", vec![1.0, 2.0, 3.0, 4.0]));
    /// # let _ = std::fs::remove_file(&path);
    /// # Ok::<(), selvedge::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`SafetensorsFile::open`] and [`read_safetensors_tensor`](Self::read_safetensors_tensor).
    pub fn read_safetensors(path: impl AsRef<Path>, device: &Device) -> Result<Vec<(String, Tensor)>> {
        Tensor::read_safetensors_with(path, device, &mut |_, _| {})
    }

    /// As [`read_safetensors`](Self::read_safetensors); `progress` is called as [`read_npy_file`](Self::read_npy_file) does,
    /// with the bytes of all tensors.
    ///
    /// # Errors
    ///
    /// As [`read_safetensors`](Self::read_safetensors).
    pub fn read_safetensors_with(
        path: impl AsRef<Path>,
        device: &Device,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<(String, Tensor)>> {
        let mut file = SafetensorsFile::open(path)?;
        let names = file.names().to_vec();
        let (mut total, mut before) = (0, 0);
        for name in &names {
            total += file.array(name)?.byte_count() as u64;
        }
        let (mut tensors, mut uploads) = (Vec::with_capacity(names.len()), Uploads::default());
        for name in names {
            let mut report = |done: u64, _: u64| progress(before + done, total);
            let tensor =
                Tensor::read_safetensors_tensor_through(&mut uploads, &mut file, &name, device, &mut report)?;
            before += (tensor.count() * tensor.dtype().size()) as u64;
            tensors.push((name, tensor));
        }
        uploads.finish()?;
        Ok(tensors)
    }

    /// Reads one tensor of an open safetensors file by name.
    ///
    /// # Errors
    ///
    /// As [`SafetensorsFile::array`], [`SafetensorsArray::dtype`], [`SafetensorsArray::read_bytes`] and
    /// [`zeros`](Self::zeros).
    pub fn read_safetensors_tensor(
        file: &mut SafetensorsFile,
        name: &str,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::read_safetensors_tensor_with(file, name, device, &mut |_, _| {})
    }

    /// As [`read_safetensors_tensor`](Self::read_safetensors_tensor); `progress` is called as
    /// [`read_npy_file`](Self::read_npy_file) does.
    ///
    /// # Errors
    ///
    /// As [`read_safetensors_tensor`](Self::read_safetensors_tensor).
    pub fn read_safetensors_tensor_with(
        file: &mut SafetensorsFile,
        name: &str,
        device: &Device,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tensor> {
        let mut array = file.array(name)?;
        let reading = Reading::row_major(&array, device)?;
        reading.fill(&mut |bytes| array.read_bytes(bytes), progress)
    }

    /// As [`read_safetensors_tensor_with`](Self::read_safetensors_tensor_with), without a wait for the copies to a device.
    pub(crate) fn read_safetensors_tensor_through(
        uploads: &mut Uploads,
        file: &mut SafetensorsFile,
        name: &str,
        device: &Device,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tensor> {
        let mut array = file.array(name)?;
        let reading = Reading::row_major(&array, device)?;
        reading.fill_through(uploads, &mut |bytes| array.read_bytes(bytes), progress)
    }

    /// As [`read_safetensors_tensor`](Self::read_safetensors_tensor), through the file's own pages, without a copy of
    /// them. For a CUDA device, threads read them into page-locked memory, which takes half the time of their page faults.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::File`] where the system cannot map the file.
    ///
    /// # Safety
    ///
    /// As [`NpyFile::map`]: nobody writes the file or makes it shorter meanwhile.
    pub unsafe fn map_safetensors_tensor(
        file: &mut SafetensorsFile,
        name: &str,
        device: &Device,
    ) -> Result<Tensor> {
        // SAFETY: the caller's word.
        unsafe { Tensor::map_safetensors_tensor_with(file, name, device, &mut |_, _| {}) }
    }

    /// As [`map_safetensors_tensor`](Self::map_safetensors_tensor); `progress` is called as
    /// [`read_npy_file`](Self::read_npy_file) does.
    ///
    /// # Errors
    ///
    /// As [`map_safetensors_tensor`](Self::map_safetensors_tensor).
    ///
    /// # Safety
    ///
    /// As [`map_safetensors_tensor`](Self::map_safetensors_tensor).
    pub unsafe fn map_safetensors_tensor_with(
        file: &mut SafetensorsFile,
        name: &str,
        device: &Device,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Tensor> {
        if !device.is_cpu() {
            return Tensor::read_safetensors_tensor_with(file, name, device, progress);
        }
        let array = file.array(name)?;
        let reading = Reading::row_major(&array, device)?;
        // SAFETY: the caller's word.
        let pages = unsafe { array.map()? };
        reading.copy(&pages, progress)
    }

    /// Writes tensors with their names, and metadata, into a safetensors file. The file gets its name when it is whole; until
    /// then the path keeps what it holds.
    ///
    /// # Errors
    ///
    /// As [`SafetensorsWriter::create`], and what happened on a device before.
    pub fn write_safetensors(
        path: impl AsRef<Path>,
        tensors: &[(&str, &Tensor)],
        metadata: &[(&str, &str)],
    ) -> Result<()> {
        Tensor::write_safetensors_with(path, tensors, metadata, &mut |_, _| {})
    }

    /// As [`write_safetensors`](Self::write_safetensors); `progress` is called as [`read_npy_file`](Self::read_npy_file)
    /// does, with the bytes of all tensors.
    ///
    /// # Errors
    ///
    /// As [`write_safetensors`](Self::write_safetensors).
    pub fn write_safetensors_with(
        path: impl AsRef<Path>,
        tensors: &[(&str, &Tensor)],
        metadata: &[(&str, &str)],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let listed: Vec<(&str, DType, &[usize])> =
            tensors.iter().map(|(name, tensor)| (*name, tensor.dtype(), &tensor.shape()[..])).collect();
        let mut file = SafetensorsWriter::create(path, &listed, metadata)?;
        let bytes_of = |tensor: &Tensor| (tensor.count() * tensor.dtype().size()) as u64;
        let (total, mut before) = (tensors.iter().map(|(_, tensor)| bytes_of(tensor)).sum(), 0);
        let mut ordered: Vec<_> = tensors.iter().collect();
        ordered.sort_by_key(|(name, _)| file.offset_of(name));
        for (name, tensor) in ordered {
            let dense = tensor.contiguous()?;
            file.begin(name)?;
            dense.for_each_chunk(&mut |chunk| file.write(chunk), &mut |done, _| {
                progress(before + done, total);
            })?;
            before += bytes_of(tensor);
        }
        file.finish()
    }

    /// Hands out the bytes of a tensor that lies element behind element, in parts.
    fn for_each_chunk(
        &self,
        write: &mut dyn FnMut(&[u8]) -> Result<()>,
        progress: Progress<'_>,
    ) -> Result<()> {
        let size = self.dtype().size();
        let (start, total) = (self.layout().offset() * size, self.count() * size);
        let mut room = Vec::new();
        for done in (0..total).step_by(CHUNK) {
            let length = CHUNK.min(total - done);
            let range = start + done..start + done + length;
            match self.memory() {
                Memory::Host(memory) if self.dtype() != DType::Bool => write(part(memory, range)?)?,
                memory => {
                    room.resize(length, 0);
                    memory.read(range, &mut room)?;
                    if self.dtype() == DType::Bool {
                        room.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
                    }
                    write(&room)?;
                }
            }
            progress((done + length) as u64, total as u64);
        }
        Ok(())
    }
}

fn write_archive(mut file: NpzWriter, arrays: &[(&str, &Tensor)]) -> Result<()> {
    for (name, tensor) in arrays {
        let dense = tensor.contiguous()?;
        file.begin(name, tensor.dtype(), tensor.shape())?;
        dense.for_each_chunk(&mut |chunk| file.write(chunk), &mut |_, _| {})?;
    }
    file.finish()
}

/// A tensor that a file's elements are read into, in the order in which they lie.
struct Reading {
    output: Output,
    column_major: bool,
}

impl Reading {
    fn of(contents: &Contents, device: &Device) -> Result<Reading> {
        let column_major = contents.is_column_major();
        let mut sizes = contents.shape().to_vec();
        if column_major {
            sizes.reverse();
        }
        let output = Output::new(device, contents.dtype()?, &sizes)?;
        Ok(Reading { output, column_major })
    }

    fn row_major(array: &SafetensorsArray<'_>, device: &Device) -> Result<Reading> {
        let output = Output::new(device, array.dtype()?, array.shape())?;
        Ok(Reading { output, column_major: false })
    }

    /// Copies the pages of a mapped file.
    fn copy(mut self, pages: &[u8], progress: Progress<'_>) -> Result<Tensor> {
        let (total, mut done) = (pages.len() as u64, 0);
        let memory = self.output.memory_mut();
        let size = if memory.device().is_cpu() { CHUNK } else { MAPPED_CHUNK };
        for chunk in pages.chunks(size) {
            self.output.memory_mut().write(done, chunk)?;
            done += chunk.len();
            progress(done as u64, total);
        }
        self.finish()
    }

    fn fill(self, read: Read<'_>, progress: Progress<'_>) -> Result<Tensor> {
        let mut uploads = Uploads::default();
        let tensor = self.fill_through(&mut uploads, read, progress)?;
        uploads.finish()?;
        Ok(tensor)
    }

    /// As [`fill`](Self::fill), without a wait for the copies to a device.
    fn fill_through(
        mut self,
        uploads: &mut Uploads,
        read: Read<'_>,
        progress: Progress<'_>,
    ) -> Result<Tensor> {
        match self.output.memory_mut() {
            MemoryMut::Host(memory) => {
                let (total, mut done) = (memory.len() as u64, 0);
                for chunk in memory.chunks_mut(CHUNK) {
                    read(chunk)?;
                    done += chunk.len() as u64;
                    progress(done, total);
                }
            }
            MemoryMut::Cuda(buffer) => upload(buffer, read, progress, uploads)?,
        }
        // Of no elements, there still is an end to be looked at.
        read(&mut [])?;
        self.finish()
    }

    fn finish(self) -> Result<Tensor> {
        let tensor = self.output.into_tensor();
        if !self.column_major {
            return Ok(tensor);
        }
        let axes: Vec<isize> = (0..tensor.rank() as isize).rev().collect();
        Ok(tensor.view_as(tensor.layout().permute(&axes)?))
    }
}

/// Reads chunks into page-locked memory while earlier ones are copied.
fn upload(
    buffer: &mut DeviceBuffer<u8>,
    read: Read<'_>,
    progress: Progress<'_>,
    uploads: &mut Uploads,
) -> Result<()> {
    let device = buffer.device();
    let stream = stream(&Device::from(device))?;
    let total = buffer.len();
    for done in (0..total).step_by(UPLOADED_CHUNK) {
        let length = UPLOADED_CHUNK.min(total - done);
        let mut chunk = uploads.memory(&device, length)?;
        read(&mut chunk)?;
        let mut part = buffer.slice_mut(done..done + length)?;
        uploads.0.push_back(stream.upload_async(chunk, &mut part).map_err(Error::from)?);
        progress((done + length) as u64, total as u64);
    }
    Ok(())
}
