//! A backend that may be lost before any call. The unit tests of the program include this file too.

use std::sync::Arc;

use selvedge::Result;
use selvedge::burst::{
    Backend, BurstResult, Cpu, Injection, Network, NetworkState, NeuronParameters, Spike, WeightChange,
};

/// A call of a backend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BackendCall {
    Load,
    Burst,
    /// Of several bursts, each of which is a [`BackendCall::Burst`] too.
    Bursts,
    Other,
}

/// A CPU, of which `before` decides before each call whether it still exists.
pub struct Losable<F> {
    pub cpu: Cpu,
    pub before: F,
}

impl<F: FnMut(BackendCall) -> Result<()>> Losable<F> {
    fn alive(&mut self, call: BackendCall) -> Result<&mut Cpu> {
        (self.before)(call).map(|()| &mut self.cpu)
    }
}

impl<F: FnMut(BackendCall) -> Result<()> + Send> Backend for Losable<F> {
    fn name(&self) -> String {
        "losable".to_owned()
    }
    fn can_be_lost(&self) -> bool {
        true
    }
    fn load(&mut self, network: &Arc<Network>, seed: u32) -> Result<()> {
        self.alive(BackendCall::Load)?.load(network, seed)
    }
    fn inject(&mut self, injections: &[Injection]) -> Result<()> {
        self.alive(BackendCall::Other)?.inject(injections)
    }
    fn run_burst(&mut self) -> Result<BurstResult> {
        self.alive(BackendCall::Burst)?.run_burst()
    }
    fn run_bursts(&mut self, count: usize) -> Result<Vec<BurstResult>> {
        self.alive(BackendCall::Bursts)?;
        (0..count).map(|_| self.run_burst()).collect()
    }
    fn set_dense(&mut self, dense: bool) -> Result<()> {
        self.alive(BackendCall::Other)?.set_dense(dense)
    }
    fn set_fired(&mut self, fired: &[Spike]) -> Result<()> {
        self.alive(BackendCall::Other)?.set_fired(fired)
    }
    fn state(&mut self) -> Result<NetworkState> {
        self.alive(BackendCall::Other)?.state()
    }
    fn set_state(&mut self, state: &NetworkState) -> Result<()> {
        self.alive(BackendCall::Other)?.set_state(state)
    }
    fn set_parameters(&mut self, changes: &[(u32, NeuronParameters)]) -> Result<()> {
        self.alive(BackendCall::Other)?.set_parameters(changes)
    }
    fn weights(&mut self) -> Result<Vec<u16>> {
        self.alive(BackendCall::Other)?.weights()
    }
    fn set_weights(&mut self, changes: &[WeightChange]) -> Result<()> {
        self.alive(BackendCall::Other)?.set_weights(changes)
    }
}
