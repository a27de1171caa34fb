//! What numbers and arrays are, without storage and without a device.

pub mod complex;
