//! The intermediate representation: programs of instructions on registers, and the data that they refer to.
//!
//! A program computes an element's value from the elements of the inputs. It knows no device and no layout.
//!
//! This layer may use no other part of `fuse`.

pub(super) mod conversion;
pub(super) mod coordinate;
pub(super) mod instruction;
pub(super) mod number;
pub(super) mod permutation;
pub(super) mod program;
pub(super) mod rare;
