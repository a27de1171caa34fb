//! Chat templates in the style of the model families, and ones that fail.

use std::path::Path;

use selvedge::Error;
use selvedge::nn::{ChatMessage, ChatTemplate};

const LLAMA3: &str = r#"{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{{- "Today Date: " + date_string + "\n\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", "parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}<|eot_id|>" }}
    {%- else %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"#;

const QWEN2: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}\
{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

const GEMMA: &str = "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}\
{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}\
{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}\
{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}";

fn messages(pairs: &[(&str, &str)]) -> Vec<ChatMessage> {
    pairs.iter().map(|&(role, content)| ChatMessage::new(role, content)).collect()
}

fn fails<T: std::fmt::Debug>(result: selvedge::Result<T>, words: &[&str]) -> Error {
    let error = result.unwrap_err();
    let message = error.to_string();
    assert!(words.iter().all(|word| message.contains(word)), "{message} lacks one of {words:?}");
    error
}

#[test]
fn conversations_of_the_families_have_their_texts() {
    let talk = messages(&[("user", " Hi <b> & 'you' \n"), ("assistant", "Hello."), ("user", "Go on")]);
    // 26 July 2024.
    let llama = ChatTemplate::new(LLAMA3)
        .unwrap()
        .with_token("bos_token", "<|begin_of_text|>")
        .with_time(1_721_999_045);
    assert_eq!(
        llama.render(&messages(&[("system", " Be brief. "), ("user", "Hi")]), true).unwrap(),
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nToday Date: 26 Jul 2024\n\nBe brief.<|eot_id|>\
         <|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    );
    let qwen = ChatTemplate::new(QWEN2).unwrap();
    assert_eq!(
        qwen.render(&talk, true).unwrap(),
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n Hi <b> & 'you' \n<|im_end|>\n\
         <|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nGo on<|im_end|>\n<|im_start|>assistant\n"
    );
    let gemma = ChatTemplate::new(GEMMA).unwrap().with_token("bos_token", "<bos>");
    assert_eq!(
        gemma.render(&talk, false).unwrap(),
        "<bos><start_of_turn>user\nHi <b> & 'you'<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n\
         <start_of_turn>user\nGo on<end_of_turn>\n"
    );
    fails(gemma.render(&messages(&[("system", "x")]), true), &["System role not supported"]);
    fails(gemma.render(&messages(&[("assistant", "x")]), true), &["roles must alternate", "line 1"]);
    let calls = r#"{"messages": [{"role": "assistant", "tool_calls": [1, 2]}]}"#;
    fails(llama.render_json(calls), &["only supports single tool-calls", "line 28"]);
}

#[test]
fn tools_keep_the_order_of_their_keys_as_in_python() {
    let llama = ChatTemplate::new(LLAMA3).unwrap().with_token("bos_token", "").with_time(0);
    let text = llama.render_json(
        r#"{"messages": [{"role": "user", "content": "x"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"z": 1, "a": [0.5, true, null]}}}]}],
            "tools": [{"name": "f", "a": {"type": "é\"\n"}, "e": [], "n": {}}]}"#,
    );
    assert_eq!(
        text.unwrap(),
        "<|start_header_id|>system<|end_header_id|>\n\nToday Date: 01 Jan 1970\n\n{\n    \"name\": \"f\",\n    \"a\": {\n        \
         \"type\": \"é\\\"\\n\"\n    },\n    \"e\": [],\n    \"n\": {}\n}\n\n<|eot_id|>\
         <|start_header_id|>user<|end_header_id|>\n\nx<|eot_id|>{\"name\": \"f\", \"parameters\": {\"z\": 1, \"a\": [0.5, true, null]}}<|eot_id|>"
    );
    for (expression, wanted) in [
        ("[1, 1.0, 1e16, 0.00001, -2.5e-7, 1e300]", "[1, 1.0, 1e+16, 1e-05, -2.5e-07, 1e+300]"),
        ("'<é&\\'🙂>\\u0001\\t/'", "\"<é&'🙂>\\u0001\\t/\""),
        ("{'b': 1, 'a': {'c': ()}}", "{\"b\": 1, \"a\": {\"c\": []}}"),
        ("{1: true, none: false}", "{\"1\": true, \"null\": false}"),
    ] {
        let template = ChatTemplate::new(format!("{{{{ {expression} | tojson }}}}")).unwrap();
        assert_eq!(template.render(&[], false).unwrap(), wanted, "{expression}");
    }
    for (options, wanted) in [
        ("ensure_ascii=true", r#"{"b": "\u00e9\ud83d\ude42", "a": [1, 2]}"#),
        ("sort_keys=true", r#"{"a": [1, 2], "b": "é🙂"}"#),
        ("separators=(',', ':')", r#"{"b":"é🙂","a":[1,2]}"#),
        ("indent=1", "{\n \"b\": \"é🙂\",\n \"a\": [\n  1,\n  2\n ]\n}"),
        ("indent='--'", "{\n--\"b\": \"é🙂\",\n--\"a\": [\n----1,\n----2\n--]\n}"),
    ] {
        let source = format!("{{{{ {{'b': 'é🙂', 'a': [1, 2]}} | tojson({options}) }}}}");
        assert_eq!(ChatTemplate::new(source).unwrap().render(&[], false).unwrap(), wanted, "{options}");
    }
    let of = |source: &str| ChatTemplate::new(source).unwrap().render(&[], false);
    fails(of("{{ nothing | tojson }}"), &["undefined"]);
    fails(of("{{ 1 | tojson(other=1) }}"), &["other"]);
}

#[test]
fn blocks_methods_and_marks_are_those_of_transformers() {
    let source = "  {% for message in messages %}\n  {% generation %}\n{{ message.content.strip().upper() }}\n  {%- endgeneration %}\n\n  \
                  {% if message.content.startswith('b') %}\n{% break %}\n  {% endif %}\n{% endfor %}\nend\n";
    let talk = messages(&[("user", " a "), ("user", "b"), ("user", "c")]);
    assert_eq!(ChatTemplate::new(source).unwrap().render(&talk, false).unwrap(), "A\nB\nend");
    let source = "{% for k, v in {'x': 1}.items() %}{{ k }}{{ v }}{% endfor %}{{ 'a-b'.split('-')[-1] }}{{ {}.get('q', 'd') }}\
                  {{ undefined_name }}{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}";
    assert_eq!(ChatTemplate::new(source).unwrap().render(&talk, false).unwrap(), "x1bd3");
    let source = "{% if tools is none and documents is none and not add_generation_prompt %}ok{% endif %}";
    assert_eq!(ChatTemplate::new(source).unwrap().render(&[], false).unwrap(), "ok");
}

#[test]
fn a_template_that_loops_or_is_none_is_an_error() {
    let of = |source: &str| ChatTemplate::new(source).unwrap().render(&messages(&[("user", "x")]), false);
    let loops = "{% for a in range(10000) %}{% for b in range(10000) %}{{ a }}{% endfor %}{% endfor %}";
    fails(of(loops), &["steps", "4000000"]);
    fails(of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), &["ChatTemplate"]);
    fails(of("\n{{ messages[0].content.fly() }}"), &["fly", "line 2"]);
    fails(of("{{ messages.x.y }}"), &["undefined"]);
    fails(of("{{ strftime_now('%Q') }}"), &["%Q"]);
    for source in ["{% for %}", "{{ x", "{% if a %}", "{% unknown %}", "{% generation %}"] {
        fails(ChatTemplate::new(source), &["template", "Jinja"]);
    }
    let template = ChatTemplate::new("{{ messages }}").unwrap();
    fails(template.render_json("{"), &["JSON object"]);
    fails(template.render_json("[]"), &["JSON object"]);
    fails(template.render_json("{\"tools\": []}"), &["without messages"]);
}

fn config(folder: &Path, text: &str) {
    std::fs::write(folder.join("tokenizer_config.json"), text).unwrap();
}

#[test]
fn folders_hold_a_file_a_text_or_a_list_of_templates() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let file = |words: &[&str]| {
        assert!(matches!(fails(ChatTemplate::from_folder(path), words), Error::File { .. }));
    };
    let render = |tools: &str| {
        let template = ChatTemplate::from_folder(path).unwrap();
        template.render_json(&format!("{{\"messages\": [], \"tools\": {tools}}}")).unwrap()
    };
    file(&["no chat template", "chat_template.jinja", "tokenizer_config.json"]);
    config(
        path,
        r#"{"chat_template": "{{ eos_token }}1{{ bos_token }}", "eos_token": "<e>", "bos_token": {"content": "<b>"}}"#,
    );
    assert_eq!(render("null"), "<e>1<b>");
    // The older file has what the configuration lacks.
    std::fs::write(path.join("special_tokens_map.json"), r#"{"bos_token": "<s>", "eos_token": "</s>"}"#)
        .unwrap();
    config(path, r#"{"chat_template": "{{ eos_token }}1{{ bos_token }}", "eos_token": "<e>"}"#);
    assert_eq!(render("null"), "<e>1<s>");
    config(
        path,
        r#"{"chat_template": [{"name": "default", "template": "2"}, {"name": "tool_use", "template": "3"}, {"name": "rag", "template": "4"}]}"#,
    );
    assert_eq!([render("null"), render("[]"), render("[1]")], ["2", "2", "3"]);
    let template = ChatTemplate::from_folder(path).unwrap();
    assert!(template.names().eq(["default", "rag", "tool_use"]));
    assert_eq!(template.clone().with_name("rag").unwrap().render(&[], false).unwrap(), "4");
    fails(template.with_name("none"), &["none", "default, rag, tool_use"]);
    config(path, r#"{"chat_template": [{"name": "rag", "template": "4"}]}"#);
    fails(ChatTemplate::from_folder(path).unwrap().render(&[], false), &["no default", "rag"]);
    config(path, r#"{"chat_template": "{% if"}"#);
    file(&["tokenizer_config.json", "line 1"]);
    std::fs::write(path.join("chat_template.jinja"), "5\n").unwrap();
    assert_eq!(render("null"), "5");
    std::fs::write(path.join("chat_template.jinja"), b"\xff").unwrap();
    file(&["chat_template.jinja", "UTF-8"]);
}
