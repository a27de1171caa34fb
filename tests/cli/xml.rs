//! A reader of XML that knows just enough to say whether a picture is well formed: one root, elements that end where they
//! should, attributes in quotes and named once, known entities, and characters that XML may hold.

/// The texts between tags, with entities resolved.
pub fn texts(document: &str) -> Result<Vec<String>, String> {
    let bad = |character: char| matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    if let Some(character) = document.chars().find(|character| bad(*character)) {
        return Err(format!("the character {character:?}"));
    }
    let mut rest =
        document.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>").ok_or("no declaration")?;
    let (mut open, mut texts, mut roots) = (Vec::new(), Vec::new(), 0);
    while let Some(start) = rest.find('<') {
        let text = resolve(&rest[..start])?;
        if open.is_empty() && !text.trim().is_empty() {
            return Err(format!("text outside of the root: {text}"));
        }
        if !text.trim().is_empty() {
            texts.push(text);
        }
        let end = start + rest[start..].find('>').ok_or("a tag without an end")?;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let opened = open.pop();
            if opened != Some(name) {
                return Err(format!("</{name}> ends {opened:?}"));
            }
            continue;
        }
        let (tag, is_whole) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = tag.split(' ').next().unwrap_or_default();
        if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric()) {
            return Err(format!("an element of the name '{name}'"));
        }
        attributes(&tag[name.len()..])?;
        roots += usize::from(open.is_empty());
        if !is_whole {
            open.push(name);
        }
    }
    match (open.as_slice(), roots, rest.trim()) {
        ([], 1, "") => Ok(texts),
        _ => Err(format!("{open:?} without an end, {roots} roots, '{rest}' after them")),
    }
}

fn attributes(mut rest: &str) -> Result<(), String> {
    let mut names = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest
            .strip_prefix(' ')
            .and_then(|rest| rest.split_once("=\""))
            .ok_or(format!("attributes{rest}"))?;
        let (value, after) = after.split_once('"').ok_or(format!("the value of {name} without an end"))?;
        resolve(value)?;
        if value.contains('<') || value.contains("NaN") || value.contains("inf") || names.contains(&name) {
            return Err(format!("the attribute {name}=\"{value}\""));
        }
        names.push(name);
        rest = after;
    }
    Ok(())
}

fn resolve(text: &str) -> Result<String, String> {
    let mut parts = text.split('&');
    let mut resolved = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';').ok_or(format!("an entity without an end: &{part}"))?;
        resolved.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            _ => return Err(format!("the entity &{name};")),
        });
        resolved += rest;
    }
    Ok(resolved)
}

#[test]
fn what_is_not_well_formed_is_seen() {
    let read = |body: &str| texts(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}"));
    assert_eq!(read("<a x=\"1\" y=\"2\"><b/>p &lt; q</a>\n"), Ok(vec!["p < q".to_owned()]));
    let bad = [
        "",
        "<a>",
        "<a></b>",
        "<a/><a/>",
        "<a/>x",
        "<a>&x;</a>",
        "<a>& </a>",
        "<a x=1/>",
        "<a x=\"1\" x=\"1\"/>",
        "<a x=\"NaN\"/>",
        "<a>\u{1}</a>",
        "<a",
    ];
    for body in bad {
        assert!(read(body).is_err(), "{body}");
    }
}
