//! Items that the modules of the suite share: the list of tests, the kernels, and the slow work that makes a race wide
//! enough to be seen.

pub mod child;
pub mod compare;
pub mod foreign_driver;
pub mod gpt;
mod lab;
mod numbers;

use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use libtest_mimic::{Completion, Failed, Trial};
use selvedge::driver::{Device, driver_isa};

pub use lab::{Lab, SLOW, basic_ptx};
pub use numbers::Numbers;

/// The result of a test. Any error that can be displayed becomes a failure by `?`.
pub type Outcome = Result<(), Failed>;

/// A test's requirement of the machine. Without it the test is skipped, with the reason.
#[derive(Clone, Copy)]
pub enum Need {
    Nothing,
    TwoDevices,
    /// A compute capability.
    Capability(i32, i32),
    /// A driver that takes PTX of this ISA.
    Isa(i32, i32),
    /// Runs that a memory checker or `CUDA_LAUNCH_BLOCKING` does not slow or serialise.
    FreeRunning,
    /// An environment variable.
    Variable(&'static str),
    /// A library that compiles CUDA C++.
    Nvrtc,
}

impl Need {
    fn missing(self) -> Option<String> {
        match self {
            Need::Nothing => None,
            Need::TwoDevices => match Device::count() {
                Ok(count) if count >= 2 => None,
                Ok(count) => Some(format!("needs two devices, this machine has {count}")),
                Err(error) => Some(error.to_string()),
            },
            Need::Capability(major, minor) => match Device::new(0) {
                Ok(device) if device.compute_capability() >= (major, minor) => None,
                Ok(device) => Some(format!("needs compute capability {major}.{minor}, this is {device:?}")),
                Err(error) => Some(error.to_string()),
            },
            Need::Isa(major, minor) => match driver_isa() {
                Ok(isa) if isa >= (major, minor) => None,
                Ok(isa) => Some(format!("needs a driver that takes PTX {major}.{minor}, this takes {isa:?}")),
                Err(error) => Some(error.to_string()),
            },
            Need::Variable(name) => std::env::var_os(name).is_none().then(|| format!("needs {name}")),
            Need::Nvrtc => selvedge::nvrtc::version().err().map(|_| "needs NVRTC".to_owned()),
            Need::FreeRunning => serialised().then(|| "needs a device that runs freely".to_owned()),
        }
    }
}

/// A test by name.
pub struct DeviceTest {
    pub name: String,
    pub run: fn() -> Outcome,
    need: Need,
    /// The environment of the process that it needs for itself.
    child: Option<&'static [(&'static str, &'static str)]>,
    on_request: bool,
    /// True for a test that must not run at the same time as others.
    pub alone: bool,
}

/// Enters how long a test took, also one that panics.
struct Timed {
    name: String,
    start: Instant,
}

impl Drop for Timed {
    fn drop(&mut self) {
        let mut durations = DURATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        durations.push((self.start.elapsed(), std::mem::take(&mut self.name)));
    }
}

/// Held shared by tests that run beside others and alone by the rest, so that one run has both.
static DEVICE: RwLock<()> = RwLock::new(());

/// How long tests took, for the list at the end of a run.
static DURATIONS: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Prints the tests that took longest.
pub fn print_slowest() {
    let mut durations = DURATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    durations.sort_by_key(|(duration, _)| std::cmp::Reverse(*duration));
    println!("slowest:");
    for (duration, name) in durations.iter().take(20) {
        println!("{:8.2} s  {name}", duration.as_secs_f64());
    }
}

impl DeviceTest {
    pub fn new(module: &str, name: &str, run: fn() -> Outcome) -> DeviceTest {
        let module = module.rsplit("::").next().unwrap_or(module);
        DeviceTest {
            name: format!("{module}::{name}"),
            run,
            need: Need::Nothing,
            child: None,
            on_request: false,
            alone: false,
        }
    }

