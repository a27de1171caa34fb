//! Launches: their shape, and the driver call.
//!
//! Arguments are checked once for each kernel and tuple type, and the result is cached: a later launch compares one
//! pointer. A list made at run time is checked at each launch. A typed launch then costs a check of the current
//! context, one compare per buffer, and the driver's call.

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::argument::{KernelArguments, LaunchTarget};
use super::context::stream_call;
use super::function::{Function, FunctionState};
use super::graph::capture::{self, CaptureRoute};
use super::image::{ArgumentType, Declaration};
use super::memory::Access;
use super::stream::{Stream, StreamState};
use super::stream_work::{StreamWork, WorkKind};
use crate::error::{Error, Result};
use crate::sys::driver::{
    CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchAttributeValue_union__bindgen_ty_1, CUlaunchConfig, CUstream,
};

/// Extents in x, y and z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dim3 {
    /// The fastest-varying extent.
    pub x: u32,
    /// The second extent.
    pub y: u32,
    /// The slowest-varying extent.
    pub z: u32,
}

impl Dim3 {
    /// The product of the extents. Launch limits keep it far from overflow.
    #[inline]
    pub fn count(self) -> u64 {
        (u64::from(self.x) * u64::from(self.y)).saturating_mul(u64::from(self.z))
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Dim3 {
        Dim3 { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Dim3 {
        Dim3 { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Dim3 {
        Dim3 { x, y, z }
    }
}

impl From<[u32; 3]> for Dim3 {
    fn from([x, y, z]: [u32; 3]) -> Dim3 {
        Dim3 { x, y, z }
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}x{}", self.x, self.y, self.z)
    }
}

/// The shape and the attributes of a launch.
///
/// ```
/// use selvedge::driver::LaunchConfig;
/// let config = LaunchConfig::new((16, 16), 256).shared(1024);
/// assert_eq!(config.grid.count(), 256);
/// assert_eq!(LaunchConfig::for_elements(1000).grid.x, 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks in the grid.
    pub grid: Dim3,
    /// Threads per block.
    pub block: Dim3,
    /// Dynamic shared memory per block, in bytes. The launch opts the kernel in to more than 48 KB.
    pub shared: u32,
    cluster: Option<Dim3>,
    cooperative: bool,
    programmatic_dependent: bool,
    priority: Option<i32>,
}

impl LaunchConfig {
    /// A grid of blocks.
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> LaunchConfig {
        LaunchConfig {
            grid: grid.into(),
            block: block.into(),
            shared: 0,
            cluster: None,
            cooperative: false,
            programmatic_dependent: false,
            priority: None,
        }
    }

    /// One thread for each of `count` elements, in blocks of 256. The kernel must skip positions past the end. More
    /// elements than a grid has threads (5·10¹¹) need a kernel that loops.
    pub fn for_elements(count: usize) -> LaunchConfig {
        const BLOCK: usize = 256;
        let blocks = count.div_ceil(BLOCK).clamp(1, i32::MAX as usize);
        LaunchConfig::new(blocks as u32, BLOCK as u32)
    }

    /// Sets the dynamic shared memory per block, in bytes.
    pub fn shared(mut self, bytes: u32) -> LaunchConfig {
        self.shared = bytes;
        self
    }

    /// Groups blocks in clusters of this shape, which must divide the grid (compute capability 9.0 and up).
    pub fn cluster(mut self, cluster: impl Into<Dim3>) -> LaunchConfig {
        self.cluster = Some(cluster.into());
        self
    }

    /// Launches all blocks at once, so that they may wait for each other.
    pub fn cooperative(mut self) -> LaunchConfig {
        self.cooperative = true;
        self
    }

    /// Lets the kernel start before the preceding kernel of the stream has ended (programmatic dependent launch): once
    /// all blocks of that kernel have ended or executed `griddepcontrol.launch_dependents`. Every block of this kernel
    /// waits for its end by `griddepcontrol.wait`.
    ///
    /// The attribute is a permission and never fails. The launch is an ordinary one, which the kernel cannot detect, on
    /// devices before compute capability 9.0, with drivers before CUDA 11.8, in a capture with drivers before CUDA
    /// 12.3, and in the body of [`run_if`](Stream::run_if) or [`run_while`](Stream::run_while).
    pub fn programmatic_dependent(mut self) -> LaunchConfig {
        self.programmatic_dependent = true;
        self
    }

    /// Sets a priority that replaces the stream's.
    pub fn priority(mut self, priority: i32) -> LaunchConfig {
        self.priority = Some(priority);
        self
    }

    /// The same launch without programmatic dependence.
    pub(super) fn in_order(mut self) -> LaunchConfig {
        self.programmatic_dependent = false;
        self
    }

    /// The launch of this kernel in a trace.
    #[cold]
    fn traced(&self, kernel: &'static str) -> StreamWork {
        let extents = |dim: Dim3| [dim.x, dim.y, dim.z];
        let mut arguments = vec![
            ("grid", extents(self.grid).into()),
            ("block", extents(self.block).into()),
            ("shared_bytes", self.shared.into()),
        ];
        if let Some(cluster) = self.cluster {
            arguments.push(("cluster", extents(cluster).into()));
        }
        StreamWork { kind: WorkKind::Kernel, name: kernel.into(), arguments }
    }

    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.cluster.is_none() && !self.cooperative && !self.programmatic_dependent && self.priority.is_none()
    }

    /// Calls `use_it` with the driver's launch structure, which lives as long as that call.
    pub(crate) fn with_raw<R>(&self, stream: CUstream, use_it: impl FnOnce(*const CUlaunchConfig) -> R) -> R {
        let mut attributes = [CUlaunchAttribute::default(); 4];
        let mut count = 0;
        let mut push = |id, value| {
            attributes[count].id = id;
            attributes[count].value = value;
            count += 1;
        };
        if let Some(cluster) = self.cluster {
            let (x, y, z) = (cluster.x, cluster.y, cluster.z);
            let dim = CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            push(id, CUlaunchAttributeValue { clusterDim: dim });
        }
        if self.cooperative {
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            push(id, CUlaunchAttributeValue { cooperative: 1 });
        }
        if self.programmatic_dependent {
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            push(id, CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 });
        }
        if let Some(priority) = self.priority {
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
            push(id, CUlaunchAttributeValue { priority });
        }
        let raw = CUlaunchConfig {
            gridDimX: self.grid.x,
            gridDimY: self.grid.y,
            gridDimZ: self.grid.z,
            blockDimX: self.block.x,
            blockDimY: self.block.y,
            blockDimZ: self.block.z,
            sharedMemBytes: self.shared,
            hStream: stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: count as u32,
        };
        use_it(&raw)
    }
}

impl Function {
    /// Launches the kernel on a stream with a tuple of arguments: `&buffer` to read, `&mut buffer` to write, scalars,
    /// and [`ByValue`](super::ByValue) structs. Alternatively, pass a list of [`Argument`](super::Argument)s made at
    /// run time.
    ///
    /// The stream first waits for all earlier uses of the buffers, on any stream. The call returns when the launch is
    /// queued. The next call that waits reports a fault of the kernel.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`], [`Error::ArgumentMismatch`], [`Error::LaunchLimit`], [`Error::DeviceMismatch`], the
    /// driver's errors, or [`Error::ContextLost`]. Nothing is then launched.
    ///
    /// # Safety
    ///
    /// - Each buffer has the element type and at least the length that the kernel uses. The type is checked if the
    ///   kernel has a C++ name, which gives the pointee of each parameter (see
    ///   [`Declaration`](super::image::Declaration)).
    /// - The kernel writes only to memory passed as `&mut`. The caller orders its uses of a
    ///   [`RawAddress`](super::RawAddress) and of addresses that it finds in memory.
    /// - A kernel launched with [`programmatic_dependent`](LaunchConfig::programmatic_dependent) touches no memory
    ///   before its `griddepcontrol.wait`, because the preceding kernel still runs. Every thread that touches memory
    ///   waits. At least one thread of every block waits, so that work ordered behind this kernel is also ordered
    ///   behind the preceding ones.
    /// - If neither image nor driver gives the parameters ([`Function::parameters`] is `None`), the arguments fit them.
    /// - Two threads do not launch one list at the same time if it has an argument to write.
    #[inline]
    pub unsafe fn launch<A: KernelArguments>(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: A,
    ) -> Result<()> {
        self.0.check(&arguments)?;
        self.check_config(&config)?;
        // SAFETY: the arguments fit the parameters and are registered before the launch; the caller vouches for the
        // rest.
        unsafe {
            self.issue(
                stream.state(),
                &config,
                |target| arguments.enter(target),
                arguments.pointers().as_mut(),
            )
        }
    }

