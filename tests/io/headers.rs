//! Headers of `.npy` files: the forms that NumPy writes, the bytes that selvedge writes, and every kind of
//! malformed header. A refusal names what was found and what was wanted.

use selvedge::io::npy;
use selvedge::types::DType;

use super::{Scratch, assert_refused, dict, file, refusal};

/// Returns the shape that is read from this header of a file of `elements` bytes.
#[track_caller]
fn shape(version: u8, text: &str, elements: usize) -> Vec<usize> {
    let scratch = Scratch::with("shape.npy", &file(version, text, &vec![0; elements]));
    npy::read(&scratch.0).unwrap_or_else(|error| panic!("{text}: {error}")).shape().to_vec()
}

#[test]
fn white_space_and_last_commas_have_no_meaning() {
    for version in 1..=3 {
        for (text, wanted, elements) in [
            ("()", &[][..], 1),
            ("( )", &[], 1),
            ("(3,)", &[3], 3),
            ("(3, )", &[3], 3),
            ("( 3 ,\t)", &[3], 3),
            ("(3L,)", &[3], 3),
            ("(2, 3)", &[2, 3], 6),
            ("(2,3,)", &[2, 3], 6),
            ("(2,\n 3)", &[2, 3], 6),
            ("[2, 3]", &[2, 3], 6),
            ("[3]", &[3], 3),
            ("(0, 7)", &[0, 7], 0),
        ] {
            assert_eq!(shape(version, &dict("'|u1'", "False", text), elements), wanted, "{text}");
        }
        for text in [
            "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }",
            "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}\n",
            "{'shape':(3,),'fortran_order':False,'descr':'|u1',}",
            "  {  \"descr\"  :  '|u1'  ,  'fortran_order'\t:  True  ,  'shape'  :  (3,)  }  \r\n",
        ] {
            assert_eq!(shape(version, text, 3), [3], "{text}");
        }
    }
}

#[test]
fn written_headers_have_these_bytes() {
    for (shape, text) in [
        (&[][..], "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"),
        (&[3], "{'descr': '<f4', 'fortran_order': False, 'shape': (3, ), }"),
        (&[2, 0], "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0, ), }"),
        (
            &[0, 1_000_000, 1_000_000],
            "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1000000, 1000000, ), }",
        ),
    ] {
        let scratch = Scratch::new("written.npy");
        let elements = vec![0f32; shape.iter().product()];
        npy::write_slice(&scratch.0, &elements, shape).unwrap();
        let bytes = std::fs::read(&scratch.0).unwrap();
        // 10 bytes before the text; the elements begin at a multiple of 64.
        let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
        let padded = format!("{text:<width$}\n", width = length - 1);
        assert_eq!(bytes[..bytes.len() - 4 * elements.len()], file(1, &padded, &[]), "{text}");
    }
    for (dtype, descr) in DType::ALL.into_iter().zip([
        "|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<V2", "<f4", "<f8", "<c8",
        "<c16", "|V1", "|V1",
    ]) {
        let scratch = Scratch::new("descr.npy");
        npy::write(&scratch.0, &selvedge::io::HostArray::zeros(dtype, &[1]).unwrap()).unwrap();
        let bytes = std::fs::read(&scratch.0).unwrap();
        assert!(bytes[10..].starts_with(format!("{{'descr': '{descr}'").as_bytes()), "{dtype}");
    }
}

#[test]
fn the_text_must_be_one_dict_of_three_keys() {
    const WANTED: &str = "a dict of 'descr', 'fortran_order' and 'shape'";
    for (text, found) in [
        ("", "found its end, wanted '{'"),
        ("   \n", "found its end, wanted '{'"),
        ("\0\0\0\0", "found '\\x00' at byte 0, wanted '{'"),
        ("{", "found its end, wanted a key in quotes"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "found its end, wanted '}'"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,", "found its end, wanted a dimension"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), ", "found its end, wanted a key"),
        ("{'descr': '<f4, }", "a string without an end at byte 10"),
        ("{'descr': '<f4", "a string without an end at byte 10"),
        ("{'descr", "a string without an end at byte 1"),
        ("{descr: '<f4'}", "found 'd' at byte 1, wanted a key in quotes"),
        ("{'descr' '<f4'}", "found '\\'' at byte 9, wanted ':'"),
        ("{'descr': , }", "wanted a type string in quotes"),
        ("{'descr': '<f4',, }", "found ',' at byte 16, wanted a key in quotes"),
        ("{'descr': '<\t4'}", "found '\\t' at byte 12, wanted plain text"),
        ("{'descr': '<f\\x34'}", "found '\\\\' at byte 13, wanted plain text"),
        ("{'déscr': '<f4'}", "found '\\xc3' at byte 3, wanted plain text"),
        ("{'descr': '<é4'}", "found '\\xc3' at byte 12, wanted plain text"),
        ("{'fortran_order': false}", "found 'f' at byte 18, wanted True or False"),
        ("{'fortran_order': Falsehood}", "wanted True or False"),
        ("{'fortran_order': 0}", "wanted True or False"),
        ("{}", "without the key 'descr'"),
        ("{'fortran_order': False, 'shape': (1,)}", "without the key 'descr'"),
        ("{'descr': '<f4', 'shape': (1,)}", "without the key 'fortran_order'"),
        ("{'descr': '<f4', 'fortran_order': False}", "without the key 'shape'"),
        ("{'descr': '<f4', 'descr': '<f4', }", "the key 'descr' twice"),
        ("{'fortran_order': True, 'fortran_order': False, }", "the key 'fortran_order' twice"),
        ("{'shape': (1,), 'shape': (1,), }", "the key 'shape' twice"),
        ("{'order': False}", "a header with the key 'order'"),
        ("{'': False}", "a header with the key ''"),
    ] {
        for version in 1..=3 {
            assert_refused("dict.npy", &file(version, text, &[0; 4]), &["a header", found, WANTED]);
        }
    }
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1L), }";
    let scratch = Scratch::with("text.npy", &file(1, text, &[0; 4]));
    assert!(npy::read(&scratch.0).is_ok());
    for length in 0..text.len() {
        assert_refused(
            "prefix.npy",
            &file(1, &text[..length], &[0; 4]),
            &["a header that cannot be read", WANTED],
        );
    }
    let whole = dict("'<f4'", "False", "(1,)");
    for junk in ["x", "{}", ",", "}", "\0", "é", "# comment"] {
        let found = format!("found '{}' at byte", junk.as_bytes()[..1].escape_ascii());
        let text = format!("{whole}{junk}\n");
        assert_refused("junk.npy", &file(1, &text, &[0; 4]), &[&found, "wanted nothing after the dict"]);
    }
}

