//! [`ChatTemplate`], the text of a conversation as a model was trained on it.
//!
//! Templates are Jinja's, rendered by `minijinja` as `transformers` renders them: blocks take their line, methods of Python's strings and
//! dictionaries work, and `tojson` writes JSON as Python's `json.dumps` does.
//!
//! Tests: `tests/nn/chat_template.rs`.

mod python_json;
mod time;

use std::collections::BTreeMap;
use std::path::Path;

use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, ErrorKind, Value, context};
use serde::Serialize;

use super::subword::{optional_json, read_text, token_name};
use crate::error::{Error, Result};
use crate::io::npy::file_error;

/// The steps that a template may take: a conversation of a thousand messages takes about a tenth of them.
const FUEL: u64 = 4_000_000;
const OPERATION: &str = "ChatTemplate";
/// The name of a template that has none.
const DEFAULT: &str = "default";
/// The name of the template for conversations with tools.
const WITH_TOOLS: &str = "tool_use";

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChatMessage {
    /// The author, such as `system`, `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

impl ChatMessage {
    /// Creates a message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> ChatMessage {
        ChatMessage { role: role.into(), content: content.into() }
    }
}

/// The template of a model's conversations.
///
/// ```
/// use selvedge::nn::{ChatMessage, ChatTemplate};
/// let template = ChatTemplate::new(
///     "{% for message in messages %}<|{{ message.role }}|>{{ message['content'].strip() }}\n{% endfor %}",
/// )?;
/// assert_eq!(template.render(&[ChatMessage::new("user", " hello ")], false)?, "<|user|>hello\n");
/// # Ok::<(), selvedge::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    /// By name.
    sources: BTreeMap<String, String>,
    /// Names of special tokens, such as `bos_token`, and their texts.
    tokens: BTreeMap<String, String>,
    /// Seconds since 1970 in place of the clock's.
    time: Option<i64>,
}

impl ChatTemplate {
    /// Creates a template of Jinja's text.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the line for a text that is no template.
    pub fn new(source: impl Into<String>) -> Result<ChatTemplate> {
        ChatTemplate::of(BTreeMap::from([(DEFAULT.to_owned(), source.into())]), BTreeMap::new())
    }

