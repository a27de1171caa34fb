//! The golden-ratio operations on the CPU: the worked numbers of their definitions, properties, and bad input.

mod common;
mod complex;
mod cone;
mod constants;
mod e8;
mod noise;
mod phases;
mod products;
mod residual;
mod rows;
mod syntony;
mod weights;