#[test]
fn a_shape_is_a_tuple_of_counts() {
    for (shape, found) in [
        ("(-1,)", "the negative dimension '-1'"),
        ("(2, -9223372036854775808)", "the negative dimension '-9223372036854775808'"),
        ("(-,)", "the negative dimension '-'"),
        ("3", "wanted a tuple of dimensions"),
        ("None", "wanted a tuple of dimensions"),
        ("{3}", "wanted a tuple of dimensions"),
        ("(3)", "wanted ',' after the only dimension of a tuple"),
        ("(,)", "wanted a dimension"),
        ("(3,,)", "wanted a dimension"),
        ("(3 3)", "wanted"),
        ("(2, 3 3)", "wanted ')'"),
        ("(2, 3]", "wanted ')'"),
        ("[2, 3)", "wanted ']'"),
        ("((3,),)", "wanted a dimension"),
        ("(True,)", "wanted a dimension"),
        ("(+3,)", "wanted a dimension"),
        ("(1, 2e3)", "found 'e'"),
        ("(1, 2.0)", "found '.'"),
        ("(18446744073709551616,)", "cannot be counted in 64 bits"),
        ("(4294967296, 4294967296)", "cannot be counted in 64 bits"),
        ("(0, 4294967296, 4294967296)", "cannot be counted in 64 bits"),
    ] {
        assert_refused("shape.npy", &file(1, &dict("'<f4'", "False", shape), &[]), &["a header", found]);
    }
    let long = format!("({},)", "9".repeat(9000));
    assert_refused("digits.npy", &file(2, &dict("'<f4'", "False", &long), &[]), &["cannot be counted"]);
    let negative = format!("(-{},)", "9".repeat(9000));
    let message = refusal("negative.npy", &file(2, &dict("'<f4'", "False", &negative), &[]));
    assert!(message.len() < 400, "an error quotes the whole header: {message}");
}

#[test]
fn a_structured_dtype_names_its_fields() {
    for (descr, fields) in [
        ("[('x', '<f4')]", "the fields x;"),
        ("[('x', '<f4'), ('y', '<f4', (2,))]", "the fields x, y;"),
        ("[ ( 'x' , [ ( 'inner' , '<i4' ) ] ) , ( \"y\" , '<i4' ) ]", "the fields x, y;"),
        ("[('größe', '<f4')]", "the fields größe;"),
        ("[('x', '<f4'", "the fields x"),
        ("[('x", "structured"),
        ("[( \"a, (b\" , '<f4')]", "the fields a, (b;"),
        ("[('a\n', '<f4')], 'note': ('no', 1)", "the fields a\\n;"),
        ("[]", "without fields;"),
    ] {
        for version in 1..=3 {
            let bytes = file(version, &dict(descr, "False", "(1,)"), &[0; 12]);
            assert_refused("fields.npy", &bytes, &["a structured dtype", fields, "array['name']"]);
        }
    }
    for open in ["[", "(", "[(", "[('x', "] {
        let text = format!("{{'descr': {}", open.repeat(9000 / open.len()));
        let message = refusal("nested.npy", &file(2, &text, &[]));
        assert!(message.contains("a header") || message.contains("a structured dtype"), "{open}: {message}");
    }
}

#[test]
fn the_length_of_a_header_must_lie_in_the_file() {
    let whole = file(2, &dict("'<f8'", "False", "(1,)"), &[0; 8]);
    let text = whole.len() as u32 - 12 - 8;
    for claimed in [text + 9, 10_000, 1 << 20, u32::MAX] {
        let mut bytes = whole.clone();
        bytes[8..12].copy_from_slice(&claimed.to_le_bytes());
        let wanted = format!("{} bytes for the header alone", 12 + u64::from(claimed));
        assert_refused("length.npy", &bytes, &["truncated", &wanted]);
    }
    // A length that ends within the dict, or within the elements.
    for (claimed, found) in [(0, "found its end"), (20, "a string without an end"), (text + 8, "at byte")] {
        let mut bytes = whole.clone();
        bytes[8..12].copy_from_slice(&claimed.to_le_bytes());
        assert_refused("cut.npy", &bytes, &["a header that cannot be read", found]);
    }
}
