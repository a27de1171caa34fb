//! `selvedge burst`: networks of the spiking engine made, run and verified.

use std::process::ExitCode;

use selvedge::Error;
use selvedge::burst::{Auto, Backend, Cpu, Cuda};
use selvedge::driver::Device;

use crate::device::is_reason_for_the_cpu;
use crate::failure::{FAILED, Failure};
use crate::options::{BurstCommand, BurstOptions, DeviceChoice};
use crate::output;

mod advance;
mod chart;
mod input;
mod make;
mod raster;
mod rates;
mod run;
mod verify;
mod worked_example;

/// Runs the command and prints its result. `verify` fails with a result.
pub fn burst(options: &BurstOptions) -> ExitCode {
    let result = match &options.command {
        BurstCommand::Make(options) => make::make(options).map(|report| (report, true)),
        BurstCommand::Run(options) => run::run(options).map(|report| (report, true)),
        BurstCommand::Verify(_) => verify::verify(),
    };
    match result {
        Ok((report, good)) => {
            let printed = output::print(&report, options.json());
            if good { printed } else { ExitCode::from(FAILED) }
        }
        Err(failure) => failure.print(options.json()),
    }
}

/// Returns the backend of a device, and the reason for the CPU where that was not asked for.
fn backend(device: DeviceChoice) -> Result<(Box<dyn Backend>, Option<Error>), Failure> {
    let cuda = |ordinal| Device::new(ordinal).and_then(Cuda::new);
    match device {
        DeviceChoice::Cpu => Ok((Box::new(Cpu::new()), None)),
        DeviceChoice::Cuda(ordinal) => Ok((Box::new(cuda(ordinal)?), None)),
        DeviceChoice::Auto => match cuda(0) {
            Ok(cuda) => Ok((Box::new(Auto::new(Box::new(cuda), Box::new(Cpu::new()))), None)),
            Err(error) if is_reason_for_the_cpu(&error) => Ok((Box::new(Cpu::new()), Some(error))),
            Err(error) => Err(error.into()),
        },
    }
}