    pub fn needs(self, need: Need) -> DeviceTest {
        DeviceTest { need, ..self }
    }

    /// Runs in a process of its own with these variables set.
    pub fn in_child(self, environment: &'static [(&'static str, &'static str)]) -> DeviceTest {
        DeviceTest { child: Some(environment), ..self }
    }

    /// Needs much of the device's memory, or measures it: runs alone, though its module's tests run beside others.
    pub fn alone(self) -> DeviceTest {
        DeviceTest { alone: true, ..self }
    }

    /// Runs only with `--ignored`.
    pub fn on_request(self) -> DeviceTest {
        DeviceTest { on_request: true, ..self }
    }

    pub fn into_test(self) -> Trial {
        let DeviceTest { name, run, need, child, on_request, alone } = self;
        Trial::ignorable_test(name.clone(), move || {
            if let Some(reason) = need.missing() {
                return Ok(Completion::ignored_with(reason));
            }
            let _guards = match alone {
                true => (Some(DEVICE.write().unwrap_or_else(PoisonError::into_inner)), None),
                false => (None, Some(DEVICE.read().unwrap_or_else(PoisonError::into_inner))),
            };
            let _duration = Timed { name: name.clone(), start: Instant::now() };
            if std::env::var_os("SELVEDGE_TEST_TRACE").is_some() {
                eprintln!("begins {name}");
            }
            match child {
                // An earlier test that lost the context fails alone; the others go on in new processes.
                None if Device::new(0).is_ok_and(|device| device.is_lost()) => child::run(&name, &[]),
                None => run(),
                Some(environment) => child::run(&name, environment),
            }?;
            Ok(Completion::Completed)
        })
        .with_ignored_flag(on_request)
    }
}

/// Lists a module's tests: `device_tests! { one, two => needs(Need::TwoDevices), three => in_child(&[]) }`.
macro_rules! device_tests {
    ($($name:ident $(=> $method:ident($($argument:expr),*))*),* $(,)?) => {
        pub fn device_tests() -> Vec<$crate::support::DeviceTest> {
            vec![$(
                $crate::support::DeviceTest::new(module_path!(), stringify!($name), $name)$(.$method($($argument),*))*
            ),*]
        }
    };
}
pub(crate) use device_tests;

/// Fails the test unless the result is an error of this shape.
macro_rules! assert_error {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {
        match $result {
            Err($pattern) $(if $guard)? => {}
            Err(error) => return Err(format!("{}:{}: another error: {error:?}", file!(), line!()).into()),
            Ok(_) => return Err(format!("{}:{}: no error, wanted {}", file!(), line!(), stringify!($pattern)).into()),
        }
    };
}
pub(crate) use assert_error;

/// Returns whether something makes the device's work serial or slow, so that overlap cannot be seen: a memory checker,
/// launches that block, or buffers that are each freed by the driver, whose `cuMemFree` may wait for the whole device.
pub fn serialised() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        let blocking = std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|value| value != "0");
        let unpooled = std::env::var("SELVEDGE_POOL").is_ok_and(|mode| !mode.is_empty());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        blocking || unpooled || maps.contains("compute-sanitizer") || maps.contains("libsanitizer")
    })
}

/// Asserts that work is still in progress, unless the machine makes work serial.
#[track_caller]
pub fn assert_open(open: bool, what: &str) {
    assert!(open || serialised(), "{what}: the slow kernel is done too early for the test to mean anything");
}

/// Asserts that every element is `wanted`, and says where the first other one is.
#[track_caller]
pub fn assert_all<T: PartialEq + std::fmt::Debug>(elements: &[T], wanted: T, what: &str) {
    if let Some(index) = elements.iter().position(|element| *element != wanted) {
        let wrong = elements.iter().filter(|element| **element != wanted).count();
        panic!(
            "{what}: element {index} of {} is {:?}, wanted {wanted:?} ({wrong} are wrong)",
            elements.len(),
            elements[index]
        );
    }
}
