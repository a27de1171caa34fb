//! Kernels of a loaded module: their requirements and the device's limits.

use std::ffi::CString;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::context::{Handle, call};
use super::image::{Declaration, Parameter, ParameterKind};
use super::kernel_name::KernelName;
use super::launch::{Dim3, LaunchConfig};
use super::module::{Module, ModuleState, NOT_FOUND};
use crate::error::{Error, Result};
use crate::sys::driver::{CUfunc_st, CUfunction, CUfunction_attribute};

/// A kernel. Cheap to clone; it keeps its module loaded.
#[derive(Clone)]
pub struct Function(pub(crate) Arc<FunctionState>);

/// The fields that every launch reads come first.
#[repr(C)]
pub(crate) struct FunctionState {
    pub(crate) module: Arc<ModuleState>,
    pub(crate) raw: Handle<CUfunc_st>,
    pub(crate) name: &'static KernelName,
    pub(crate) parameters: Option<Vec<Parameter>>,
    /// The parameter types that the kernel's mangled C++ name declares, if it has one.
    pub(crate) declaration: Option<Declaration>,
    pub(crate) max_threads: u32,
    /// The only block shape that the kernel was compiled for, if it declares one.
    pub(super) required_block: Option<Dim3>,
    static_shared: u32,
    /// Dynamic shared memory that launches may use at present, in bytes.
    pub(crate) dynamic_shared: AtomicU32,
    raise: Mutex<()>,
    /// The signature that last passed the check; see [`Signature`](super::argument::Signature).
    pub(crate) checked: AtomicPtr<()>,
}

/// A kernel's requirements, as the driver reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// Constant memory, in bytes.
    pub constant_bytes: u32,
    /// Local memory per thread (spills and arrays), in bytes.
    pub local_bytes: u32,
    /// The largest number of threads per block.
    pub max_threads_per_block: u32,
    /// The virtual architecture of the PTX that the kernel was assembled from, such as `(6, 0)` for `compute_60`.
    pub ptx_version: (u32, u32),
    /// The architecture of the machine code, such as `(9, 0)`.
    pub binary_version: (u32, u32),
}

impl Module {
    /// Returns the kernel of this name. C++ kernels have mangled names unless they are `extern "C"`.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownName`] with the names of the module's kernels, or the driver's errors.
    pub fn function(&self, name: &str) -> Result<Function> {
        let (module, device) = (&self.0, self.0.device);
        let _bound = device.bind()?;
        let unknown = || Error::UnknownName {
            kind: "kernel",
            wanted: name.to_owned(),
            found: self.function_names().unwrap_or_default(),
        };
        let text = CString::new(name).map_err(|_| unknown())?;
        let mut raw: CUfunction = std::ptr::null_mut();
        // SAFETY: the module is live; the pointer is to a local.
        let status = unsafe { (device.api.cuModuleGetFunction()?)(&mut raw, module.raw.0, text.as_ptr()) };
        // The driver calls an empty name invalid, not unknown.
        if status.0 == NOT_FOUND || (status.0 != 0 && name.is_empty()) {
            return Err(unknown());
        }
        device.check("cuModuleGetFunction", status)?;
        let raw = Handle(raw);
        let attribute = |attribute| read_attribute(module, raw, attribute);
        let max_threads = attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let static_shared = attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let dynamic_shared =
            attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?;
        let known = module.info.kernel(name);
        let mut parameters = match known.and_then(|kernel| kernel.parameters.clone()) {
            Some(parameters) => Some(parameters),
            None => parameters_of(module, raw)?,
        };
        // A name that contradicts the image is ignored.
        let declaration = Declaration::of(name)
            .filter(|declared| parameters.as_ref().is_none_or(|all| all.len() == declared.len()));
        if let (Some(declaration), Some(parameters)) = (&declaration, &mut parameters) {
            declaration.refine(parameters);
        }
        let required_block = known.and_then(|kernel| kernel.required_block).map(Dim3::from);
        Ok(Function(Arc::new(FunctionState {
            module: module.clone(),
            raw,
            name: KernelName::intern(name),
            parameters,
            declaration,
            max_threads,
            required_block,
            static_shared,
            dynamic_shared: AtomicU32::new(dynamic_shared),
            raise: Mutex::new(()),
            checked: AtomicPtr::new(std::ptr::null_mut()),
        })))
    }
}

