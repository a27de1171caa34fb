//! PTX that names a newer ISA than the driver takes, tried as one that it takes.
//!
//! A compiler writes its own ISA into `.version` whether or not the text needs it, so a kernel of a new toolkit is often
//! refused without need. Only an assembler can tell if the text needs the newer ISA. So this one number is changed and the
//! text loaded; a refusal is an error with the assembler's log. Nothing is changed unless the user asks for it.

use selvedge::driver::image::{self, ImageInfo, ImageKind};

/// An ISA version, major and minor.
pub type Isa = (i32, i32);

/// The change of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lowered {
    pub from: Isa,
    pub to: Isa,
}

/// The text with `to` in its `.version` line; `None` where the image is no PTX or not newer than that.
pub fn lower(image: &[u8], info: &ImageInfo, to: Isa) -> Option<(Vec<u8>, Lowered)> {
    let from = info.isa.filter(|isa| info.kind == ImageKind::Ptx && *isa > to)?;
    let (start, end) = version(image)?;
    let number = format!("{}.{}", to.0, to.1);
    let text = [&image[..start], number.as_bytes(), &image[end..]].concat();
    // Whatever else was mistaken for the line is not: the text reads as the same image with the other number.
    let same = ImageInfo::parse(&text)
        .is_ok_and(|lowered| lowered.isa == Some(to) && lowered.kernels == info.kernels);
    same.then_some((text, Lowered { from, to }))
}

/// Returns the range of the number after the first `.version` outside of a comment.
fn version(text: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let find = |end: &[u8]| rest.windows(end.len()).position(|window| window == end);
        if rest.starts_with(b"//") {
            at += find(b"\n")?;
        } else if rest.starts_with(b"/*") {
            at += find(b"*/")? + 2;
        } else if let Some(number) = rest.strip_prefix(b".version") {
            let blank = number.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let digits =
                number[blank..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
            let start = at + b".version".len() + blank;
            return (digits > 0).then_some((start, start + digits));
        } else {
            at += 1;
        }
    }
    None
}

/// Such as `PTX 8.7 (CUDA 12.8)`.
pub fn named(isa: Isa) -> String {
    let cuda = image::cuda_of_isa(isa).map(|cuda| format!(" (CUDA {cuda})")).unwrap_or_default();
    format!("PTX {}.{}{cuda}", isa.0, isa.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = ".target sm_60\n.address_size 64\n.visible .entry k() { ret; }\n";

    fn lowered(head: &str, to: Isa) -> Option<String> {
        let text = format!("{head}{BODY}");
        let info = ImageInfo::parse(text.as_bytes()).unwrap();
        let (text, lowered) = lower(text.as_bytes(), &info, to)?;
        assert_eq!((Some(lowered.from), lowered.to), (info.isa, to));
        Some(String::from_utf8(text).unwrap())
    }

    #[test]
    fn only_the_number_changes() {
        assert_eq!(lowered(".version 8.7\n", (8, 0)), Some(format!(".version 8.0\n{BODY}")));
        let commented = "// .version 1.0\n/* .version\n 2.0 */ .version\t 8.7 // .version 8.7\n";
        let wanted = commented.replacen("\t 8.7", "\t 8.4", 1);
        assert_eq!(lowered(commented, (8, 4)), Some(format!("{wanted}{BODY}")));
    }

    #[test]
    fn what_is_not_newer_stays() {
        assert_eq!(lowered(".version 8.0\n", (8, 0)), None);
        assert_eq!(lowered(".version 7.0\n", (8, 0)), None);
        let info = ImageInfo::parse(format!(".version 8.7\n{BODY}").as_bytes()).unwrap();
        assert_eq!(lower(b"// .version", &info, (8, 0)), None);
        assert_eq!(lower(b"/* .version", &info, (8, 0)), None);
    }
}
