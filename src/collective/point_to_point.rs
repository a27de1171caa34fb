//! Messages between two ranks.

use super::call::{Call, Operation};
use super::communicator::Communicator;
use crate::error::Result;
use crate::types::Element;

impl Communicator {
    /// Sends values to a rank, which [receives](Self::receive) as many. The call may end before that.
    ///
    /// Two ranks that send long messages to each other use [`send_receive`](Self::send_receive).
    ///
    /// # Errors
    ///
    /// As [`all_reduce`](Self::all_reduce). The rank is this one, or none.
    pub fn send<T: Element>(&self, values: &[T], to: usize) -> Result<()> {
        self.ranks().check_peer("send", to)?;
        let call = Call::new(Operation::Send, T::DTYPE, values.len());
        self.attempt(call, |mesh, deadline| mesh.send(&call, to, bytemuck::cast_slice(values), deadline))
    }

    /// Receives the values that a rank [sends](Self::send).
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), also if the rank sends another number of values or another dtype.
    pub fn receive<T: Element>(&self, values: &mut [T], from: usize) -> Result<()> {
        self.ranks().check_peer("receive", from)?;
        let call = Call::new(Operation::Send, T::DTYPE, values.len());
        let bytes = bytemuck::cast_slice_mut(values);
        self.attempt(call, |mesh, deadline| mesh.receive(&call, from, bytes, deadline))
    }

    /// Sends values to one rank, and receives from another or the same one at the same time.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_receive<T: Element>(
        &self,
        values: &[T],
        to: usize,
        received: &mut [T],
        from: usize,
    ) -> Result<()> {
        self.ranks().check_peer("send_receive", to)?;
        self.ranks().check_peer("send_receive", from)?;
        let sent = Call::new(Operation::Send, T::DTYPE, values.len());
        let wanted = Call::new(Operation::Send, T::DTYPE, received.len());
        let (values, received) = (bytemuck::cast_slice(values), bytemuck::cast_slice_mut(received));
        self.attempt(sent, |mesh, deadline| {
            mesh.send_receive((&sent, to, values), (&wanted, from, received), deadline)
        })
    }
}