fn read_attribute(
    module: &ModuleState,
    raw: Handle<CUfunc_st>,
    attribute: CUfunction_attribute,
) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the function is of a live module; the pointer is to a local.
    unsafe { call!(module.device, cuFuncGetAttribute(&mut value, attribute, raw.0))? };
    Ok(u32::try_from(value).unwrap_or(0))
}

/// The sizes and offsets of the parameters as the driver reports them, from CUDA 12.4 on. It does not report their
/// kinds.
fn parameters_of(module: &ModuleState, raw: Handle<CUfunc_st>) -> Result<Option<Vec<Parameter>>> {
    let Ok(get) = module.device.api.cuFuncGetParamInfo() else {
        return Ok(None);
    };
    const INVALID_VALUE: u32 = 1;
    let mut parameters = Vec::new();
    loop {
        let (mut offset, mut size) = (0usize, 0usize);
        // SAFETY: the function is of a live module; the pointers are to locals.
        let status = unsafe { get(raw.0, parameters.len(), &mut offset, &mut size) };
        if status.0 == INVALID_VALUE {
            return Ok(Some(parameters));
        }
        module.device.check("cuFuncGetParamInfo", status)?;
        parameters.push(Parameter { kind: ParameterKind::Unknown, size, offset });
    }
}

impl FunctionState {
    /// Lets launches use this much dynamic shared memory. The driver's default limit is 48 KB.
    #[cold]
    pub(crate) fn raise_dynamic_shared(&self, bytes: u32) -> Result<()> {
        let device = self.module.device;
        let limit = device.limits.shared_opt_in.saturating_sub(self.static_shared);
        if bytes > limit {
            return Err(Error::LaunchLimit {
                what: "dynamic shared memory in bytes",
                found: u64::from(bytes),
                limit: u64::from(limit),
                limit_of: format!("kernel '{}' on device {}", self.name.as_str(), device.ordinal),
            });
        }
        let _one_at_a_time = self.raise.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes <= self.dynamic_shared.load(Ordering::Acquire) {
            return Ok(());
        }
        let _bound = device.bind()?;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // Raise the limit to the maximum at once. The attribute belongs to the driver's function, which other
        // `Function`s share, so a smaller value for one would lower the limit of another.
        // SAFETY: the function is of a live module.
        unsafe { call!(device, cuFuncSetAttribute(self.raw.0, attribute, limit as i32))? };
        self.dynamic_shared.store(limit, Ordering::Release);
        Ok(())
    }

    #[inline]
    pub(crate) fn allow_dynamic_shared(&self, bytes: u32) -> Result<()> {
        if bytes <= self.dynamic_shared.load(Ordering::Acquire) {
            Ok(())
        } else {
            self.raise_dynamic_shared(bytes)
        }
    }
}

