//! `selvedge.Tokenizer`: the tokenizer of a published model, or a trained one; and `selvedge.StreamDecoder`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use selvedge::nn::{BpeOptions, ChatTemplate, SplitPattern, SubwordTokenizer, TextFile, Tokenizer};

use crate::arguments::InRange;
use crate::error::{Result, invalid, type_name, wrong_type};

/// A two-way map between texts and the ids of a published model.
///
/// `Tokenizer.load(folder)` loads `tokenizer.json`, or `vocab.json` with `merges.txt`; `Tokenizer.train(texts)` makes a new one.
#[pyclass(name = "Tokenizer", module = "selvedge", frozen)]
pub struct PyTokenizer {
    tokenizer: Arc<SubwordTokenizer>,
    /// The folder of the chat template, which not every model has. A trained tokenizer has none.
    folder: Option<PathBuf>,
}

impl PyTokenizer {
    /// Returns the tokenizer of Rust.
    pub fn tokenizer(&self) -> &dyn Tokenizer {
        &*self.tokenizer
    }
}

/// Returns the bytes of a text: a string, bytes, or the path of a file.
fn bytes_of(text: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    if let Ok(text) = text.cast::<PyString>() {
        return Ok(text.to_cow()?.as_bytes().to_vec());
    }
    if let Ok(bytes) = text.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if text.hasattr("__fspath__")? {
        let path: PathBuf = text.extract()?;
        return Ok(text.py().detach(|| TextFile::read(path))?.to_vec());
    }
    Err(wrong_type("Tokenizer.train", type_name(text), "texts as str, bytes or pathlib.Path").into())
}

/// Returns the split into pre-tokens of a name.
fn pattern_of(name: &str) -> selvedge::Result<SplitPattern> {
    match name {
        "gpt2" => Ok(SplitPattern::Gpt2),
        "llama3" => Ok(SplitPattern::Llama3),
        "qwen2" => Ok(SplitPattern::Qwen2),
        "whole" => Ok(SplitPattern::Whole),
        _ => {
            let wanted = "\"gpt2\", \"llama3\", \"qwen2\" or \"whole\"";
            Err(invalid("Tokenizer.train", format!("the pattern {name:?}"), wanted))
        }
    }
}

/// Returns the ids of numbers of Python.
fn plain(ids: Vec<InRange<u32>>) -> Vec<u32> {
    ids.into_iter().map(|id| id.0).collect()
}

#[pymethods]
impl PyTokenizer {
    /// Loads the tokenizer of a folder as Hugging Face publishes it.
    #[staticmethod]
    fn load(py: Python<'_>, folder: PathBuf) -> Result<PyTokenizer> {
        let tokenizer = py.detach(|| SubwordTokenizer::from_folder(&folder))?;
        Ok(PyTokenizer { tokenizer: Arc::new(tokenizer), folder: Some(folder) })
    }

    /// Trains a byte-level BPE tokenizer on texts: a text or a list of texts, each a string, bytes or a `pathlib.Path`.
    ///
    /// It encodes every text without loss. `vocab_size` includes the 256 bytes and `end_token`, which ends a text; short texts give fewer. A
    /// pair of tokens needs `min_count` occurrences to become one. No token reaches across the pre-tokens of `pattern`: "gpt2", "llama3",
    /// "qwen2", or "whole", which has one alone.
    ///
    /// >>> tokenizer = sv.Tokenizer.train("to be, or not to be, " * 20, vocab_size=260)
    /// >>> tokenizer.vocab_size, tokenizer.decode(tokenizer.encode("to be"))
    /// (260, 'to be')
    #[staticmethod]
    #[pyo3(
        signature = (texts, *, vocab_size=InRange(32_768), min_count=InRange(2), pattern="gpt2", end_token="<|endoftext|>"),
        text_signature = "(texts, *, vocab_size=32768, min_count=2, pattern='gpt2', end_token='<|endoftext|>')"
    )]
    fn train(
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        vocab_size: InRange<usize>,
        min_count: InRange<u64>,
        pattern: &str,
        end_token: &str,
    ) -> Result<PyTokenizer> {
        let (vocab_size, min_count, end_token) = (vocab_size.0, min_count.0, end_token.to_owned());
        let options = BpeOptions { vocab_size, min_count, pattern: pattern_of(pattern)?, end_token };
        let is_one = texts.is_instance_of::<PyString>()
            || texts.is_instance_of::<PyBytes>()
            || texts.hasattr("__fspath__")?;
        let texts: Vec<Vec<u8>> = match is_one {
            true => vec![bytes_of(texts)?],
            false => texts.try_iter()?.map(|text| bytes_of(&text?)).collect::<Result<_>>()?,
        };
        let tokenizer = py.detach(|| SubwordTokenizer::train(texts.iter().map(Vec::as_slice), &options))?;
        Ok(PyTokenizer { tokenizer: Arc::new(tokenizer), folder: None })
    }

    /// Writes `tokenizer.json` and `tokenizer_config.json` into a folder, which is created. transformers and `load` read them.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> Result<()> {
        Ok(py.detach(|| self.tokenizer.save(folder))?)
    }

    /// The number of ids.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size()
    }

    /// The id that ends a text, None if the tokenizer names none.
    #[getter]
    fn end_id(&self) -> Option<u32> {
        self.tokenizer.end_id()
    }

    /// The ids of a text, with the special tokens of the tokenizer's template around them unless `add_special_tokens` is False.
    #[pyo3(signature = (text, *, add_special_tokens=true), text_signature = "($self, text, *, add_special_tokens=True)")]
    fn encode(&self, py: Python<'_>, text: &str, add_special_tokens: bool) -> Result<Vec<u32>> {
        Ok(py.detach(|| match add_special_tokens {
            true => self.tokenizer.encode_prompt(text),
            false => self.tokenizer.encode(text),
        })?)
    }

    /// The text of ids. Bytes that are not UTF-8 become U+FFFD.
    #[pyo3(signature = (ids, *, skip_special_tokens=false), text_signature = "($self, ids, *, skip_special_tokens=False)")]
    fn decode(&self, py: Python<'_>, ids: Vec<InRange<u32>>, skip_special_tokens: bool) -> Result<String> {
        let ids = plain(ids);
        Ok(py.detach(|| match skip_special_tokens {
            true => self.tokenizer.decode_skipping_special(&ids),
            false => self.tokenizer.decode(&ids),
        })?)
    }

    /// The text of a conversation as the model was trained on it, by the folder's chat template. `messages` is a list of
    /// dictionaries with `role` and `content`. Further keywords, such as `tools`, are variables of the template.
    ///
    /// The text has its special tokens: `encode(text, add_special_tokens=False)` gives its ids.
    #[pyo3(
        signature = (messages, *, add_generation_prompt=false, **variables),
        text_signature = "($self, messages, *, add_generation_prompt=False, **variables)"
    )]
    fn apply_chat_template(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        add_generation_prompt: bool,
        variables: Option<&Bound<'_, PyDict>>,
    ) -> Result<String> {
        let all = match variables {
            Some(variables) => variables.copy()?,
            None => PyDict::new(py),
        };
        all.set_item("messages", messages)?;
        all.set_item("add_generation_prompt", add_generation_prompt)?;
        let json: String = py.import("json")?.call_method1("dumps", (all,))?.extract()?;
        let found = "a tokenizer that was trained";
        let refused =
            || invalid("apply_chat_template", found, "one of Tokenizer.load, whose folder has a template");
        let folder = self.folder.as_ref().ok_or_else(refused)?;
        Ok(py.detach(|| ChatTemplate::from_folder(folder)?.render_json(&json))?)
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer(vocab_size={})", self.tokenizer.vocab_size())
    }
}