    /// Checks that arguments of this type fit the kernel, as its first launch with them does.
    ///
    /// # Errors
    ///
    /// [`Error::ArgumentCount`] or [`Error::ArgumentMismatch`].
    pub fn accepts<A: KernelArguments>(&self) -> Result<()> {
        A::SIGNATURE.map_or(Ok(()), |signature| self.0.check_types(signature.iter().copied()))
    }

    /// # Safety
    ///
    /// `pointers` are to values that fit the kernel's parameters. `enter` orders the stream behind the uses of their
    /// memory. [`check_config`](Self::check_config) has accepted the launch.
    #[inline]
    pub(super) unsafe fn issue(
        &self,
        stream: &Arc<StreamState>,
        config: &LaunchConfig,
        enter: impl Fn(LaunchTarget<'_>) -> Result<()>,
        pointers: &mut [*mut c_void],
    ) -> Result<()> {
        let function = &self.0;
        if !std::ptr::eq(function.module.device, stream.device) {
            return Err(self.wrong_device(stream));
        }
        // Waits bind contexts of their own, so they come before the binding of the launch.
        join_capture(stream, &enter)?;
        function.enter(stream)?;
        enter(LaunchTarget::stream(stream))?;
        stream.set_last_kernel(function.name);
        // SAFETY: the caller vouches for the arguments; function and stream are live and of one context.
        let call = || unsafe {
            if config.is_plain() {
                function.launch_plainly(stream, config, pointers)
            } else {
                function.launch_with_attributes(stream, config, pointers)
            }
        };
        stream.submit_work(|| config.traced(function.name.as_str()), call).map(drop)
    }

    #[cold]
    fn wrong_device(&self, stream: &StreamState) -> Error {
        // One of the two may be from before a reset.
        if let Err(error) = self.0.module.device.check_alive().and(stream.device.check_alive()) {
            return error;
        }
        Error::DeviceMismatch {
            operation: "a launch",
            left: format!("kernel '{}' of device {}", self.name(), self.0.module.device.ordinal),
            right: stream.to_string(),
        }
    }
}

impl Stream {
    /// Issues work on the stream by other means, such as another library, in order with all other work.
    ///
    /// The call runs `work` with the driver's `CUstream` and the device's context current. `arguments` name the memory:
    /// `&buffer` if the work reads it, `&mut buffer` if it writes it. `work` must queue its operations and not wait for
    /// them.
    ///
    /// # Errors
    ///
    /// The error of `work`, memory that the device cannot reach, the driver's errors, or [`Error::ContextLost`].
    ///
    /// # Safety
    ///
    /// The work stays inside the buffers, writes only to those passed as `&mut`, and uses the given stream alone.
    pub unsafe fn with_raw<A: KernelArguments>(
        &self,
        arguments: A,
        work: impl FnOnce(*mut c_void) -> Result<()>,
    ) -> Result<()> {
        let stream = self.state();
        join_capture(stream, |target| arguments.enter(target))?;
        arguments.enter(LaunchTarget::stream(stream))?;
        stream.submit(|| work(stream.raw.into_void()))
    }
}

/// Returns whether a launch on the stream may overlap the preceding kernel. The caller is counted in flight.
fn may_overlap(stream: &StreamState) -> bool {
    /// The first driver that knows the attribute.
    const CUDA_11_8: i32 = 11080;
    let device = stream.device;
    let is_known = device.capability >= (9, 0) && device.api.version() >= CUDA_11_8;
    // In a graph such a launch is an edge of its own kind, supported by drivers that report edge kinds. CUDA does not
    // document it for the body of a conditional node.
    is_known && (!stream.slot.is_open() || device.api.cuGraphGetEdges().is_ok() && !stream.slot.is_of_part())
}

/// Adds the stream to this thread's capture if an argument makes the launch a part of it.
#[inline]
fn join_capture(stream: &Arc<StreamState>, enter: impl Fn(LaunchTarget<'_>) -> Result<()>) -> Result<()> {
    if !capture::any() {
        return Ok(());
    }
    let named = Mutex::new(Vec::new());
    enter(LaunchTarget::graph(stream.device, &named))?;
    let named = named.into_inner().unwrap_or_else(PoisonError::into_inner);
    capture::join_for(stream, named.iter().map(|(allocation, access)| (allocation, *access)))
}

impl FunctionState {
    /// Registers the stream as a user of the kernel's code. A graph holds the kernel.
    #[inline]
    fn enter(self: &Arc<Self>, stream: &Arc<StreamState>) -> Result<()> {
        if capture::any()
            && let CaptureRoute::Captured = capture::enter_function(stream, self)
        {
            return Ok(());
        }
        self.module.usage.enter(stream, Access::Read)
    }

    /// # Safety
    ///
    /// As [`Function::issue`].
    #[inline]
    unsafe fn launch_plainly(
        &self,
        stream: &StreamState,
        config: &LaunchConfig,
        pointers: &mut [*mut c_void],
    ) -> Result<()> {
        let (grid, block) = (config.grid, config.block);
        // SAFETY: the caller vouches for the arguments; function and stream are live and of one context.
        unsafe {
            stream_call!(
                stream,
                cuLaunchKernel(
                    self.raw.0,
                    grid.x,
                    grid.y,
                    grid.z,
                    block.x,
                    block.y,
                    block.z,
                    config.shared,
                    stream.raw.0,
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            )
        }
    }

    /// # Safety
    ///
    /// As [`Function::issue`].
    #[inline(never)]
    unsafe fn launch_with_attributes(
        &self,
        stream: &StreamState,
        config: &LaunchConfig,
        pointers: &mut [*mut c_void],
    ) -> Result<()> {
        let config = if may_overlap(stream) { config } else { &config.in_order() };
        if config.is_plain() {
            // SAFETY: as here.
            return unsafe { self.launch_plainly(stream, config, pointers) };
        }
        let only_cooperative = LaunchConfig { cooperative: false, ..*config }.is_plain();
        if only_cooperative && stream.device.api.cuLaunchKernelEx().is_err() {
            let (grid, block) = (config.grid, config.block);
            // SAFETY: the caller vouches for the arguments. Drivers before CUDA 11.6 have only this call.
            return unsafe {
                stream_call!(
                    stream,
                    cuLaunchCooperativeKernel(
                        self.raw.0,
                        grid.x,
                        grid.y,
                        grid.z,
                        block.x,
                        block.y,
                        block.z,
                        config.shared,
                        stream.raw.0,
                        pointers.as_mut_ptr(),
                    )
                )
            };
        }
        config.with_raw(stream.raw.0, |raw| {
            // SAFETY: the caller vouches for the arguments.
            unsafe {
                stream_call!(
                    stream,
                    cuLaunchKernelEx(raw, self.raw.0, pointers.as_mut_ptr(), std::ptr::null_mut())
                )
            }
        })
    }

    /// Checks the arguments against the parameters, unless their type was the last to pass.
    #[inline]
    pub(crate) fn check<A: KernelArguments>(&self, arguments: &A) -> Result<()> {
        let Some(signature) = A::SIGNATURE else { return self.check_types(arguments.types()) };
        let checked: *mut () = signature.as_ptr().cast_mut().cast();
        if self.checked.load(Ordering::Relaxed) == checked {
            return Ok(());
        }
        self.check_types(signature.iter().copied())?;
        self.checked.store(checked, Ordering::Relaxed);
        Ok(())
    }

    #[cold]
    pub(super) fn check_types(&self, arguments: impl ExactSizeIterator<Item = ArgumentType>) -> Result<()> {
        let name = self.name.as_str();
        let found = arguments.len();
        let declared = self.declaration.as_ref().map(Declaration::len);
        let wanted = self.parameters.as_ref().map(Vec::len).or(declared).unwrap_or(found);
        if wanted != found {
            return Err(Error::ArgumentCount { kernel: name.to_owned(), wanted, found });
        }
        for (index, argument) in arguments.enumerate() {
            if let Some(parameter) = self.parameters.as_ref().and_then(|all| all.get(index)) {
                parameter.check(name, index, argument.kind, argument.size)?;
            }
            if let Some(declaration) = &self.declaration {
                declaration.check(name, index, argument)?;
            }
        }
        Ok(())
    }
}