impl Function {
    /// The kernel's name.
    pub fn name(&self) -> &'static str {
        self.0.name.as_str()
    }

    /// The module that the kernel belongs to.
    pub fn module(&self) -> Module {
        Module(self.0.module.clone())
    }

    /// The size of each parameter if the image or the driver gives it, and its kind if PTX or a C++ name gives it.
    pub fn parameters(&self) -> Option<&[Parameter]> {
        self.0.parameters.as_deref()
    }

    /// Returns the kernel's requirements.
    ///
    /// # Errors
    ///
    /// The driver's, or [`Error::ContextLost`].
    pub fn attributes(&self) -> Result<FunctionAttributes> {
        let _bound = self.0.module.device.bind()?;
        let read = |attribute| read_attribute(&self.0.module, self.0.raw, attribute);
        let version = |attribute| read(attribute).map(|version| (version / 10, version % 10));
        Ok(FunctionAttributes {
            registers: read(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared_bytes: read(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            constant_bytes: read(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            local_bytes: read(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            max_threads_per_block: read(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            ptx_version: version(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
            binary_version: version(CUfunction_attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        })
    }

    /// Returns how many blocks of `threads` threads and `dynamic_shared` bytes of dynamic shared memory one
    /// multiprocessor holds.
    ///
    /// # Errors
    ///
    /// More shared memory than the device has, the driver's errors, or [`Error::ContextLost`].
    pub fn occupancy(&self, threads: u32, dynamic_shared: u32) -> Result<u32> {
        self.0.allow_dynamic_shared(dynamic_shared)?;
        let device = self.0.module.device;
        let _bound = device.bind()?;
        let mut blocks = 0;
        let (threads, shared) = (i32::try_from(threads).unwrap_or(i32::MAX), dynamic_shared as usize);
        // SAFETY: the function is of a live module; the pointer is to a local.
        unsafe {
            call!(
                device,
                cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, self.0.raw.0, threads, shared)
            )?
        };
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Returns the grid and block sizes that give the highest occupancy, as `(grid, block)`.
    ///
    /// # Errors
    ///
    /// As [`occupancy`](Self::occupancy).
    pub fn suggested_block_size(&self, dynamic_shared: u32) -> Result<(u32, u32)> {
        self.0.allow_dynamic_shared(dynamic_shared)?;
        let device = self.0.module.device;
        let _bound = device.bind()?;
        let (mut grid, mut block) = (0, 0);
        let shared = dynamic_shared as usize;
        // SAFETY: the function is of a live module; the pointers are to locals; no callback is given.
        unsafe {
            call!(
                device,
                cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, self.0.raw.0, None, shared, 0)
            )?
        };
        Ok((u32::try_from(grid).unwrap_or(0), u32::try_from(block).unwrap_or(0)))
    }

    /// Returns how many clusters of a launch the device holds at once.
    ///
    /// # Errors
    ///
    /// The driver is older than CUDA 11.7, the launch is impossible, or the driver's errors.
    pub fn active_clusters(&self, config: &LaunchConfig) -> Result<u32> {
        self.check_config(config)?;
        let device = self.0.module.device;
        let _bound = device.bind()?;
        let mut clusters = 0;
        // Older drivers do not know the attribute for overlapping launches, which does not affect the result.
        config.in_order().with_raw(std::ptr::null_mut(), |raw| {
            // SAFETY: the function is of a live module; the pointers are to locals.
            unsafe { call!(device, cuOccupancyMaxActiveClusters(&mut clusters, self.0.raw.0, raw)) }
        })?;
        Ok(u32::try_from(clusters).unwrap_or(0))
    }

    /// Checks a launch's shape against the limits of the kernel and the device.
    pub(crate) fn check_config(&self, config: &LaunchConfig) -> Result<()> {
        let (state, limits) = (&*self.0, &self.0.module.device.limits);
        let threads = config.block.count();
        let fits = |dim: Dim3, limit: &[u32; 3]| dim.x <= limit[0] && dim.y <= limit[1] && dim.z <= limit[2];
        if threads == 0
            || threads > u64::from(state.max_threads)
            || config.grid.count() == 0
            || !fits(config.block, &limits.block)
            || !fits(config.grid, &limits.grid)
            || state.required_block.is_some_and(|required| required != config.block)
        {
            return Err(self.config_error(config));
        }
        state.allow_dynamic_shared(config.shared)
    }

    #[cold]
    fn config_error(&self, config: &LaunchConfig) -> Error {
        let device = self.0.module.device;
        let limits =
            [("block", config.block, device.limits.block), ("grid", config.grid, device.limits.grid)];
        for (what, dim, _) in limits {
            if dim.count() == 0 {
                return Error::invalid(
                    "a launch",
                    format!("a {what} of {dim}"),
                    "at least 1 in each dimension",
                );
            }
        }
        let limit_of = || format!("kernel '{}'", self.name());
        if config.block.count() > u64::from(self.0.max_threads) {
            return Error::LaunchLimit {
                what: "threads a block",
                found: config.block.count(),
                limit: u64::from(self.0.max_threads),
                limit_of: limit_of(),
            };
        }
        let names = [["block x", "block y", "block z"], ["grid x", "grid y", "grid z"]];
        for ((_, dim, limit), names) in limits.iter().zip(names) {
            for ((value, &limit), what) in [dim.x, dim.y, dim.z].into_iter().zip(limit).zip(names) {
                if value > limit {
                    let limit_of = format!("device {}", device.ordinal);
                    return Error::LaunchLimit { what, found: value.into(), limit: limit.into(), limit_of };
                }
            }
        }
        let wanted =
            self.0.required_block.map_or("a shape that fits".to_owned(), |required| required.to_string());
        let found = format!("a block of {}", config.block);
        Error::invalid(
            "a launch",
            found,
            format!("{wanted}, the shape that kernel '{}' was compiled for", self.name()),
        )
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Function({}, device {})", self.name(), self.0.module.device.ordinal)
    }
}
