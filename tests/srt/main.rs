//! The golden-ratio operations on the CPU: the worked numbers of their definitions, properties, and bad input.

mod cone;
mod constants;
mod e8;
mod rows;
