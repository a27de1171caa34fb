//! [`Configuration`], an engine with the kernel configuration of a problem.

use super::blocks::Scalars;
use super::engine::{Engine, Unsupported};
use super::epilogue::{self, DeviceEpilogue};
use super::geometry::Geometry;
use super::problem::GemmProblem;
use super::{cublas, mma, simt, wgmma};
use crate::driver::{DeviceSlice, DeviceSliceMut, Stream};
use crate::error::Result;

/// An engine with the kernel configuration that computes a problem.
#[derive(Clone, Copy)]
pub(super) enum Configuration {
    Wgmma(wgmma::Configuration),
    Mma(mma::Configuration),
    Simt(simt::Configuration),
    Cublas,
}

impl Configuration {
    /// Returns the engine's best configuration for the problem, or the reason why it does not compute it.
    pub fn select(
        engine: Engine,
        problem: &GemmProblem<'_>,
    ) -> std::result::Result<Configuration, Unsupported> {
        if let Some(reason) = epilogue::unsupported(problem.result).filter(|_| !problem.epilogue.is_none()) {
            return Err(reason);
        }
        if problem.epilogue.is_derivative && engine != Engine::Wgmma {
            return Err(Unsupported::EpiloguePart("derivative of an activation"));
        }
        match engine {
            Engine::Wgmma => wgmma::select(problem).map(Configuration::Wgmma),
            Engine::Mma | Engine::Simt => {
                // The tiles, whose sums have an order of their own, are those of one row if the bits must not depend on the rows.
                let product = &problem.product.deciding(1);
                let selecting = GemmProblem { product, ..*problem };
                match engine {
                    Engine::Mma => mma::select(&selecting).map(Configuration::Mma),
                    _ => simt::select(&selecting).map(Configuration::Simt),
                }
            }
            Engine::Cublas => cublas::unsupported(problem).map_or(Ok(Configuration::Cublas), Err),
        }
    }

    pub fn engine(&self) -> Engine {
        match self {
            Configuration::Wgmma(_) => Engine::Wgmma,
            Configuration::Mma(_) => Engine::Mma,
            Configuration::Simt(_) => Engine::Simt,
            Configuration::Cublas => Engine::Cublas,
        }
    }

    pub fn geometry(&self, problem: &GemmProblem<'_>) -> Geometry {
        match self {
            Configuration::Wgmma(configuration) => wgmma::geometry(problem, configuration),
            Configuration::Mma(configuration) => mma::geometry(problem, configuration),
            Configuration::Simt(configuration) => simt::geometry(problem, configuration),
            Configuration::Cublas => cublas::geometry(problem),
        }
    }

    /// Launches the problem, which was checked against the buffers.
    pub fn run_on(
        &self,
        stream: &Stream,
        problem: &GemmProblem<'_>,
        scalars: Scalars,
        memory: (DeviceSlice<'_, u8>, DeviceSlice<'_, u8>, DeviceSliceMut<'_, u8>),
        epilogue: &DeviceEpilogue<'_>,
    ) -> Result<()> {
        match self {
            Configuration::Wgmma(configuration) => {
                wgmma::run_on(stream, problem, configuration, scalars, memory, epilogue)
            }
            Configuration::Mma(configuration) => {
                mma::run_on(stream, problem, configuration, scalars, memory, epilogue)
            }
            Configuration::Simt(configuration) => {
                simt::run_on(stream, problem, configuration, scalars, memory, epilogue)
            }
            Configuration::Cublas => cublas::run_on(stream, problem, scalars, memory, epilogue),
        }
    }
}