/// A stream decoder of Rust with the tokenizer that it borrows, in the order of their drops.
struct Stream {
    decoder: selvedge::nn::StreamDecoder<'static>,
    tokenizer: Arc<SubwordTokenizer>,
}

impl Stream {
    fn new(tokenizer: Arc<SubwordTokenizer>) -> Stream {
        // SAFETY: the address is that of the `Arc`, which the structure holds until the decoder is dropped; nothing changes a tokenizer.
        let borrowed: &'static SubwordTokenizer = unsafe { &*Arc::as_ptr(&tokenizer) };
        Stream { decoder: selvedge::nn::StreamDecoder::new(borrowed), tokenizer }
    }

    fn finish(self) -> selvedge::Result<String> {
        let Stream { decoder, tokenizer } = self;
        let text = decoder.finish();
        drop(tokenizer);
        text
    }
}

/// The text of ids as they come, in whole characters: `selvedge.StreamDecoder(tokenizer)`.
///
/// The texts of all calls together are the text of all ids together. A character whose bytes have not all come waits for them.
///
///     stream = sv.StreamDecoder(tokenizer)
///     model.generate(tokenizer.encode(prompt), callback=lambda step, ids: print(stream.push(ids), end="", flush=True))
///     print(stream.finish())
#[pyclass(name = "StreamDecoder", module = "selvedge", frozen)]
pub struct PyStreamDecoder(Mutex<Stream>);

#[pymethods]
impl PyStreamDecoder {
    #[new]
    fn new(tokenizer: &PyTokenizer) -> PyStreamDecoder {
        PyStreamDecoder(Mutex::new(Stream::new(tokenizer.tokenizer.clone())))
    }

    /// The text that is certain after these ids: an id, a list of ids, or the ids of a callback of `generate`, whose None counts for none.
    ///
    /// >>> tokenizer = sv.Tokenizer.train("some text", vocab_size=257)
    /// >>> stream, (first, second) = sv.StreamDecoder(tokenizer), tokenizer.encode("é")
    /// >>> stream.push(first), stream.push([second])
    /// ('', 'é')
    fn push(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> Result<String> {
        let ids = match ids.extract::<InRange<u32>>() {
            Ok(id) => vec![id.0],
            Err(_) => {
                let ids: Vec<Option<InRange<u32>>> = ids.extract()?;
                ids.into_iter().flatten().map(|id| id.0).collect()
            }
        };
        Ok(py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).decoder.push(&ids))?)
    }

    /// The rest of the text, of which a character that has not ended becomes U+FFFD. Later ids begin a new text.
    fn finish(&self, py: Python<'_>) -> Result<String> {
        Ok(py.detach(|| {
            let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let new = Stream::new(stream.tokenizer.clone());
            std::mem::replace(&mut *stream, new).finish()
        })?)
    }

    fn __repr__(&self) -> &'static str {
        "StreamDecoder()"
    }
}