    /// Loads the template of a model's folder: `chat_template.jinja`, or the field `chat_template` of `tokenizer_config.json`, which
    /// is a text or a list of named ones. Special tokens come from `tokenizer_config.json`.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a folder without a template and for a damaged file.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<ChatTemplate> {
        let folder = folder.as_ref();
        let config = optional_json(folder, "tokenizer_config.json")?;
        let file = folder.join("chat_template.jinja");
        let mut sources = BTreeMap::new();
        let field = &config["chat_template"];
        let mut path = folder.join("tokenizer_config.json");
        if file.exists() {
            sources.insert(DEFAULT.to_owned(), read_text(&file)?);
            path = file;
        } else if let Some(source) = field.as_str() {
            sources.insert(DEFAULT.to_owned(), source.to_owned());
        } else {
            for named in field.as_array().into_iter().flatten() {
                if let (Some(name), Some(source)) = (named["name"].as_str(), named["template"].as_str()) {
                    sources.insert(name.to_owned(), source.to_owned());
                }
            }
        }
        if sources.is_empty() {
            let wanted = "chat_template.jinja, or the field chat_template of tokenizer_config.json; a model without one \
                          was not trained on conversations";
            return Err(file_error(&folder.display().to_string(), "no chat template", wanted));
        }
        // The configuration wins over the older file.
        let map = optional_json(folder, "special_tokens_map.json")?;
        let tokens = [&map, &config].into_iter().filter_map(|file| file.as_object()).flatten();
        let tokens = tokens.filter(|(name, _)| name.ends_with("_token"));
        let tokens = tokens.filter_map(|(name, value)| Some((name.clone(), token_name(value)?))).collect();
        ChatTemplate::of(sources, tokens).map_err(|error| match error {
            Error::InvalidArgument { found, wanted, .. } => {
                file_error(&path.display().to_string(), found, wanted)
            }
            other => other,
        })
    }

    fn of(sources: BTreeMap<String, String>, tokens: BTreeMap<String, String>) -> Result<ChatTemplate> {
        let sources: BTreeMap<String, String> =
            sources.into_iter().map(|(name, source)| (name, without_marks(&source))).collect();
        let template = ChatTemplate { sources, tokens, time: None };
        let environment = template.environment();
        for source in template.sources.values() {
            environment.template_from_str(source).map_err(|error| {
                Error::invalid(OPERATION, described(&error), "a template that Jinja reads")
            })?;
        }
        Ok(template)
    }

    /// Returns the names of the templates, of which `default` is the usual one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }

    /// Takes the template of a name as the default.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] with the names for one that does not exist.
    pub fn with_name(mut self, name: &str) -> Result<ChatTemplate> {
        let Some(source) = self.sources.get(name).cloned() else {
            let names: Vec<&str> = self.names().collect();
            let found = format!("the template {name}");
            return Err(Error::invalid(OPERATION, found, format!("one of {}", names.join(", "))));
        };
        self.sources = BTreeMap::from([(DEFAULT.to_owned(), source)]);
        Ok(self)
    }

    /// Sets the text of a special token, such as `bos_token`.
    pub fn with_token(mut self, name: impl Into<String>, text: impl Into<String>) -> ChatTemplate {
        self.tokens.insert(name.into(), text.into());
        self
    }

    /// Sets the time of `strftime_now` in seconds since 1970. Without it the time is the clock's, in UTC.
    pub fn with_time(self, seconds: i64) -> ChatTemplate {
        ChatTemplate { time: Some(seconds), ..self }
    }

    /// Returns the text of a conversation, with `add_generation_prompt` up to the place where the model's answer begins.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a conversation that the template refuses (`raise_exception`), an error in the template, and one
    /// that takes too many steps, such as a loop without an end.
    pub fn render(&self, messages: &[ChatMessage], add_generation_prompt: bool) -> Result<String> {
        let variables = context! { messages => Value::from_serialize(messages), add_generation_prompt };
        self.render_with(variables)
    }

    /// Returns the text of the variables in a JSON object: `messages`, and perhaps `tools`, `documents`, `add_generation_prompt` and
    /// variables of the template. The order of keys is kept.
    ///
    /// # Errors
    ///
    /// As [`render`](Self::render), and for a text that is no JSON object with `messages`.
    pub fn render_json(&self, variables: &str) -> Result<String> {
        let wanted = "a JSON object with messages";
        let variables: Value =
            serde_json::from_str(variables).map_err(|error| Error::invalid(OPERATION, error, wanted))?;
        if variables.get_attr("messages").is_ok_and(|messages| messages.is_undefined()) {
            return Err(Error::invalid(OPERATION, "variables without messages", wanted));
        }
        self.render_with(variables)
    }

    fn render_with(&self, variables: Value) -> Result<String> {
        let tools = variables.get_attr("tools").unwrap_or_default();
        let with_tools = self.sources.get(WITH_TOOLS).filter(|_| tools.is_true());
        let Some(source) = with_tools.or_else(|| self.sources.get(DEFAULT)) else {
            let names: Vec<&str> = self.names().collect();
            let found = format!("no default among the templates {}", names.join(", "));
            return Err(Error::invalid(OPERATION, found, "a name, by `with_name`"));
        };
        // Names that a caller leaves out exist, as in transformers.
        let defaults = context! { tools => (), documents => (), add_generation_prompt => false };
        let variables =
            context! { ..variables, ..context! { ..Value::from_serialize(&self.tokens), ..defaults } };
        let environment = self.environment();
        let rendered = environment.template_from_str(source).and_then(|template| template.render(variables));
        rendered.map_err(|error| {
            let wanted = if error.kind() == ErrorKind::OutOfFuel {
                format!("a template of at most {FUEL} steps")
            } else {
                "a conversation that the template takes".to_owned()
            };
            Error::invalid(OPERATION, described(&error), wanted)
        })
    }

    fn environment(&self) -> Environment<'static> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| -> std::result::Result<Value, _> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        });
        let seconds = self.time;
        environment.add_function("strftime_now", move |format: &str| time::format(format, seconds));
        environment.add_filter("tojson", |value: Value, options: Kwargs| {
            let layout = python_json::Layout {
                indent: options.get("indent")?,
                ensure_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
                sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
                separators: options.get("separators")?,
            };
            options.assert_all_used()?;
            python_json::write(&value, &layout).map(Value::from_safe_string)
        });
        environment
    }
}

/// Replaces the tags that mark an assistant's text for training, which `minijinja` does not know, by ones without effect.
fn without_marks(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        text += before;
        let end = tag.find("%}").map_or(tag.len(), |end| end + 2);
        let (tag, others) = tag.split_at(end);
        let name = tag.trim_start_matches("{%").trim_end_matches("%}").trim_matches(['-', '+']).trim();
        text += &match name {
            "generation" => tag.replace(name, "if true"),
            "endgeneration" => tag.replace(name, "endif"),
            _ => tag.to_owned(),
        };
        rest = others;
    }
    text + rest
}

/// Returns an error's text with its line.
fn described(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("\"{detail}\" in line {line} of the template"),
        None => format!("\"{detail}\""),
    }
}
