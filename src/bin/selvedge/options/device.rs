//! [`DeviceChoice`], the value of `--device` where the CPU is a choice.

use std::str::FromStr;

/// The device of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    Auto,
    Cpu,
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceChoice, String> {
        match text {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            number => {
                let wanted = || format!("found '{text}'; wanted auto, cpu or the number of a device");
                number.parse().map(DeviceChoice::Cuda).map_err(|_| wanted())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        assert_eq!("auto".parse(), Ok(DeviceChoice::Auto));
        assert_eq!("cpu".parse(), Ok(DeviceChoice::Cpu));
        assert_eq!("3".parse(), Ok(DeviceChoice::Cuda(3)));
        assert!("-1".parse::<DeviceChoice>().unwrap_err().contains("'-1'"));
    }
}
